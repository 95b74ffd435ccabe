package netpoll

import (
	"errors"
	"time"
)

const (
	// acceptTurn is how many connections are accepted before those that are open get a turn.
	acceptTurn = 256

	// stopTurn is how many connections Stop takes at most. The queues of the servers are half as
	// long, so all that wait are among them; and clients that connect as fast as they are taken
	// cannot keep a loop from ending.
	stopTurn = 8192

	// acceptPause is when a listener that found no descriptor left is tried again, even when nobody
	// says that one has become free: another part of the process may have closed it.
	acceptPause = 100 * time.Millisecond

	// reserveSize is what a connection takes that is to be told that there is no room: its socket.
	reserveSize = 1
)

// ErrNoRoom is what the function that takes connections answers for one that is one too many.
var ErrNoRoom = errors.New("no room for another connection")

// Acceptor takes new connections from a listening socket that it owns, and lives through the lack of
// descriptors: it neither spins on a listener that stays readable, nor leaves clients without an
// answer as long as its reserve lasts. It tells clients itself that there is no room for them.
//
// It belongs to the thread that waits with its Poller, and knows its events by their generation, 0,
// which is nobody else's. A nil Acceptor is one without a listener: it accepts nothing.
type Acceptor struct {
	poller   *Poller
	counters *Counters
	listener int
	stopped  bool // the listener is closed
	reserve  *reserve
	paused   bool
	earliest time.Time // it stays paused until then
	giveWay  time.Time // when a client that is refused leaves its descriptor to the next
	refused  refusals
}

// NewAcceptor registers the listener with p, level-triggered; c are the counters of the thread that
// owns p. The acceptor owns the listener from now on, also when NewAcceptor fails.
func NewAcceptor(c *Counters, p *Poller, listener int, refusal Refusal) (*Acceptor, error) {
	reserve, err := newReserve(c, reserveSize)
	if err != nil {
		Close(c, listener)
		return nil, err
	}
	if err := p.Add(c, listener, 0, Readable); err != nil {
		reserve.close(c)
		Close(c, listener)
		return nil, err
	}
	return &Acceptor{
		poller: p, counters: c, listener: listener, reserve: reserve,
		refused: refusals{Refusal: refusal, poller: p, counters: c},
	}, nil
}

// Has says whether an event is the acceptor's: about its listener, or a client that it refuses. One
// that Wait had returned before Stop still is, and Handle does nothing then.
func (a *Acceptor) Has(event *Event) bool { return a != nil && event.Generation() == 0 }

// Handle does what one of its events asks for: it takes the connections that wait, a bounded number
// of them, and gives each to take, or goes on with a client that it refuses.
//
// take owns the descriptor when it answers nil. After [ErrNoRoom], and after an error for which
// [IsExhausted] holds, the client is told that there is no room, and the descriptor is the
// acceptor's to close, as after any other error. When descriptors have run out accepting pauses until
// [Acceptor.Maintain].
func (a *Acceptor) Handle(event *Event, take func(fd int) error) {
	switch {
	case event.FD() != a.listener:
		a.refused.handle(event.FD())
	case !a.stopped:
		a.accept(acceptTurn, take)
	}
}

func (a *Acceptor) accept(limit int, take func(fd int) error) {
	for range limit {
		fd, err := Accept(a.counters, a.listener)
		reserved := false
		if IsExhausted(err) && a.useReserve() {
			reserved = true
			fd, err = Accept(a.counters, a.listener)
		}
		switch {
		case err == ErrWouldBlock:
			return
		case err != nil:
			// The kernel lacks something else, or forbids it, and may do so for long: free
			// descriptors are no reason to try again at once.
			a.pause()
			a.earliest = time.Now().Add(acceptPause)
			return
		case reserved:
			a.refused.add(fd)
			a.giveWay = time.Now().Add(acceptPause)
			return
		}
		switch err = take(fd); {
		case err == nil:
		case err == ErrNoRoom:
			a.refused.add(fd)
		case IsExhausted(err):
			a.refused.add(fd)
			a.pause()
			return
		default:
			Close(a.counters, fd)
		}
	}
}

