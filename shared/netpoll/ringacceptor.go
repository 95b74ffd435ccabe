package netpoll

import (
	"errors"
	"syscall"
	"time"
)

// RingAcceptor takes new connections from a listening socket that it owns, with a [Ring], and lives
// through the lack of descriptors as an [Acceptor] does: it neither spins, nor leaves clients
// without an answer as long as its reserve lasts. What a client is told for whom there is no room,
// its loop decides.
//
// It belongs to the thread that owns the Ring. A nil RingAcceptor is one without a listener: it
// accepts nothing.
type RingAcceptor struct {
	ring     *Ring
	counters *Counters
	listener int
	reserve  *reserve

	armed    bool      // an accept is on its way
	last     bool      // it is for one connection, in the place of the reserve
	paused   bool      // none is, as there is no descriptor
	earliest time.Time // it stays paused until then
	giveWay  time.Time // when a client that is refused leaves its descriptor to the next
	stopping bool
	closed   bool // the listener is
}

// NewRingAcceptor begins to accept from listener, as soon as r enters the kernel; c are the
// counters of the thread that owns r. The acceptor owns the listener from now on, also when
// NewRingAcceptor fails.
func NewRingAcceptor(c *Counters, r *Ring, listener int) (*RingAcceptor, error) {
	reserve, err := newReserve(c, reserveSize)
	if err != nil {
		Close(c, listener)
		return nil, err
	}
	a := &RingAcceptor{ring: r, counters: c, listener: listener, reserve: reserve}
	a.arm()
	return a, nil
}

// arm asks for connections: all that come, or one if the reserve's descriptor has been given up for
// it.
func (a *RingAcceptor) arm() {
	a.armed, a.paused = true, false
	if a.last = !a.reserve.full(); a.last {
		a.ring.AcceptOne(a.counters, 0, a.listener)
	} else {
		a.ring.Accept(a.counters, 0, a.listener)
	}
}

// Handle takes a completion of OpAccept. It gives the connection to take, or to refuse where it has
// the last descriptor there is; each owns the descriptor then. take answers [ErrNoRoom] for one
// that is one too many: it is refused.
func (a *RingAcceptor) Handle(done *Completion, take func(fd int) error, refuse func(fd int)) {
	fd, err := done.Result()
	a.armed = done.More()
	switch {
	case err == nil && a.last && a.reserve.refill(a.counters) != nil:
		refuse(fd)
		a.pause(0)
		a.giveWay = time.Now().Add(acceptPause)
	case err == nil:
		a.offer(fd, take, refuse)
	case a.stopping || passing(err):
	case IsExhausted(err) && a.reserve.full():
		// There may be no connection yet: the kernel looks for a descriptor first. The next one
		// gets the reserve's.
		a.reserve.release(a.counters)
	default:
		a.pause(acceptPause)
	}
	switch {
	case a.armed:
	case a.stopping:
		a.finish(take, refuse)
	case !a.paused:
		a.arm()
	}
}

func (a *RingAcceptor) offer(fd int, take func(fd int) error, refuse func(fd int)) {
	switch err := take(fd); {
	case err == nil:
	case err == ErrNoRoom:
		refuse(fd)
	default:
		Close(a.counters, fd)
	}
}

// passing says that an accept has failed for a connection that is gone again: accept(2) advises to
// take the next one.
func passing(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ECONNABORTED, syscall.EPROTO, syscall.EINTR} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// pause stops accepting, for so long at least.
func (a *RingAcceptor) pause(least time.Duration) {
	a.paused, a.earliest = true, time.Now().Add(least)
}

// Timeout is for Ring.Enter: how long to wait before Maintain is to be called, below zero for ever.
func (a *RingAcceptor) Timeout() time.Duration {
	if a == nil || !a.paused {
		return -1
	}
	return acceptPause
}

// Maintain is called once a turn. It accepts again if there is a descriptor for the reserve. Until
// then clients wait in the kernel's queue; one that was refused, and stays, has to leave after a
// while: evict closes the oldest, in this turn or the next.
func (a *RingAcceptor) Maintain(evict func()) {
	if a == nil || !a.paused || time.Now().Before(a.earliest) {
		return
	}
	switch {
	case a.reserve.refill(a.counters) == nil:
		a.arm()
	case !time.Now().Before(a.giveWay):
		evict()
	}
}

// Stop ends accepting: what waits is taken, and the listener closed. That may take until the kernel
// has said that it accepts no more: see Closed. The rest is as with [Acceptor.Stop].
func (a *RingAcceptor) Stop(take func(fd int) error, refuse func(fd int)) {
	switch {
	case a == nil || a.stopping:
	case a.armed:
		a.stopping = true
		a.ring.Cancel(a.counters, OpAccept, 0)
	default:
		a.stopping = true
		a.finish(take, refuse)
	}
}

// finish takes those that wait, with the plain call: the kernel does nothing for the ring any more.
func (a *RingAcceptor) finish(take func(fd int) error, refuse func(fd int)) {
	for n := 0; n < stopTurn && !a.paused; n++ {
		fd, err := Accept(a.counters, a.listener)
		if err != nil {
			break
		}
		a.offer(fd, take, refuse)
	}
	a.Close()
}

// Closed says that the listener is closed: all that it had has been taken.
func (a *RingAcceptor) Closed() bool { return a == nil || a.closed }

// Close closes the listener. It does nothing after Stop has ended.
func (a *RingAcceptor) Close() {
	if a.Closed() {
		return
	}
	a.closed, a.paused = true, false
	Close(a.counters, a.listener)
	a.reserve.close(a.counters)
}
