package grade

import (
	"fmt"
	"strings"
)

func init() {
	behaviour("after-a-body", "requests that arrive together with a body before them are answered", serving(afterABody))
	behaviour("order", "pipelined requests are answered in their order", talking(order))
}

// exchange is what is sent in one piece, and the bodies that must come back.
type exchange struct {
	what   string
	send   string
	bodies []string
}

func afterABody(server *Server) error {
	long := strings.Repeat("0123456789abcdef", 2000)
	medium := strings.Repeat("m", 9000)
	exchanges := []exchange{
		{"a POST with Content-Length and a GET", echoRequest("text/plain", "first") + helloRequest, []string{"first", greeting}},
		{"a POST with chunks and a GET", chunkedRequest("in two chunks") + helloRequest, []string{"in two chunks", greeting}},
		{"four POSTs", echoRequest("a/b", "one") + chunkedRequest("two, two") + echoRequest("a/b", "three") + echoRequest("a/b", ""),
			[]string{"one", "two, two", "three", ""}},
		{"an empty POST with chunks and a GET", "POST /api/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + helloRequest, []string{"", greeting}},
		{"a POST whose body outgrows the buffer and two GETs", echoRequest("a/b", long) + helloRequest + helloRequest, []string{long, greeting, greeting}},
		{"a POST of 9,000 bytes and ten more", echoRequest("a/b", medium) + strings.Repeat(echoRequest("a/b", "next"), 10),
			append([]string{medium}, strings.Split(strings.Repeat("next ", 10), " ")[:10]...)},
		{"a POST and an HTTP/1.0 GET", echoRequest("a/b", "x") + "GET / HTTP/1.0\r\n\r\n", []string{"x", greeting}},
	}
	for _, e := range exchanges {
		if err := server.exchange(e, 0); err != nil {
			return err
		}
	}
	// Cut in two at every byte of a short one: the second piece is sent when the first answer is there.
	e := exchanges[0]
	for cut := len(e.send) - len(helloRequest); cut < len(e.send); cut += 3 {
		if err := server.exchange(e, cut); err != nil {
			return err
		}
	}
	return nil
}

// exchange sends everything and says that nothing more will come, so that a server that has lost some of it
// ends the connection instead of waiting. With a cut, the rest is sent after the first answer.
func (s *Server) exchange(e exchange, cut int) error {
	c, err := dial(s.Ready.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	first, rest := e.send, ""
	if cut > 0 {
		first, rest = e.send[:cut], e.send[cut:]
	}
	sent := make(chan error, 1)
	go func() {
		err := c.send(first)
		if err == nil && rest == "" {
			err = c.CloseWrite()
		}
		sent <- err
	}()
	for i, body := range e.bodies {
		if err := c.expect(200, body); err != nil {
			return fmt.Errorf("%s sent together: answer %d of %d: %w", e.what, i+1, len(e.bodies), err)
		}
		if i == 0 && rest != "" {
			if err := c.send(rest); err != nil {
				return err
			}
			if err := c.CloseWrite(); err != nil {
				return err
			}
		}
	}
	return plain(<-sent)
}

// order pipelines requests whose answers differ, small ones and large ones.
func order(c *connection) error {
	var all strings.Builder
	var bodies []string
	for i := range 300 {
		switch i % 4 {
		case 3:
			id := strings.Repeat(string(rune('a'+i%26)), 600+i%10)
			fmt.Fprintf(&all, "GET /users/%s HTTP/1.1\r\nHost: a\r\n\r\n", id)
			bodies = append(bodies, `{"id":"`+id+`"}`)
		case 0:
			fmt.Fprintf(&all, "GET /users/%d HTTP/1.1\r\nHost: a\r\n\r\n", i)
			bodies = append(bodies, fmt.Sprintf(`{"id":"%d"}`, i))
		case 1:
			body := fmt.Sprint("body ", i, strings.Repeat(".", 7*i))
			all.WriteString(echoRequest("text/plain", body))
			bodies = append(bodies, body)
		default:
			all.WriteString(helloRequest)
			bodies = append(bodies, greeting)
		}
	}
	sent := make(chan error, 1)
	go func() { sent <- c.send(all.String()) }()
	for i, body := range bodies {
		if err := c.expect(200, body); err != nil {
			return fmt.Errorf("of %d requests sent at once, number %d: %w", len(bodies), i+1, err)
		}
	}
	return <-sent
}
