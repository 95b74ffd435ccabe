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
	lingering                // for the client to stop sending
)

// idleState is what a connection knows about its deadline.
type idleState struct {
	phase    phase
	since    time.Duration // when the phase began, by the loop's clock
	progress time.Duration // when a byte last moved
	checked  time.Duration // when it was last checked whether bytes move
	unacked  int           // how many the client's kernel had not confirmed then
	timer    int           // a timerfd, registered once, for as long as the connection lives
	fires    time.Duration // when the timer will fire: never later than the alarm
}

// deadline says when the present phase has lasted long enough.
func (c *conn) deadline() time.Duration {
	config, idle := c.loop.config, &c.idle
	switch idle.phase {
	case idling:
		// A client that still takes its answer does not rest.
		return idle.progress + config.IdleTimeout
	case readingHead:
		// From the first byte, so that a client cannot stretch it by dribbling.
		return idle.since + config.HeadTimeout
	case readingBody:
		return min(idle.progress+config.BodyTimeout, idle.since+config.BodyTotal)
	case writing:
		return min(idle.progress+config.WriteTimeout, idle.since+config.WriteTotal)
	default:
		return min(idle.progress+config.LingerTimeout, idle.since+config.WriteTotal)
	}
}

// alarm says when the timer has to fire: at the deadline, but while answers wait
// for the client four times in that period. A reader that is slow but steady may
// give no event for minutes: the kernel reports room when a third is free.
func (c *conn) alarm() time.Duration {
	if c.idle.phase == writing {
		return min(c.deadline(), c.idle.checked+c.loop.config.WriteTimeout/4)
	}
	return c.deadline()
}

// checkProgress notices whether the client takes bytes, by what the socket still
// holds for it.
func (c *conn) checkProgress() {
	unacked, err := netpoll.Unacknowledged(&c.loop.counters, c.fd)
	if err == nil && unacked > 0 && unacked != c.idle.unacked {
		c.idle.progress = c.loop.now
	}
	c.idle.unacked, c.idle.checked = unacked, c.loop.now
}

// startTimer makes the connection's timer; opener counts for the thread that
// accepted it.
func (c *conn) startTimer(opener *netpoll.Counters, now time.Duration) error {
	timer, err := netpoll.NewTimer(opener)
	if err != nil {
		return err
	}
	c.idle = idleState{phase: idling, since: now, progress: now, timer: timer}
	c.idle.fires = c.deadline()
	netpoll.SetTimer(opener, timer, c.idle.fires-now)
	return nil
}

// requestStarted stores the time, and leaves the timer alone: a request that
// has arrived whole is answered long before any deadline.
func (c *conn) requestStarted() { c.enter(readingHead) }

// requestFinished stores the time. The timer, set for an earlier request, will
// mostly fire too early; timerFired then sets it for what is left.
func (c *conn) requestFinished() {
	c.enter(idling)
	c.setTimerIfSooner()
}

// waitFor sets the deadline of a phase that has to wait for the client.
func (c *conn) waitFor(p phase) {
	if c.idle.phase != p {
		c.enter(p)
		if p == writing || p == lingering {
			c.checkProgress() // later ones compare with this
		}
	}
	c.setTimerIfSooner()
}

// setTimerIfSooner sets the timer if it would fire too late: it was set for a
// longer wait, or has fired and is spent.
func (c *conn) setTimerIfSooner() {
	if c.alarm() < c.idle.fires || c.idle.fires <= c.loop.now {
		c.setTimer()
	}
}

func (c *conn) enter(p phase) {
	c.idle.phase = p
	c.idle.since, c.idle.progress, c.idle.checked = c.loop.now, c.loop.now, c.loop.now
}

// setTimer sets the timer for the present phase. Zero would disarm it, so a time
// that has just passed gets the shortest one there is.
func (c *conn) setTimer() {
	c.idle.fires = c.alarm()
	netpoll.SetTimer(&c.loop.counters, c.idle.timer, max(c.idle.fires-c.loop.now, 1))
}

// timerFired is called by the loop. Mostly it is too early: the timer was set for
// an earlier request, or a byte has moved since. Then it is set for what is left,
// not for a whole period, or a connection could live nearly twice as long as it may.
func (c *conn) timerFired() {
	switch c.idle.phase {
	case idling, writing, lingering:
		c.checkProgress()
	}
	if c.loop.now >= c.deadline() {
		c.timedOut()
	} else {
		c.setTimer()
	}
}

// stopTimer gives the timer's descriptor back.
func (c *conn) stopTimer() {
	netpoll.Close(&c.loop.counters, c.idle.timer)
}
