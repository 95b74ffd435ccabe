package suite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// helloRequest is the request that everything is measured with.
const helloRequest = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

// connection is a client's side of one connection. One goroutine may write while another reads.
type connection struct {
	net    *net.TCPConn
	reader *bufio.Reader
	opened time.Time // when nothing had been sent yet
}

func connect(address string) (*connection, error) {
	opened := time.Now()
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, err
	}
	// One deadline for all: no test keeps a connection for longer.
	c.SetDeadline(opened.Add(2 * patience))
	return &connection{net: c.(*net.TCPConn), reader: bufio.NewReader(c), opened: opened}, nil
}

// dial connects and closes with the test.
func dial(t testing.TB, address string) *connection {
	t.Helper()
	c, err := connect(address)
	require.NoError(t, err)
	t.Cleanup(c.close)
	return c
}

func (c *connection) close() { c.net.Close() }

func (c *connection) write(b []byte) error {
	_, err := c.net.Write(b)
	return err
}

func (c *connection) send(t testing.TB, text string) {
	t.Helper()
	require.NoError(t, c.write([]byte(text)))
}

// reset closes with RST instead of FIN, see socket(7), SO_LINGER.
func (c *connection) reset() {
	c.net.SetLinger(0)
	c.net.Close()
}

// read reads one answer and holds it to what is expected. Between them, a second of clock drift is forgiven.
func (c *connection) read(e Expected) error {
	answer, err := ReadAnswer(c.reader, e.Bodiless)
	if err != nil {
		return fmt.Errorf("want a %d: %w", e.Status, err)
	}
	if err := e.Check(answer); err != nil {
		return err
	}
	return answer.CheckDate(c.opened, time.Now(), time.Second)
}

func (c *connection) expect(t testing.TB, e Expected) {
	t.Helper()
	require.NoError(t, c.read(e))
}

// end reads to the end of the connection, before which nothing may come: not a byte, and no reset.
func (c *connection) end() error {
	rest, err := io.ReadAll(io.LimitReader(c.reader, 4096))
	if err == nil && len(rest) == 0 {
		return nil
	}
	if len(rest) > 0 {
		return fmt.Errorf("want the end of the connection, got %s", clip(rest))
	}
	return fmt.Errorf("want the end of the connection: %w", err)
}

func (c *connection) expectEnd(t testing.TB) {
	t.Helper()
	require.NoError(t, c.end())
}

// hello sends GET / and reads its answer: the connection is open, and at the start of a request.
func (c *connection) hello(t testing.TB) {
	t.Helper()
	require.NoError(t, c.tryHello())
}

func (c *connection) tryHello() error {
	if err := c.write([]byte(helloRequest)); err != nil {
		return err
	}
	return c.read(Hello())
}

// gone reports whether err says that the other side has closed or reset the connection.
func gone(err error) bool {
	if errors.Is(err, io.EOF) {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout() && (wasReset(err) || strings.Contains(err.Error(), "broken pipe"))
}

func wasReset(err error) bool { return err != nil && strings.Contains(err.Error(), "reset by peer") }

// expectServed requires that the server answers somebody new.
func (s *Server) expectServed(t testing.TB) {
	t.Helper()
	c, err := connect(s.Addr)
	require.NoError(t, err)
	defer c.close()
	c.hello(t)
}
