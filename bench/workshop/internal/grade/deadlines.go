package grade

import (
	"fmt"
	"time"
)

func init() {
	behaviour("idle-deadline", "an idle connection is closed: not before its time, and not a period late", serving(idleDeadline, "-idle-timeout", idlePeriod.String()))
}

const (
	idlePeriod = 2 * time.Second
	// clockSlack is for a clock that was read a moment before the packet came.
	clockSlack = 20 * time.Millisecond
)

// idleDeadline uses a connection shortly after it was opened. Who then waits a full period from when the
// first one is over closes it two periods after the opening, and not a moment before.
func idleDeadline(server *Server) error {
	opened := time.Now()
	c, err := server.dial()
	if err != nil {
		return err
	}
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
	return nil
}
