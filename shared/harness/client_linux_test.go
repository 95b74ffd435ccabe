package harness

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadResponse(t *testing.T) {
	const body = "HTTP/1.1 200 OK\r\nA: 1\r\ncontent-length: 3\r\n\r\nabc"
	for name, c := range map[string]struct {
		text string
		head bool
		body string
		rest string
	}{
		"a body":    {body + "HTTP", false, "abc", "HTTP"},
		"no body":   {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nx", false, "", "x"},
		"HEAD":      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nHTTP", true, "", "HTTP"},
		"interim":   {"HTTP/1.1 100 Continue\r\n\r\n" + body, false, "", body},
		"204":       {"HTTP/1.1 204 No Content\r\nAllow: GET\r\n\r\nx", false, "", "x"},
		"304":       {"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\nx", false, "", "x"},
		"no phrase": {"HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\nx", false, "x", ""},
	} {
		for _, slowly := range []bool{false, true} {
			var from io.Reader = strings.NewReader(c.text)
			if slowly {
				from = iotest.OneByteReader(from)
			}
			r := bufio.NewReaderSize(from, 16)
			response, err := ReadResponse(r, c.head)
			require.NoError(t, err, name)
			require.Equal(t, c.body, string(response.Body), name)
			rest, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Equal(t, c.rest, string(rest), name)
		}
	}
	response, err := ReadResponse(bufio.NewReader(strings.NewReader("HTTP/1.0 404 Not Found\r\nX-a: b  c\r\nCONNECTION: Close\r\nContent-Length: 0\r\n\r\n")), false)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.0 404 Not Found", response.StatusLine)
	require.Equal(t, Field{"X-a", "b  c"}, response.Fields[0])
	require.Equal(t, "CONNECTION", response.Fields[1].Name)
	require.True(t, response.Closes())
	require.Empty(t, response.Field("Date"))
}

func TestReadResponseSaysWhatCame(t *testing.T) {
	for text, says := range map[string]string{
		"":                             "want a response: EOF",
		"HTTP/1.1 2":                   `want a response: unexpected EOF; what came: "HTTP/1.1 2"`,
		"HTTP/1.1 200 OK":              `want a response: unexpected EOF; what came: "HTTP/1.1 200 OK"`,
		"hello\r\n":                    `no status line: "hello"; what came: "hello\r\n"`,
		"HTTP/1.1 20 OK\r\n":           "no status line",
		"HTTP/1.1 +20 OK\r\n":          "no status line",
		"HTTP/2 200 OK\r\n":            "no status line",
		"HTTP/1.1 200 OK\n":            "a bare LF",
		"HTTP/1.1 200\x00 OK\r\n":      "control byte 0x00",
		"HTTP/1.1 200 OK\r\nA: 1":      `in the head of a 200: unexpected EOF; what came: "HTTP/1.1 200 OK\r\nA: 1"`,
		"HTTP/1.1 200 OK\r\nA 1\r\n":   `malformed field line "A 1"`,
		"HTTP/1.1 200 OK\r\n A: 1\r\n": "malformed field line",
		"HTTP/1.1 200 OK\r\n\r\n":      "want a Content-Length",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n":                  "Content-Length, and a number",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n":  "no second Content-Length",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n":         "want a Content-Length of",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab":                 `after 2 of 3 bytes of the body of a 200: unexpected EOF; what came: "ab"`,
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n":                   "after 0 of 3 bytes of the body of a 200: unexpected EOF",
		"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", maxHead) + "\r\n": "it has no end within",
	} {
		_, err := ReadResponse(bufio.NewReader(strings.NewReader(text)), false)
		require.ErrorContains(t, err, says)
		var wrong *ResponseError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, text == "", errors.Is(err, io.EOF), "%q", text)
	}
}

func TestConn(t *testing.T) {
	s := startServer(t, flags("-workers", "1"))
	c := dial(t, s)
	// Many at once, one with no body among them.
	require.NoError(t, c.Send(strings.Repeat(HelloRequest, 3)+"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"+HelloRequest))
	for i := range 5 {
		r, err := c.ReadResponse(i == 3)
		require.NoError(t, err)
		require.Equal(t, 200, r.Status)
		require.EqualValues(t, len(HelloBody), r.Length)
		if i != 3 {
			require.Equal(t, HelloBody, string(r.Body))
		}
	}
	// An answer of its own before the other.
	require.NoError(t, c.Send("POST /api/echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"))
	r, err := c.ReadResponse(false)
	require.NoError(t, err)
	require.Equal(t, 100, r.Status)
	r, err = c.Do("abc")
	require.NoError(t, err)
	require.Equal(t, "abc", string(r.Body))

	require.NoError(t, c.Send(HelloRequest))
	require.NoError(t, c.AwaitFirst())
	patience := c.Timeout
	c.Timeout = 100 * time.Millisecond // all of it goes by
	err = c.ReadEnd()
	c.Timeout = patience
	require.ErrorContains(t, err, `want the end of the connection; what came: "HTTP/1.1 200 OK`)
	require.NoError(t, c.CloseWrite())
	require.NoError(t, c.ReadEnd())

	c = dial(t, s)
	require.NoError(t, c.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
	all, err := c.ReadRest()
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(all), HelloBody))

	// A client that takes nothing makes the server wait; a reset is the end of it.
	slow, err := DialSlow(s.Ready.Address, 256<<10)
	require.NoError(t, err)
	require.NoError(t, slow.Send("GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n"))
	require.NoError(t, slow.AwaitFirst())
	blocked, err := s.Settle(t.Context())
	require.NoError(t, err)
	require.Less(t, blocked.Total.WrittenBytes, uint64(16<<20), "the socket is full")
	require.NoError(t, slow.Reset())
	_, err = s.AwaitConnections(t.Context(), 0)
	require.NoError(t, err)
}

func TestEndsOfAConnectionAreToldApart(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	accepted := func(then func(*net.TCPConn)) *Conn {
		c, err := Dial(listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		other, err := listener.Accept()
		require.NoError(t, err)
		then(other.(*net.TCPConn))
		t.Cleanup(func() { other.Close() })
		return c
	}
	c := accepted(func(other *net.TCPConn) { other.Close() })
	_, err = c.ReadResponse(false)
	require.ErrorIs(t, err, io.EOF)
	require.True(t, Gone(err))
	require.False(t, WasReset(err))
	c = accepted(func(other *net.TCPConn) { other.SetLinger(0); other.Close() })
	_, err = c.ReadResponse(false)
	require.True(t, WasReset(err) && Gone(err), "%v", err)
	err = accepted(func(other *net.TCPConn) { other.SetLinger(0); other.Close() }).ReadEnd()
	require.True(t, WasReset(err), "%v", err)
	c = accepted(func(*net.TCPConn) {})
	c.Timeout = 10 * time.Millisecond
	_, err = c.ReadResponse(false)
	require.True(t, TimedOut(err) && !Gone(err), "%v", err)
	_, err = Dial("127.0.0.1:1")
	require.Error(t, err)
}
