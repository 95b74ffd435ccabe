package main

import (
	"time"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
	"github.com/qps-ladder/qps-ladder/shared/serve"
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

// idleState is what a connection knows about its deadline, and its place in the
// loop's list.
type idleState struct {
	phase    phase
	since    time.Duration // when the phase began, by the loop's clock
	progress time.Duration // when a byte last moved
	checked  time.Duration // when it was last checked whether bytes move
	unacked  int           // how many the client's kernel had not confirmed then

	previous, next *conn
	listed         bool
}

// idleList is a loop's connections in the order in which their phases began. It
// is intrusive: the links are in the connections, so that one can join, move and
// leave without an allocation or a search.
type idleList struct{ first, last *conn }

func (l *idleList) append(c *conn) {
	c.idle.previous, c.idle.next, c.idle.listed = l.last, nil, true
	if l.last == nil {
		l.first = c
	} else {
		l.last.idle.next = c
	}
	l.last = c
}

func (l *idleList) remove(c *conn) {
	if c.idle.previous == nil {
		l.first = c.idle.next
	} else {
		c.idle.previous.idle.next = c.idle.next
	}
	if c.idle.next == nil {
		l.last = c.idle.previous
	} else {
		c.idle.next.idle.previous = c.idle.previous
	}
	c.idle.previous, c.idle.next, c.idle.listed = nil, nil, false
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

// alarm says when it has to be looked at: at the deadline, but while answers wait
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

// The period of the scanner is a part of the shortest time-out, so that none is
// missed by much, within limits: a loop does not wake up for nothing all the time.
const (
	scansPerTimeout = 4
	shortestPeriod  = 10 * time.Millisecond
	longestPeriod   = time.Second
)

// shortestTimeout is the least time after which a connection can be over its
// deadline, or its socket has to be looked at, whatever its phase.
func shortestTimeout(config *serve.Config) time.Duration {
	return min(config.IdleTimeout, config.HeadTimeout, config.BodyTimeout, config.BodyTotal,
		config.WriteTimeout/4, config.WriteTotal, config.LingerTimeout)
}

// scan closes the connections whose time is over. Those at the front have waited
// longest; the first that cannot be over yet ends it.
func (l *loop) scan() {
	l.scanSet = false
	for c := l.idlers.first; c != nil && c.idle.since+l.shortest <= l.now; {
		next := c.idle.next // timedOut closes c, or moves it to the end
		if l.now >= c.alarm() && c.idle.phase != readingHead && c.idle.phase != readingBody {
			c.checkProgress()
		}
		if l.now >= c.deadline() {
			c.timedOut()
		}
		c = next
	}
	l.setScan()
}

// setScan sees to it that a scan comes, as long as there are connections: at most
// one timer call a period.
func (l *loop) setScan() {
	if l.scanSet || l.idlers.first == nil {
		return
	}
	l.scanSet = true
	period := min(max(l.shortest/scansPerTimeout, shortestPeriod), longestPeriod)
	netpoll.SetTimer(&l.counters, l.timer, period)
}

// startTimer notes when the connection began. It joins the list in watch, on its
// own loop's thread: opener may be another one's.
func (c *conn) startTimer(opener *netpoll.Counters, now time.Duration) error {
	c.idle = idleState{phase: idling, since: now, progress: now}
	return nil
}

// watch puts a connection that the loop has adopted into its list.
func (c *conn) watch() {
	c.idle.since = c.loop.now
	c.loop.idlers.append(c)
	c.loop.setScan()
}

func (c *conn) requestStarted() { c.enter(readingHead) }

func (c *conn) requestFinished() { c.enter(idling) }

// waitFor begins a phase that has to wait for the client.
func (c *conn) waitFor(p phase) {
	if c.idle.phase != p {
		c.enter(p)
		if p == writing || p == lingering {
			c.checkProgress() // later ones compare with this
		}
	}
}

// enter begins a phase: the connection is now the one that has waited least.
func (c *conn) enter(p phase) {
	c.idle.phase = p
	c.idle.since, c.idle.progress, c.idle.checked = c.loop.now, c.loop.now, c.loop.now
	if list := &c.loop.idlers; c.idle.listed && list.last != c {
		list.remove(c)
		list.append(c)
	}
}

// stopTimer takes the connection out of the list.
func (c *conn) stopTimer() {
	if c.idle.listed {
		c.loop.idlers.remove(c)
	}
}
