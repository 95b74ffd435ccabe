package grade

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

func init() {
	behaviour("headers", "each request has its own header fields, and only those", talking(headers))
	behaviour("types", "each answer has the Content-Type of its own request", types)
	behaviour("heads", "the heads of all kinds of answers are right, byte for byte", serving(heads))
}

// headers sends requests over one connection whose fields differ; what one brought must not be there
// for the next.
func headers(c *connection) error {
	const unknown = "application/octet-stream"
	many := strings.Repeat("X-Filler: 1234567890\r\n", 61)
	for _, e := range []struct{ what, fields, want string }{
		{"a field in its usual form", "Content-Type: text/one\r\n", "text/one"},
		{"no such field, after a request that had it", "", unknown},
		{"an empty value", "Content-Type:\r\n", unknown},
		{"blanks around a value", "Content-Type: \t text/two \t\r\n", "text/two"},
		{"a name in other letters", "cOnTeNt-tYpE: text/three\r\n", "text/three"},
		{"no blank before the value", "Content-Type:text/four\r\n", "text/four"},
		{"two fields of the name", "Content-Type: text/five\r\nContent-Type: text/six\r\n", "text/five"},
		{"a longer name that begins alike", "Content-Type-Not: text/seven\r\n", unknown},
		{"64 fields, the last of them this one", many + "Content-Type: text/last\r\n", "text/last"},
		{"few fields after many", "X-Filler: 1\r\n", unknown},
		{"another value of the same length", "Content-Type: text/lasT\r\n", "text/lasT"},
	} {
		// With Host and Content-Length there are 64 at most.
		err := c.send("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n" + e.fields + "\r\nok")
		if err != nil {
			return err
		}
		a, err := c.answer()
		if err != nil {
			return fmt.Errorf("%s: %w", e.what, err)
		}
		if got := a.Field("Content-Type"); a.Status != 200 || got != e.want {
			return fmt.Errorf("%s: the answer was %d with Content-Type %q, not %q", e.what, a.Status, got, e.want)
		}
	}
	return nil
}

// types uploads with types that are alike, and with many that are drawn: a table whose keys have changed below it finds
// the wrong one only where it looks for that by chance.
func types(s *Subject) error {
	return s.with(func(server *Server) error {
		if err := pairsOfTypes(server); err != nil {
			return err
		}
		c, err := server.dial()
		if err != nil {
			return err
		}
		random := s.random("types")
		for range 1000 {
			want := "text/" + letters(random, 12)
			if err := c.send(echoRequest(want, "x")); err != nil {
				return err
			}
			if err := c.wantType(want); err != nil {
				return fmt.Errorf("uploads of a thousand types of one length, over one connection: %w", err)
			}
		}
		return nil
	})
}

// pairsOfTypes uploads with types of equal length in turn, over one connection, over two, and sent together.
func pairsOfTypes(server *Server) error {
	var both [2]*connection
	for i := range both {
		var err error
		if both[i], err = server.dial(); err != nil {
			return err
		}
	}
	// Pairs of equal length, that differ at the end, in the middle, at the beginning.
	pairs := [][2]string{
		{"text/plain", "text/troff"}, {"application/x-first", "application/x-other"}, {"image/png", "audio/ogg"},
		{"application/vnd.example.order-1", "application/vnd.example.order-2"}, {"a/b", "c/d"},
		{"multipart/form-data; boundary=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "multipart/form-data; boundary=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"},
	}
	for _, pair := range pairs {
		for i := range 6 {
			c, want := both[0], pair[i%2]
			how := "over one connection"
			if i >= 4 {
				c, how = both[i%2], "over two connections in turn"
			}
			if err := c.send(echoRequest(want, "x")); err != nil {
				return err
			}
			if err := c.wantType(want); err != nil {
				return fmt.Errorf("uploads of %s and %s, %s: %w", pair[0], pair[1], how, err)
			}
			// A constant type between two of them.
			if i == 2 {
				if err := c.hello(); err != nil {
					return err
				}
			}
		}
		if err := both[0].send(echoRequest(pair[0], "x"), echoRequest(pair[1], "x"), helloRequest, echoRequest(pair[0], "x")); err != nil {
			return err
		}
		for _, want := range []string{pair[0], pair[1], "text/plain; charset=utf-8", pair[0]} {
			if err := both[0].wantType(want); err != nil {
				return fmt.Errorf("uploads of %s and %s, sent together: %w", pair[0], pair[1], err)
			}
		}
	}
	return nil
}

func (c *connection) wantType(want string) error {
	a, err := c.answer()
	if err != nil {
		return err
	}
	if got := a.Field("Content-Type"); got != want {
		return fmt.Errorf("the answer said %q, not %q", got, want)
	}
	return nil
}

// heads compares whole heads, the Date aside.
func heads(server *Server) error {
	const plainText = "Content-Type: text/plain; charset=utf-8\r\n"
	for round := range 2 {
		for _, e := range []struct{ send, head string }{
			{helloRequest, "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n" + plainText},
			{"GET /api/status HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 15\r\nContent-Type: application/json\r\n"},
			{"GET /bytes/0 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Type: application/octet-stream\r\n"},
			{"GET /bytes/123456 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 123456\r\nContent-Type: application/octet-stream\r\n"},
			{"HEAD /bytes/100 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: application/octet-stream\r\n"},
			{"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404 Not Found\r\nContent-Length: 14\r\n" + plainText},
			{"DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\nContent-Length: 23\r\n" + plainText},
			{"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 204 No Content\r\nAllow: GET, HEAD, OPTIONS, POST\r\n"},
			{"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 13\r\n" + plainText},
			{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 13\r\n" + plainText},
			{"GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 13\r\n" + plainText},
			{"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 16\r\n" + plainText},
			{echoRequest("text/x-own", "four"), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Type: text/x-own\r\n"},
		} {
			if err := server.oneHead(e.send, e.head); err != nil {
				line, _, _ := strings.Cut(e.send, "\r\n")
				if round == 1 {
					line += ", a second later"
				}
				return fmt.Errorf("%s: %w", line, err)
			}
		}
		if round == 0 {
			time.Sleep(1100 * time.Millisecond)
		}
	}
	return nil
}

func (s *Server) oneHead(send, want string) error {
	c, err := dial(s.Ready.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.send(send); err != nil {
		return err
	}
	c.TCP.SetReadDeadline(time.Now().Add(answerLimit))
	var head strings.Builder
	for {
		line, err := c.Reader.ReadString('\n')
		if err != nil {
			return plain(err)
		}
		if line == "\r\n" {
			break
		}
		if date, ok := strings.CutPrefix(line, "Date: "); ok {
			t, err := http.ParseTime(strings.TrimSpace(date))
			if err != nil || time.Since(t) > 2*time.Second || time.Until(t) > time.Second {
				return fmt.Errorf("the Date is %q", strings.TrimSpace(date))
			}
			line = "Date\r\n"
		}
		head.WriteString(line)
	}
	got := strings.Split(strings.TrimSpace(head.String()), "\r\n")
	for i, line := range strings.Split(want+"Date\r\nServer: qps-ladder", "\r\n") {
		if i >= len(got) {
			return fmt.Errorf("the line %q is missing", line)
		}
		if got[i] != line {
			return fmt.Errorf("line %d of the head is %q, not %q", i+1, got[i], line)
		}
	}
	if n := strings.Count(want, "\r\n") + 2; len(got) != n {
		return errors.New("there is a line too many: " + got[n])
	}
	return nil
}
