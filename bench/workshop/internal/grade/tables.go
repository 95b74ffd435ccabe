package grade

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	special["threads that have it open"] = specialFigure{"connection", threadsOfConnections}
	behaviour("nobody-listens", "a server that stops listens no more, while it still answers what has arrived", nobodyListens)
	behaviour("collects", "the garbage of a loop that allocates is collected while it serves", serving(collects, "-workers", "2"))
}

// threadsOfConnections is how many threads have the descriptor of a connection, of many to several loops: the most.
func threadsOfConnections(s *Subject) (float64, error) {
	most := 0
	err := s.with(func(server *Server) error {
		for range 60 {
			c, err := server.dial()
			if err != nil {
				return err
			}
			if err := c.hello(); err != nil {
				return err
			}
			_, port, err := net.SplitHostPort(c.TCP.LocalAddr().String())
			if err != nil {
				return err
			}
			n, err := threadsOf(server.PID(), port)
			if err != nil {
				return err
			}
			most = max(most, n)
		}
		return nil
	}, "-workers", fmt.Sprint(listenerWorkers))
	return float64(most), err
}

// nobodyListens stops a server while one of its loops, each in turn, waits for the rest of a body.
func nobodyListens(s *Subject) error {
	for range 6 { // which loop it is, the kernel chooses
		err := s.with(func(server *Server) error {
			c, err := server.dial()
			if err != nil {
				return err
			}
			if err := c.send("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\no"); err != nil {
				return err
			}
			if err := server.Signal(syscall.SIGTERM); err != nil {
				return err
			}
			if err := server.refuses(); err != nil {
				return err
			}
			if err := c.send("k"); err != nil {
				return err
			}
			return c.expect(200, "ok")
		}, "-workers", fmt.Sprint(listenerWorkers), "-grace", "30s")
		if err != nil {
			return err
		}
	}
	return nil
}

// refuses waits until the server refuses connections, many in a row: some listeners may be gone before others.
func (s *Server) refuses() error {
	const inARow = 40
	until := time.Now().Add(answerLimit / 2)
	for refused := 0; refused < inARow; {
		c, err := harness.Dial(s.Ready.Address)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			refused++
			continue
		case err == nil:
			c.Close()
		}
		if time.Now().After(until) {
			if err == nil {
				err = errors.New("the kernel still takes connections, which nobody accepts")
			}
			return fmt.Errorf("%v after the signal: %w", answerLimit/2, err)
		}
		refused = 0
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// collects has two loops allocate, for large bodies, much more than the heap has.
func collects(server *Server) error {
	body := strings.Repeat("garbage ", 100_000)
	for range 12 {
		c, err := server.dial()
		if err != nil {
			return err
		}
		for range 12 {
			if err := c.send(echoRequest("text/plain", body)); err != nil {
				return err
			}
			if err := c.expect(200, body); err != nil {
				return err
			}
		}
		c.Close()
	}
	return nil
}
