package suite

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

const (
	// helloRequest is the request that everything is measured with, lastHello the same as a client's last.
	helloRequest = harness.HelloRequest
	lastHello    = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	// largest is the request with the largest answer, 16 MiB, more than sockets hold.
	largest = "GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n"
)

// client is one side of a connection, whose answers are held to the contract.
type client struct{ *harness.Conn }

func connect(address string) (*client, error) { return connectWith(address, 0) }

// connectWith connects with a receive buffer of that size; 0 leaves it to the kernel.
func connectWith(address string, receiveBuffer int) (*client, error) {
	dial := func() (*harness.Conn, error) { return harness.Dial(address) }
	if receiveBuffer > 0 {
		dial = func() (*harness.Conn, error) { return harness.DialWindow(address, receiveBuffer) }
	}
	c, err := dial()
	if err != nil {
		return nil, err
	}
	c.TCP.SetDeadline(c.Opened.Add(2 * patience)) // for what is read or written past it
	return &client{c}, nil
}

// dial connects to a server; the connection ends with the test.
func dial(t T, s *Server) *client {
	t.Helper()
	c, err := connect(s.Ready.Address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *client) send(t T, text string) {
	t.Helper()
	require.NoError(t, c.Send(text))
}

// answer reads one answer and holds it to what all answers must be.
func (c *client) answer(head bool) (*Answer, error) {
	r, err := c.ReadResponse(head)
	if err != nil {
		return nil, err
	}
	return CheckAnswer(r)
}

// read reads one answer and holds it to what is expected. Between them, a second of clock drift is forgiven.
func (c *client) read(e Expected) error {
	answer, err := c.answer(e.Bodiless)
	if err != nil {
		return fmt.Errorf("want a %d: %w", e.Status, err)
	}
	if err := e.Check(answer); err != nil {
		return err
	}
	return answer.CheckDate(c.Opened, time.Now(), time.Second)
}

func (c *client) expect(t T, e Expected) {
	t.Helper()
	require.NoError(t, c.read(e))
}

func (c *client) expectEnd(t T) {
	t.Helper()
	require.NoError(t, c.ReadEnd())
}

// expectLast reads the answers to so many GET /, the last of which says that it is the last, and the end.
func (c *client) expectLast(t T, requests int) {
	t.Helper()
	for i := range requests {
		want := Hello()
		if i == requests-1 {
			want = closing(want)
		}
		require.NoError(t, c.read(want), "answer %d", i)
	}
	c.expectEnd(t)
}

// hello sends GET / and reads its answer: the connection is open, and at the start of a request.
func (c *client) hello(t T) {
	t.Helper()
	require.NoError(t, c.tryHello())
}

func (c *client) tryHello() error {
	if err := c.Send(helloRequest); err != nil {
		return err
	}
	return c.read(Hello())
}

// ended says whether err is that the other side has ended the connection, in order or not, and not
// inside an answer.
func ended(err error) bool { return harness.Gone(err) && !errors.Is(err, io.ErrUnexpectedEOF) }

// expectServed requires that the server answers somebody new.
func (s *Server) expectServed(t T) {
	t.Helper()
	require.NoError(t, s.tryServed())
}

func (s *Server) tryServed() error {
	c, err := connect(s.Ready.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.tryHello()
}
