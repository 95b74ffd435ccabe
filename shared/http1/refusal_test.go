package http1

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAppendNoRoom(t *testing.T) {
	form := regexp.MustCompile("^beforeHTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 24\r\n" +
		"Content-Type: text/plain; charset=utf-8\r\nDate: ([^\r]+)\r\nServer: qps-ladder\r\n\r\n(.*\n)?$")
	for input, body := range map[string]string{
		"":                   "503 Service Unavailable\n",
		"GET / HTTP/1.1\r\n": "503 Service Unavailable\n",
		"HEAD / HTTP/1.1":    "",
	} {
		before := time.Now().Truncate(time.Second)
		parts := form.FindStringSubmatch(string(AppendNoRoom([]byte("before"), []byte(input))))
		require.NotNil(t, parts, "%q", input)
		require.Equal(t, body, parts[2], "%q", input)
		date, err := time.Parse("Mon, 02 Jan 2006 15:04:05 GMT", parts[1])
		require.NoError(t, err)
		require.False(t, date.Before(before.UTC()))
	}
	require.Len(t, "503 Service Unavailable\n", 24)
}
