package suite

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// script is a server that knows one thing: when so many bytes have come, it answers and does what it does then.
type script struct {
	after  int    // bytes that it waits for
	answer string // what it sends then
	then   string // "open": it goes on with the next request; "close", "reset"
	early  string // what it sends when input ends inside a request
}

func (s script) listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(c.(*net.TCPConn))
		}
	}()
	return l.Addr().String()
}

func (s script) serve(c *net.TCPConn) {
	defer c.Close()
	var got []byte
	part := make([]byte, 64)
	for wanted := s.after; ; {
		if len(got) >= wanted {
			c.Write([]byte(s.answer))
			switch s.then {
			case "reset":
				c.SetLinger(0)
				return
			case "close":
				c.CloseWrite()
				for { // lingering
					if _, err := c.Read(part); err != nil {
						return
					}
				}
			}
			got = got[wanted:]
			wanted = len(helloRequest)
			s.answer = answerOf(Hello())
			s.then = "open"
			continue
		}
		n, err := c.Read(part)
		got = append(got, part[:n]...)
		if err != nil {
			if len(got) > 0 {
				c.Write([]byte(s.early))
			}
			return
		}
	}
}

// answerOf is an answer as the contract wants it.
func answerOf(e Expected) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", e.Status, phrases[e.Status])
	if e.Connection != "" {
		fmt.Fprintf(&b, "Connection: %s\r\n", e.Connection)
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\nContent-Type: %s\r\nDate: %s\r\nServer: qps-ladder\r\n\r\n%s",
		len(e.Body), e.Type, time.Now().UTC().Format(http.TimeFormat), e.Body)
	return b.String()
}

// The suite passes a server that is right, and none that is wrong in a single thing.
func TestCheckCase(t *testing.T) {
	open := Case{Name: "open", Bytes: []byte(helloRequest), Certain: len(helloRequest), Answers: []Expected{Hello()}}
	const bad = "GET /% HTTP/1.1\r\n\r\n"
	closed := Case{Name: "closed", Bytes: []byte(bad), Certain: len("GET /% "), Answers: []Expected{Refusal(400)}, Closed: true}
	silent := Case{Name: "silent", Bytes: []byte("GET"), Certain: 3, HalfClose: true, Closed: true}
	hello, refusal := answerOf(Hello()), answerOf(Refusal(400))
	for _, one := range []struct {
		name    string
		c       Case
		server  script
		failure string // "" if the server is right
	}{
		{"right, open", open, script{len(helloRequest), hello, "open", ""}, ""},
		{"right, closed", closed, script{closed.Certain, refusal, "close", ""}, ""},
		{"right, silent", silent, script{1000, "", "", ""}, ""},
		{"another status", open, script{len(helloRequest), answerOf(standardError(404)), "open", ""}, "in one piece: answer 1 of 1: status 404, want 200"},
		{"another body", open, script{len(helloRequest), strings.Replace(hello, "World", "world", 1), "open", ""}, "body of the 200"},
		{"a field too many", open, script{len(helloRequest), strings.Replace(hello, "Date: ", "Dated: x\r\nDate: ", 1), "open", ""}, "unknown or misspelled field"},
		{"an old date", open, script{len(helloRequest), strings.Replace(hello, "Date: "+time.Now().UTC().Format(http.TimeFormat)[:16], "Date: Tue, 15 Nov 1994", 1), "open", ""}, "date 1994"},
		{"a byte behind the answer", open, script{len(helloRequest), hello + "x", "open", ""}, "no status line"},
		{"closed, should be open", open, script{len(helloRequest), hello, "close", ""}, "the connection should still be open"},
		{"a byte behind the last answer", closed, script{closed.Certain, refusal + "x", "close", ""}, `want the end of the connection; what came: "x"`},
		{"a reset for an end", closed, script{closed.Certain, refusal, "reset", ""}, "reset by peer"},
		{"too early", closed, script{closed.Certain - 1, refusal, "close", ""}, "one byte short of certain: want the end of the connection; what came: "},
		{"an answer to what is not complete", open, script{len(helloRequest), hello, "open", refusal}, "one byte short of certain: want the end of the connection; what came: "},
		{"an answer for silence", silent, script{1000, "", "", refusal}, "in one piece: want the end of the connection; what came: "},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			err := checkCase(one.server.listen(t), one.c, true)
			if one.failure == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, one.failure)
			}
		})
	}
}

func TestExpectation(t *testing.T) {
	require.Equal(t, "exactly 1", Exactly(1).String())
	require.Equal(t, "at least 8", AtLeast(8).String())
	require.Equal(t, "at most 2", AtMost(2).String())
}

func TestParseSummary(t *testing.T) {
	calls := parseSummary(`% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 64.84    0.017471           6      2624           sendto
 34.91    0.009405           3      2628        12 recvfrom
------ ----------- ----------- --------- --------- ----------------
100.00    0.026943           5      5252        12 total
`)
	require.EqualValues(t, 2624, calls["sendto"])
	require.EqualValues(t, 2628, calls["recvfrom"])
	require.Zero(t, calls["sendmsg"])
}

func TestBrowserRequest(t *testing.T) {
	require.Len(t, browserRequest, 800)
	require.Equal(t, 14, strings.Count(browserRequest, "\r\n")-2)
}
