package grade

import (
	"errors"
	"fmt"
	"time"
)

func init() {
	behaviour("idle-deadline", "an idle connection is closed: not before its time, and not a period late", idleDeadline)
	behaviour("head-deadline", "a head that does not come to its end is answered 408", headDeadline)
	behaviour("busy-stays", "a connection in use outlives the idle timeout", busyStays)
}

const (
	idlePeriod = 2 * time.Second
	// clockSlack is for a clock that was read a moment before the packet came.
	clockSlack = 20 * time.Millisecond
)

// idleDeadline uses a connection shortly after it was opened. Who then waits a full period from when the
// first one is over closes it two periods after the opening, and not a moment before.
func idleDeadline(s *Subject) error {
	server, err := Start(s.Binary, "-workers", "1", "-idle-timeout", idlePeriod.String())
	if err != nil {
		return err
	}
	defer server.Kill()
	opened := time.Now()
	c, err := dial(server.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	time.Sleep(idlePeriod / 10)
	used := time.Now()
	if err := c.hello(); err != nil {
		return err
	}
	closed, err := c.until(2*idlePeriod - time.Since(opened) - 100*time.Millisecond)
	if err != nil {
		return fmt.Errorf("with -idle-timeout %v, %v after its last request: %w", idlePeriod, time.Since(used).Round(100*time.Millisecond), err)
	}
	if early := used.Add(idlePeriod).Sub(closed); early > clockSlack {
		return fmt.Errorf("with -idle-timeout %v it was closed %v after its last request", idlePeriod, closed.Sub(used).Round(10*time.Millisecond))
	}
	return server.Stop()
}

func busyStays(s *Subject) error {
	const period = time.Second
	server, err := Start(s.Binary, "-workers", "1", "-idle-timeout", period.String())
	if err != nil {
		return err
	}
	defer server.Kill()
	c, err := dial(server.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for begin := time.Now(); time.Since(begin) < period*3/2; time.Sleep(period / 8) {
		if err := c.hello(); err != nil {
			return fmt.Errorf("with -idle-timeout %v and a request every %v, after %v: %w", period, period/8, time.Since(begin).Round(100*time.Millisecond), err)
		}
	}
	return server.Stop()
}

func headDeadline(s *Subject) error {
	const limit = 600 * time.Millisecond
	server, err := Start(s.Binary, "-workers", "1", "-head-timeout", limit.String(), "-linger-timeout", "100ms")
	if err != nil {
		return err
	}
	defer server.Kill()
	c, err := dial(server.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	// After a whole request, so that it is no longer the timer of a new connection.
	if err := c.hello(); err != nil {
		return err
	}
	sent := time.Now()
	if err := c.send("GET / HTTP/1.1\r\nHo"); err != nil {
		return err
	}
	a, err := c.answer()
	switch {
	case err != nil:
		return fmt.Errorf("with -head-timeout %v: %w", limit, err)
	case a.status != 408:
		return fmt.Errorf("the answer was %d", a.status)
	case time.Since(sent) < limit-clockSlack:
		return fmt.Errorf("with -head-timeout %v it came after %v", limit, time.Since(sent).Round(10*time.Millisecond))
	case !a.close:
		return errors.New("it did not say that the connection closes")
	}
	return server.Stop()
}
