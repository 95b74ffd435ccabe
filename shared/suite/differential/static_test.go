package differential

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/suite"
)

// Fields of more than one line reach the handler whole at every stage (RFC 9110, 5.3), those of an earlier
// request do not, and HEAD has the length of a file that nobody has read.
func TestFilesUnderConditions(t *testing.T) {
	for _, target := range startStages(t) {
		t.Run(target.name, func(t *testing.T) {
			c, err := harness.Dial(target.address)
			require.NoError(t, err)
			defer c.Close()
			ask := func(method, name, fields string) *harness.Response {
				t.Helper()
				response, err := c.Do(method + " /static/" + name + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n")
				require.NoError(t, err)
				return response
			}
			first := ask("HEAD", "large.bin", "")
			require.Equal(t, 200, first.Status)
			require.EqualValues(t, 70_000, first.Length)
			require.Empty(t, first.Body)
			tag, modified := first.Field("ETag"), first.Field("Last-Modified")
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
				response := ask("GET", "large.bin", c.fields)
				require.Equal(t, c.status, response.Status, c.fields)
				_, err := suite.CheckAnswer(response)
				require.NoError(t, err, c.fields)
				if c.status == 200 {
					require.Len(t, response.Body, 70_000, c.fields)
				}
			}
		})
	}
}
