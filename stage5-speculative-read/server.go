package main

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
	"github.com/qps-ladder/qps-ladder/shared/serve"
)

const (
	// How many finished handshakes the kernel keeps for us (it caps this at
	// net.core.somaxconn).
	backlog = 4096

	// How many connections are accepted before those that are open get a turn.
	acceptTurn = 256

	// After this a listener that found no descriptor left is tried again, even
	// when none of the server's own connections has closed.
	acceptPause = 100 * time.Millisecond

	// A client that is told that there is no room takes two descriptors: its
	// socket and its timer.
	reserveSize = 2
)

// A server is some loops, each with a listener of its own. The kernel spreads
// new connections over the listeners by a hash of the client's address.
type server struct {
	config      *serve.Config
	started     time.Time
	loops       []*loop
	oneAcceptor bool         // only the first loop has a listener (-acceptor)
	connections atomic.Int64 // open ones, those that are refused not counted
	running     sync.WaitGroup
}

func newServer(config *serve.Config) (serve.Server, error) {
	return &server{config: config, oneAcceptor: config.Acceptor}, nil
}

// Start implements serve.Server.
func (s *server) Start() (address string, err error) {
	s.started = time.Now()
	address = s.config.Addr
	for i := range s.config.Workers {
		l, err := newLoop(s)
		if err != nil {
			return "", err
		}
		s.loops = append(s.loops, l)
		if i > 0 && s.oneAcceptor {
			continue
		}
		if address, err = s.listen(l, address, i == 0); err != nil {
			return "", err
		}
	}
	for i, l := range s.loops {
		cpu := -1
		if s.config.Pin {
			cpu = s.config.CPUs[i%len(s.config.CPUs)]
		}
		s.running.Go(func() { l.run(cpu) })
	}
	return address, nil
}

// listen gives a loop a listener. The first one is bound without SO_REUSEPORT,
// which fails when anybody else has the port, even one who would share it; only
// then the others may join it.
func (s *server) listen(l *loop, address string, first bool) (string, error) {
	options := netpoll.ListenOptions{
		Backlog: backlog,
		Claim:   first && !s.config.Overlap,
		Share:   !s.oneAcceptor || s.config.Overlap,
	}
	fd, bound, err := netpoll.Listen(&l.counters, address, options)
	if errors.Is(err, netpoll.ErrShareRefused) && first {
		// This kernel has no SO_REUSEPORT, so one loop accepts for all.
		s.oneAcceptor = true
		options.Share = false
		fd, bound, err = netpoll.Listen(&l.counters, address, options)
	}
	if err != nil {
		return "", err
	}
	return bound, l.acceptor.start(fd)
}

// Drain implements serve.Server. With one acceptor, the other loops are told by
// it, once it has handed over the last connection.
func (s *server) Drain() {
	for i, l := range s.loops {
		if i == 0 || !s.oneAcceptor {
			l.post(new(netpoll.Counters), message{drain: true})
		}
	}
}

// Kill implements serve.Server.
func (s *server) Kill() {
	for _, l := range s.loops {
		l.post(new(netpoll.Counters), message{kill: true})
	}
}

// Wait implements serve.Server. What wakes a loop is closed last, as the others
// may use it until they end.
func (s *server) Wait() {
	s.running.Wait()
	for _, l := range s.loops {
		l.poller.Close(&l.counters)
	}
}

// Loops implements serve.Server.
func (s *server) Loops() []*netpoll.Published {
	published := make([]*netpoll.Published, len(s.loops))
	for i, l := range s.loops {
		published[i] = &l.published
	}
	return published
}

// enter counts a connection in, where there is room for one more.
func (s *server) enter() bool {
	if n := s.connections.Add(1); s.config.MaxConns == 0 || n <= int64(s.config.MaxConns) {
		return true
	}
	s.connections.Add(-1)
	return false
}

// leave counts a connection out that entered.
func (s *server) leave() { s.connections.Add(-1) }

// placement chooses the loop for a connection that own has accepted: own, or,
// where one acceptor works for all, the loop that has the fewest.
func (s *server) placement(own *loop) *loop {
	if !s.oneAcceptor {
		return own
	}
	fewest := own
	for _, l := range s.loops {
		if l.load.Load() < fewest.load.Load() {
			fewest = l
		}
	}
	return fewest
}

// An acceptor takes new connections from a listener. It belongs to one loop.
type acceptor struct {
	loop       *loop
	listener   int // -1 when there is none, or no longer one
	reserve    *netpoll.Reserve
	paused     bool // the listener is not waited for, as there is no descriptor left
	generation uint32
}

// start begins to wait for connections.
func (a *acceptor) start(listener int) (err error) {
	a.listener = listener
	if a.reserve, err = netpoll.NewReserve(&a.loop.counters, reserveSize); err != nil {
		return err
	}
	return a.loop.poller.Add(&a.loop.counters, listener, 0, netpoll.Readable)
}

// accept takes the connections that wait, at most limit of them, and gives each
// to register.
func (a *acceptor) accept(limit int, register func(*conn)) {
	for range limit {
		fd, err := netpoll.Accept(&a.loop.counters, a.listener)
		reserved := false
		if netpoll.IsExhausted(err) && a.useReserve() {
			fd, err = netpoll.Accept(&a.loop.counters, a.listener)
			reserved = true
		}
		if err != nil {
			return
		}
		if c := a.open(fd, reserved); c != nil {
			register(c)
		}
		if a.paused {
			return
		}
	}
}

// open makes a connection of an accepted socket. One that lives on the reserve,
// or that is one too many, will be refused.
func (a *acceptor) open(fd int, reserved bool) *conn {
	l := a.loop
	a.generation++
	entered := !reserved && l.server.enter()
	c, err := newConn(l.server.placement(l), &l.counters, fd, a.generation, l.now, !entered)
	if err == nil {
		c.reserved = reserved
		return c
	}
	if entered {
		l.server.leave()
	}
	if !reserved && a.useReserve() {
		return a.open(fd, true) // its timer found no descriptor
	}
	netpoll.Close(&l.counters, fd)
	return nil
}

// useReserve frees the descriptors that were held back, and stops accepting
// until they are held back again.
func (a *acceptor) useReserve() bool {
	if !a.paused {
		// A readable listener that nobody accepts from would wake the loop for ever.
		a.loop.poller.Modify(&a.loop.counters, a.listener, 0, 0)
		a.paused = true
	}
	held := a.reserve.Full()
	a.reserve.Release(&a.loop.counters)
	return held
}

// resume accepts again, if it can, after a descriptor may have become free.
func (a *acceptor) resume() {
	if a.reserve.Refill(&a.loop.counters) == nil {
		a.paused = false
		a.loop.poller.Modify(&a.loop.counters, a.listener, 0, netpoll.Readable)
	}
}

// stop takes what the kernel has queued, and closes the listener. A handshake
// that completes between the two is reset by the kernel, unless
// net.ipv4.tcp_migrate_req lets it move to another listener.
func (a *acceptor) stop(register func(*conn)) {
	if a.listener < 0 {
		return
	}
	if !a.paused {
		a.accept(math.MaxInt, register)
	}
	a.paused = false
	netpoll.Close(&a.loop.counters, a.listener)
	a.reserve.Close(&a.loop.counters)
	a.listener = -1
}
