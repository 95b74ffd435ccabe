package differential

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Fields of more than one line reach the handler whole at every stage (RFC 9110, 5.3), those of an earlier
// request do not, and HEAD has the length of a file that nobody has read.
func TestFilesUnderConditions(t *testing.T) {
	for _, target := range startStages(t) {
		t.Run(target.name, func(t *testing.T) {
			c, err := net.Dial("tcp", target.address)
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
			reader := bufio.NewReader(c)
			ask := func(method, name, fields string) (*http.Response, int) {
				t.Helper()
				_, err := io.WriteString(c, method+" /static/"+name+" HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n")
				require.NoError(t, err)
				response, err := http.ReadResponse(reader, &http.Request{Method: method})
				require.NoError(t, err)
				body, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				return response, len(body)
			}
			first, size := ask("HEAD", "large.bin", "")
			require.Equal(t, 200, first.StatusCode)
			require.EqualValues(t, 70_000, first.ContentLength)
			require.Zero(t, size)
			tag, modified := first.Header.Get("ETag"), first.Header.Get("Last-Modified")
			for _, c := range []struct {
				status int
				fields string
			}{
				{304, "If-None-Match: \"x\" \r\nAccept: */*\r\nif-none-MATCH:\t" + tag + " \r\n"},
				{304, "If-None-Match:\r\nIf-None-Match: , W/" + tag + "\r\nIf-None-Match: \"y\"\r\n"},
				{200, "If-None-Match: \"x\"\r\nIf-None-Match: \"y\"\r\n"},
				{200, ""},
				{200, "If-None-Match:\r\nIf-Modified-Since: " + modified + "\r\n"},
				{304, "If-Modified-Since: " + modified + " \r\n"},
				{200, "If-Modified-Since: " + modified + "\r\nIf-Modified-Since:\r\n"},
				{412, "If-Match: \"x\"\r\n"},
				{200, "If-Match: \"x\"\r\nIf-Match: " + tag + "\r\n"},
				{412, "If-Match:\r\n"},
				{412, "If-Unmodified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n"},
				{200, "Expect: ,\r\nExpect: 100-continue\r\n"},
				{200, "A: b\r\n"},
			} {
				response, size := ask("GET", "large.bin", c.fields)
				require.Equal(t, c.status, response.StatusCode, c.fields)
				if c.status == 200 {
					require.Equal(t, 70_000, size, c.fields)
				}
			}
		})
	}
}
