package netpoll

import "time"

const (
	// acceptTurn is how many connections are accepted before those that are open get a turn.
	acceptTurn = 256

	// stopTurn is how many connections Stop takes at most. The queues of the servers are half as long, so all that wait are among
	// them; and clients that connect as fast as they are taken cannot keep a loop from ending.
	stopTurn = 8192

	// acceptPause is when a listener that found no descriptor left is tried again, even when nobody says that one has become
	// free: another part of the process may have closed it.
	acceptPause = 100 * time.Millisecond

	// reserveSize is what a connection takes that is to be told that there is no room: its socket and its timer.
	reserveSize = 2
)

// Acceptor takes new connections from a listening socket that it owns, and lives through the lack of descriptors: it neither
// spins on a listener that stays readable, nor leaves clients without an answer as long as its [Reserve] lasts.
//
// It belongs to the thread that waits with its Poller. A nil Acceptor is one without a listener: it accepts nothing.
type Acceptor struct {
	poller   *Poller
	counters *Counters
	listener int
	stopped  bool // the listener is closed
	reserve  *Reserve
	paused   bool
	earliest time.Time // Resume does nothing before
}

// NewAcceptor registers the listener with p, level-triggered; c are the counters of the thread that owns p. The acceptor owns
// the listener from now on, also when NewAcceptor fails.
func NewAcceptor(c *Counters, p *Poller, listener int) (*Acceptor, error) {
	reserve, err := NewReserve(c, reserveSize)
	if err != nil {
		Close(c, listener)
		return nil, err
	}
	if err := p.Add(c, listener, 0, Readable); err != nil {
		reserve.Close(c)
		Close(c, listener)
		return nil, err
	}
	return &Acceptor{poller: p, counters: c, listener: listener, reserve: reserve}, nil
}

// Has says whether an event is about the listener. One that Wait had returned before Stop still is, and Accept does nothing
// then. Others with the number of a listener that is closed have a generation other than 0.
func (a *Acceptor) Has(event *Event) bool {
	return a != nil && event.FD() == a.listener && event.Generation() == 0
}

// Accept takes the connections that wait, a bounded number of them, and gives each to take, which owns the descriptor when it
// answers nil. When it fails for lack of descriptors it is called once more with reserved set, after some that were held back
// have become free: the connection shall then be told that there is no room, and closed. Accepting pauses until Resume.
func (a *Acceptor) Accept(take func(fd int, reserved bool) error) {
	if !a.stopped {
		a.accept(acceptTurn, take)
	}
}

func (a *Acceptor) accept(limit int, take func(fd int, reserved bool) error) {
	for range limit {
		fd, err := Accept(a.counters, a.listener)
		reserved := false
		if IsExhausted(err) && a.useReserve() {
			reserved = true
			fd, err = Accept(a.counters, a.listener)
		}
		if err == ErrWouldBlock {
			return
		}
		if err != nil {
			// The kernel lacks something else, or forbids it, and may do so for long: free descriptors are no reason to
			// try again at once.
			a.pause()
			a.earliest = time.Now().Add(acceptPause)
			return
		}
		err = take(fd, reserved)
		if IsExhausted(err) && !reserved && a.useReserve() {
			err = take(fd, true)
		}
		if err != nil {
			Close(a.counters, fd)
		}
		if a.paused {
			return
		}
	}
}

// useReserve frees the descriptors that were held back, if they still are, and pauses.
func (a *Acceptor) useReserve() bool {
	a.pause()
	held := a.reserve.Full()
	a.reserve.Release(a.counters)
	return held
}

// pause stops waiting for the listener, which would stay readable and wake the loop for ever.
func (a *Acceptor) pause() {
	if !a.paused {
		a.poller.Modify(a.counters, a.listener, 0, 0)
		a.paused = true
	}
}

// Paused says that the acceptor waits for descriptors to become free.
func (a *Acceptor) Paused() bool { return a != nil && a.paused }

// Timeout is for Poller.Wait: how long to wait before Resume is to be tried, below zero for ever.
func (a *Acceptor) Timeout() time.Duration {
	if a.Paused() {
		return acceptPause
	}
	return -1
}

// Resume accepts again if as many descriptors are free as the reserve lacks; else, and for a while after accepting has failed
// with the reserve's help too, the acceptor stays paused.
func (a *Acceptor) Resume() {
	if a.Paused() && !time.Now().Before(a.earliest) && a.reserve.Refill(a.counters) == nil &&
		a.poller.Modify(a.counters, a.listener, 0, Readable) == nil {
		a.paused = false
	}
}

// Stop gives all connections that wait to take, as Accept does, and closes the listener. Those that come
// meanwhile are taken too, but not for ever. The kernel resets what is left, and a handshake that completes before the close,
// unless net.ipv4.tcp_migrate_req (ip-sysctl) lets it move to another listener on the port.
func (a *Acceptor) Stop(take func(fd int, reserved bool) error) {
	if a == nil || a.stopped {
		return
	}
	if !a.paused {
		a.accept(stopTurn, take)
	}
	a.paused = false
	Close(a.counters, a.listener)
	a.reserve.Close(a.counters)
	a.stopped = true
}
