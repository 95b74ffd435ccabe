package grade

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	behaviour("own-listeners", "each loop has a listener of its own and serves what it accepts", serving(ownListeners, "-workers", fmt.Sprint(listenerWorkers)))
	behaviour("acceptor", "-acceptor still makes one loop accept for all", serving(oneAcceptor, "-workers", fmt.Sprint(listenerWorkers), "-acceptor"))
}

const listenerWorkers = 3

func ownListeners(server *Server) error {
	n, err := server.listeners()
	if err != nil {
		return err
	}
	if n < listenerWorkers {
		return fmt.Errorf("%d loops have %d listening %s between them", listenerWorkers, n, plural(n, "socket"))
	}
	// The kernel spreads connections by a hash of the client's address: of so many, each loop gets some.
	if err := server.helloOver(120); err != nil {
		return err
	}
	r, ok := server.await(func(r harness.Reading) bool { return r.Total.Requests >= 120 })
	if !ok {
		return fmt.Errorf("120 requests were answered, but the counters show %d", r.Total.Requests)
	}
	serving := 0
	for _, loop := range r.Loops {
		if loop.Requests > 0 && loop.Accepts > loop.AcceptAgains {
			serving++
		}
	}
	if serving < listenerWorkers {
		return fmt.Errorf("of %d loops only %d both accept and answer", listenerWorkers, serving)
	}
	return nil
}

func oneAcceptor(server *Server) error {
	n, err := server.listeners()
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("with -acceptor there are %d listening sockets", n)
	}
	if err := server.helloOver(30); err != nil {
		return fmt.Errorf("with -acceptor: %w", err)
	}
	r, _ := server.await(func(r harness.Reading) bool { return r.Total.Requests >= 30 })
	serving := 0
	for _, loop := range r.Loops {
		if loop.Requests > 0 {
			serving++
		}
	}
	if serving < listenerWorkers {
		return fmt.Errorf("with -acceptor only %d of %d loops answer", serving, listenerWorkers)
	}
	return nil
}

// helloOver sends one request over each of n connections that are open at the same time.
func (s *Server) helloOver(n int) error {
	for range n {
		c, err := dial(s.Ready.Address)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.hello(); err != nil {
			return err
		}
	}
	return nil
}

// listeners is how many sockets listen on the server's own port.
func (s *Server) listeners() (n int, err error) {
	ports, err := listening(s.PID())
	_, own, _ := net.SplitHostPort(s.Ready.Address)
	for _, port := range ports {
		if port == own {
			n++
		}
	}
	return n, err
}

func plural(n int, word string) string {
	switch {
	case n == 1:
		return word
	case word == "process":
		return "processes"
	}
	return word + "s"
}

// until is how long it takes to wait for the end of a connection.
func (c *connection) until(limit time.Duration) (time.Time, error) {
	c.TCP.SetReadDeadline(time.Now().Add(limit))
	_, err := c.Reader.ReadByte()
	now := time.Now()
	if err == nil {
		return now, errors.New("a byte came that nobody asked for")
	}
	switch {
	case errors.Is(plain(err), errEnded):
		return now, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return now, errors.New("it is still open")
	}
	return now, plain(err)
}
