package grade

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// connection is a client's side of one connection. Whatever it waits for, it waits answerLimit at most.
type connection struct {
	*harness.Conn
	number   int  // for who is shown what goes over it
	upgraded bool // it is a WebSocket
}

func dial(address string) (*connection, error) { return connected(harness.Dial(address)) }

// dialSlow connects with a receive buffer that does not grow, so that a server soon finds the socket full.
func dialSlow(address string) (*connection, error) {
	return connected(harness.DialSlow(address, 256<<10))
}

func connected(c *harness.Conn, err error) (*connection, error) {
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	c.Timeout = answerLimit
	own := &connection{Conn: c, number: newNumber()}
	c.Reader = bufio.NewReader(heard{c.TCP, own.number})
	return own, nil
}

var (
	errEnded = errors.New("the server closed the connection")
	errReset = errors.New("the server reset the connection")
)

// plain is what went wrong, in the words of a person who waits for an answer, with what came of it.
func plain(err error) error {
	said := err
	switch {
	case harness.TimedOut(err):
		said = fmt.Errorf("nothing came for %v", answerLimit)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		said = errEnded
	case harness.WasReset(err):
		said = errReset
	default:
		return err
	}
	var wrong *harness.ResponseError
	if errors.As(err, &wrong) && len(wrong.Got) > 0 {
		return fmt.Errorf("%w after %s", said, clip(wrong.Got))
	}
	return said
}

func (c *connection) send(b ...string) error {
	text := strings.Join(b, "")
	showBytes(c.number, ">", text)
	return plain(c.Send(text))
}

// answer reads one answer to a request that is not a HEAD.
func (c *connection) answer() (*harness.Response, error) {
	response, err := c.ReadResponse(false)
	return response, plain(err)
}

// ask sends one request that is not a HEAD, and reads its answer.
func (c *connection) ask(request string) (*harness.Response, error) {
	showBytes(c.number, ">", request)
	response, err := c.Do(request)
	return response, plain(err)
}

// expect reads an answer and wants this status and body.
func (c *connection) expect(status int, body string) error {
	a, err := c.answer()
	if err != nil {
		return err
	}
	if a.Status != status {
		return fmt.Errorf("the answer was %d, not %d", a.Status, status)
	}
	if string(a.Body) != body {
		if len(a.Body) == len(body) && len(body) > 60 {
			at := firstDifference(string(a.Body), body)
			return fmt.Errorf("the body differs from byte %d of %d on: %s, not %s", at, len(body), clip(a.Body[at:]), clip([]byte(body[at:])))
		}
		return fmt.Errorf("the body was %s, not %s", clip(a.Body), clip([]byte(body)))
	}
	return nil
}

// ends wants the connection to end with nothing more on it.
func (c *connection) ends() error {
	err := c.ReadEnd()
	var more *harness.ResponseError
	if errors.As(err, &more) {
		return fmt.Errorf("instead of the end of the connection came %s", clip(more.Got))
	}
	return plain(err)
}

const (
	helloRequest = harness.HelloRequest
	greeting     = harness.HelloBody
)

// hello sends GET / and wants its answer.
func (c *connection) hello() error {
	if err := c.send(helloRequest); err != nil {
		return err
	}
	return c.expect(200, greeting)
}

func clip(b []byte) string {
	if len(b) > 60 {
		return fmt.Sprintf("%q… (%d bytes)", b[:60], len(b))
	}
	return fmt.Sprintf("%q", b)
}

// echoRequest is a POST with a body, its length declared.
func echoRequest(contentType, body string) string {
	return fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", contentType, len(body), body)
}

// chunkedRequest is a POST with a body in two chunks.
func chunkedRequest(body string) string {
	half := len(body) / 2
	return fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n",
		half, body[:half], len(body)-half, body[half:])
}

// drive sends n requests of a load over some connections in turn, as many at once as the load says, and checks the
// answers.
func drive(over []*connection, l load, n int) error {
	for _, c := range over {
		if l.socket && !c.upgraded {
			if err := c.upgrade(); err != nil {
				return err
			}
		}
	}
	for sent := 0; sent < n; sent += l.pipeline {
		batch := l.requests[(sent/l.pipeline)%len(l.requests)]
		c := over[(sent/l.pipeline)%len(over)]
		if err := c.send(strings.Repeat(batch.send, l.pipeline)); err != nil {
			return err
		}
		for range l.pipeline {
			err := error(nil)
			if l.socket {
				err = c.expectFrame(opBinary, batch.body)
			} else {
				err = c.expect(200, batch.body)
			}
			if err != nil {
				return fmt.Errorf("request %d of %s: %w", sent+1, l.name, err)
			}
		}
	}
	return nil
}
