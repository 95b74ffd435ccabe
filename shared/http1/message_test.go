package http1

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequestHeader(t *testing.T) {
	var q Request
	require.Empty(t, q.Header("A"))
	require.Empty(t, q.Values("A"))
	q.Headers = http.Header{"A": {"b", "", "d"}}
	require.Equal(t, "b", q.Header("A"))
	require.Equal(t, []string{"b", "", "d"}, q.Values("A"))
	require.Empty(t, q.Header("C"))
	require.Empty(t, q.Values("C"))
}

func TestResponseError(t *testing.T) {
	r := Response{ETag: "e", Scratch: make([]byte, 3, 10)}
	r.Error(404)
	require.Equal(t, 404, r.Status)
	require.Equal(t, "404 Not Found\n", string(r.Body))
	require.Equal(t, "text/plain; charset=utf-8", r.ContentType)
	require.True(t, r.Stable)
	require.False(t, r.Close)
	require.Zero(t, testing.AllocsPerRun(10, func() { r.Error(431) }))
	r.Reset()
	require.Empty(t, r.Scratch)
	require.Equal(t, 10, cap(r.Scratch))
	r.Scratch = nil
	require.Equal(t, Response{}, r)
	for status, want := range map[int]string{599: "599\n", 0: "0\n", -1: "-1\n", 1000: "1000\n"} {
		r.Error(status)
		require.Equal(t, want, string(r.Body))
	}
}

func TestFaultResponse(t *testing.T) {
	var r Response
	faultConnect.Response(&r)
	require.Equal(t, 405, r.Status)
	require.Equal(t, "GET, HEAD, OPTIONS, POST", r.Allow)
	require.True(t, r.Close)
	require.Equal(t, "405 Method Not Allowed\n", string(r.Body))
	r.Reset()
	faultHeadLong.Response(&r)
	require.Empty(t, r.Allow)
	require.True(t, r.Close)
}

// The phrases are net/http's, but for what RFC 9110 has renamed since.
func TestStatusText(t *testing.T) {
	renamed := map[int]string{413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable", 422: "Unprocessable Content"}
	named := 0
	for code := -1; code <= 1000; code++ {
		text := StatusText(code)
		if text == "" {
			continue
		}
		named++
		want := http.StatusText(code)
		if renamed[code] != "" {
			want = renamed[code]
		}
		require.Equal(t, want, text)
	}
	require.Greater(t, named, 40)
	for _, code := range []int{200, 204, 304, 400, 404, 405, 408, 413, 414, 417, 431, 500, 501, 503, 505} {
		require.NotEmpty(t, StatusText(code))
	}
}

func TestContinue(t *testing.T) {
	require.Equal(t, "HTTP/1.1 100 Continue\r\n\r\n", string(Continue))
}

// RFC 3986, 2.4: once, and only once.
func TestAppendDecoded(t *testing.T) {
	for path, want := range map[string]string{
		"":            "",
		"/":           "/",
		"/a%20b":      "/a b",
		"/%00%aF%Fa%": "/\x00\xaf\xfa%",
		"%25%32%35":   "%25",
		"%252f":       "%2f",
		"%41":         "A",
		"%4":          "%4",
		"%":           "%",
		"%%41":        "%A",
		"%g1%1g":      "%g1%1g",
		"/a+b":        "/a+b",
	} {
		require.Equal(t, ">"+want, string(AppendDecoded([]byte(">"), []byte(path))), path)
		inPlace := []byte(path)
		require.Equal(t, want, string(AppendDecoded(inPlace[:0], inPlace)), path)
	}
	all := strings.Repeat("%E7%BC%96", 3)
	require.Equal(t, "编编编", string(AppendDecoded(nil, []byte(all))))
}

// RFC 9110, 8.6.
func TestHasContentLength(t *testing.T) {
	for status, want := range map[int]bool{100: false, 199: false, 200: true, 204: false, 205: true, 304: false, 404: true, 505: true} {
		require.Equal(t, want, HasContentLength(status), status)
	}
}

// RFC 9110, 9.3.2.
func TestIsHead(t *testing.T) {
	for in, want := range map[string]bool{"HEAD / HTTP/1.1": true, "\r\nHEAD ": true, "HEAD": false, "HEADX / ": false, "head / ": false, "GET / ": false, "": false, "\r\n\r\nHEAD ": false} {
		require.Equal(t, want, IsHead([]byte(in)), in)
	}
}

func TestView(t *testing.T) {
	b := []byte("abc")
	s := View(b[1:])
	require.Equal(t, "bc", s)
	b[1] = 'x'
	require.Equal(t, "xc", s)
	require.Empty(t, View(nil))
}
