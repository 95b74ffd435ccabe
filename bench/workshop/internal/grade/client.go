package grade

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// connection is a client's side of one connection. Whatever it waits for, it waits answerLimit at most.
type connection struct {
	*net.TCPConn
	reader *bufio.Reader
}

func dial(address string) (*connection, error) {
	c, err := net.DialTimeout("tcp", address, answerLimit)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", plain(err))
	}
	tcp := c.(*net.TCPConn)
	return &connection{TCPConn: tcp, reader: bufio.NewReaderSize(tcp, 64<<10)}, nil
}

// dialSlow connects with a receive buffer that does not grow, so that a server soon finds the socket full.
// It holds some segments of the loopback's size: with less, the window could never open for one.
func dialSlow(address string) (*connection, error) {
	c, err := dial(address)
	if err == nil {
		err = c.SetReadBuffer(256 << 10)
	}
	return c, err
}

var (
	errEnded = errors.New("the server closed the connection")
	errReset = errors.New("the server reset the connection")
)

// plain is what went wrong, in the words of a person who waits for an answer.
func plain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("nothing came for %v", answerLimit)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errEnded
	case strings.Contains(err.Error(), "reset by peer"), strings.Contains(err.Error(), "broken pipe"):
		return errReset
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

func (c *connection) send(b ...string) error {
	c.SetWriteDeadline(time.Now().Add(answerLimit))
	_, err := io.WriteString(c.TCPConn, strings.Join(b, ""))
	return plain(err)
}

// answer is one answer.
type answer struct {
	status int
	header http.Header
	close  bool
	body   []byte
}

// answer reads one answer to a request that is not a HEAD.
func (c *connection) answer() (*answer, error) {
	c.SetReadDeadline(time.Now().Add(answerLimit))
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, plain(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, plain(err)
	}
	return &answer{status: response.StatusCode, header: response.Header, close: response.Close, body: body}, nil
}

// expect reads an answer and wants this status and body.
func (c *connection) expect(status int, body string) error {
	a, err := c.answer()
	if err != nil {
		return err
	}
	if a.status != status {
		return fmt.Errorf("the answer was %d, not %d", a.status, status)
	}
	if string(a.body) != body {
		if len(a.body) == len(body) && len(body) > 60 {
			at := 0
			for a.body[at] == body[at] {
				at++
			}
			return fmt.Errorf("the body differs from byte %d of %d on: %s, not %s", at, len(body), clip(a.body[at:]), clip([]byte(body[at:])))
		}
		return fmt.Errorf("the body was %s, not %s", clip(a.body), clip([]byte(body)))
	}
	return nil
}

// ends wants the connection to end with nothing more on it.
func (c *connection) ends() error {
	c.SetReadDeadline(time.Now().Add(answerLimit))
	rest, err := io.ReadAll(io.LimitReader(c.reader, 1024))
	if err != nil {
		return plain(err)
	}
	if len(rest) > 0 {
		return fmt.Errorf("instead of the end of the connection came %s", clip(rest))
	}
	return nil
}

const (
	helloRequest = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	greeting     = "Hello, World!"
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

// drive sends n requests of a load over c, as many at once as the load says, and checks the answers.
func (c *connection) drive(l load, n int) error {
	for sent := 0; sent < n; sent += l.pipeline {
		batch := l.requests[(sent/l.pipeline)%len(l.requests)]
		if err := c.send(strings.Repeat(batch.send, l.pipeline)); err != nil {
			return err
		}
		for range l.pipeline {
			if err := c.expect(200, batch.body); err != nil {
				return fmt.Errorf("request %d of %s: %w", sent+1, l.name, err)
			}
		}
	}
	return nil
}
