package hostile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/suite"
)

const (
	hello     = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	lastHello = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	// largest is the request with the largest answer, 16 MiB, more than sockets hold.
	largest = "GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n"
)

// client is one side of a connection. One goroutine may send while another reads.
type client struct {
	*net.TCPConn
	reader *bufio.Reader
}

func connect(address string) (*client, error) { return connectWith(address, 0) }

// connectWith connects with a receive buffer of that size (socket(7), SO_RCVBUF); 0 leaves it to the kernel. It has to be set
// before the connection is made, as the first window is announced then.
func connectWith(address string, receiveBuffer int) (*client, error) {
	dialer := net.Dialer{Timeout: patience}
	if receiveBuffer > 0 {
		dialer.Control = func(_, _ string, raw syscall.RawConn) (err error) {
			controlErr := raw.Control(func(fd uintptr) {
				err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, receiveBuffer)
			})
			return errors.Join(controlErr, err)
		}
	}
	c, err := dialer.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(2 * patience))
	return &client{c.(*net.TCPConn), bufio.NewReader(c)}, nil
}

// dial connects and closes with the test.
func dial(t testing.TB, s *suite.Server) *client {
	t.Helper()
	c, err := connect(s.Addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *client) send(text string) error {
	_, err := io.WriteString(c.TCPConn, text)
	return err
}

// expect reads one answer.
func (c *client) expect(want suite.Expected) error {
	answer, err := suite.ReadAnswer(c.reader, want.Bodiless)
	if err != nil {
		return fmt.Errorf("want a %d: %w", want.Status, err)
	}
	return want.Check(answer)
}

// hello asks for / and reads the answer.
func (c *client) hello() error {
	if err := c.send(hello); err != nil {
		return err
	}
	return c.expect(suite.Hello())
}

// end reads to the end of the connection: nothing may come before it, and no reset in its place.
func (c *client) end() error {
	rest, err := io.ReadAll(io.LimitReader(c.reader, 1000))
	if err == nil && len(rest) > 0 {
		return fmt.Errorf("want the end of the connection, got %q", rest)
	}
	return err
}

// reset ends the connection with a reset, see socket(7), SO_LINGER.
func (c *client) reset() {
	c.SetLinger(0)
	c.Close()
}

// gone says whether err is the end of the connection by the other side's doing, in order or not.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || wasReset(err)
}

func wasReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

func closing(e suite.Expected) suite.Expected {
	e.Connection = "close"
	return e
}

func someBytes(n int) suite.Expected {
	return suite.Expected{Status: 200, Type: "application/octet-stream", Length: n}
}

// served requires that somebody new is served.
func served(t testing.TB, s *suite.Server) {
	t.Helper()
	c, err := connect(s.Addr)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.hello())
}
