package main

import (
	"time"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// A phase is what a connection waits for. Each has a deadline of its own.
type phase uint8

const (
	idling      phase = iota // for the first byte of a request
	readingHead              // for the rest of a head
	readingBody              // for the rest of a body
	writing                  // for the client to take what it was sent
	refusing                 // for the first byte of a request that there is no room for
	lingering                // for the client to stop sending
)

// idleState is what a connection knows about its deadline.
type idleState struct {
	phase    phase
	since    time.Duration // when the phase began, by the loop's clock
	progress time.Duration // when a byte last moved
	timer    int           // a timerfd, registered once, for as long as the connection lives
}

// deadline says when the present phase has lasted long enough.
func (c *conn) deadline() time.Duration {
	config, idle := c.loop.config, &c.idle
	switch idle.phase {
	case idling:
		return idle.since + config.IdleTimeout
	case readingHead:
		// From the first byte, so that a client cannot stretch it by dribbling.
		return idle.since + config.HeadTimeout
	case readingBody:
		return min(idle.progress+config.BodyTimeout, idle.since+config.BodyTotal)
	case writing:
		return idle.progress + config.WriteTimeout
	default:
		// A client that is refused has as long to speak as to leave.
		return idle.since + config.LingerTimeout
	}
}

// startTimer makes the connection's timer; opener counts for the thread that
// accepted it.
func (c *conn) startTimer(opener *netpoll.Counters, now time.Duration) error {
	timer, err := netpoll.NewTimer(opener)
	if err != nil {
		return err
	}
	c.idle = idleState{phase: idling, since: now, progress: now, timer: timer}
	if c.noRoom {
		c.idle.phase = refusing
	}
	netpoll.SetTimer(opener, timer, c.deadline()-now)
	return nil
}

// requestStarted stops the clock of a connection that was idle, as the servers
// of the source documents do.
func (c *conn) requestStarted() {
	c.enter(readingHead)
	netpoll.SetTimer(&c.loop.counters, c.idle.timer, 0)
}

// answered starts it again, for the next request.
func (c *conn) answered() {
	c.enter(idling)
	c.setTimer()
}

// waitFor sets the deadline of a phase that has to wait for the client.
func (c *conn) waitFor(p phase) {
	if c.idle.phase != p {
		c.enter(p)
	}
	c.setTimer()
}

func (c *conn) enter(p phase) {
	c.idle.phase, c.idle.since, c.idle.progress = p, c.loop.now, c.loop.now
}

// setTimer sets the timer for the deadline of the present phase. Zero would
// disarm it, so a deadline that has just passed gets the shortest time there is.
func (c *conn) setTimer() {
	netpoll.SetTimer(&c.loop.counters, c.idle.timer, max(c.deadline()-c.loop.now, 1))
}

// timerFired is called by the loop. The timer may have been set anew after it
// fired and before the loop came here; then the deadline is not over.
func (c *conn) timerFired() {
	if c.loop.now >= c.deadline() {
		c.timedOut()
	}
}

// stopTimer gives the timer's descriptor back.
func (c *conn) stopTimer() {
	netpoll.Close(&c.loop.counters, c.idle.timer)
}