// useReserve frees the descriptors that were held back, if they still are, and pauses.
func (a *Acceptor) useReserve() bool {
	a.pause()
	held := a.reserve.full()
	a.reserve.release(a.counters)
	return held
}

// pause stops waiting for the listener, which would stay readable and wake the loop for ever.
func (a *Acceptor) pause() {
	if !a.paused {
		a.poller.Modify(a.counters, a.listener, 0, 0)
		a.paused = true
	}
}

// Timeout is for Poller.Wait: how long to wait before Maintain is to be called, below zero for ever.
func (a *Acceptor) Timeout() time.Duration {
	if a == nil {
		return -1
	}
	timeout := a.refused.timeout()
	if a.paused && (timeout < 0 || timeout > acceptPause) {
		return acceptPause
	}
	return timeout
}

// Maintain is called once a turn. It accepts again if as many descriptors are free as the reserve
// lacks; else, and for a while after accepting has failed with the reserve's help too, the acceptor
// stays paused. And it ends the refused connections whose time is over.
func (a *Acceptor) Maintain() {
	if a == nil {
		return
	}
	a.refused.expire()
	if !a.paused || time.Now().Before(a.earliest) {
		return
	}
	// A client in the reserve's place that stays silent gives way in the end: the others wait for it.
	for a.reserve.refill(a.counters) != nil {
		if time.Now().Before(a.giveWay) || !a.refused.closeOldest() {
			return
		}
	}
	if a.poller.Modify(a.counters, a.listener, 0, Readable) == nil {
		a.paused = false
	}
}

// Stop gives all connections that wait to take, as Handle does (none while it is paused: there is no
// descriptor for them), closes the listener, and ends those that are refused. Clients that come meanwhile are taken too, but not for ever. The kernel resets
// what is left, and a handshake that completes before the close: where a successor listens already,
// call [Steer] long enough before.
func (a *Acceptor) Stop(take func(fd int) error) {
	if a == nil || a.stopped {
		return
	}
	if !a.paused {
		a.accept(stopTurn, take)
	}
	a.Close()
}

// Close closes the listener, and the connections that are refused. It does nothing after Stop.
func (a *Acceptor) Close() {
	if a == nil || a.stopped {
		return
	}
	a.stopped, a.paused = true, false
	Close(a.counters, a.listener)
	a.reserve.close(a.counters)
	a.refused.end()
}

// reserve holds descriptors back for the moment when there are no others. When Accept finds none left, the loop
// releases the reserve, takes the waiting connection, answers it 503 and closes it, and refills: so a full server says so
// instead of leaving clients in the queue. One thread at a time. The descriptors are eventfds that nothing uses.
type reserve struct {
	held []int
	size int
}

// newReserve holds back n descriptors. It fails with EMFILE, ENFILE or ENOMEM, and holds nothing then.
func newReserve(c *Counters, n int) (*reserve, error) {
	r := &reserve{held: make([]int, 0, n), size: n}
	if err := r.refill(c); err != nil {
		r.release(c)
		return nil, err
	}
	return r, nil
}

// release gives all descriptors that are held back to the process. Other threads may take them first.
func (r *reserve) release(c *Counters) {
	for _, fd := range r.held {
		Close(c, fd)
	}
	r.held = r.held[:0]
}

// refill takes as many descriptors as are missing. If it fails, as the descriptors are not free yet, those that it got stay
// held, and it can be tried again.
func (r *reserve) refill(_ *Counters) error {
	for !r.full() {
		fd, err := openEventfd()
		if err != nil {
			return err
		}
		r.held = append(r.held, fd)
	}
	return nil
}

// full says that all descriptors are held.
func (r *reserve) full() bool { return len(r.held) == r.size }

// close is release for good.
func (r *reserve) close(c *Counters) {
	r.release(c)
	r.size = 0
}
