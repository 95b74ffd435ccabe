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

// A server is one base loop, which accepts and waits for every connection, and
// some workers, which handle what it finds ready.
type server struct {
	config      *serve.Config
	started     time.Time
	base        *baseLoop
	loops       []*loop      // the workers
	working     atomic.Int64 // those that have not ended
	connections atomic.Int64 // open ones, those that are refused not counted
	running     sync.WaitGroup
}

func newServer(config *serve.Config) (serve.Server, error) {
	if config.Overlap {
		return nil, errors.New("-overlap needs SO_REUSEPORT: start stage1 or a later one")
	}
	return &server{config: config}, nil
}

// Start implements serve.Server.
func (s *server) Start() (address string, err error) {
	s.started = time.Now()
	if s.base, err = newBaseLoop(s); err != nil {
		return "", err
	}
	for range s.config.Workers {
		l, err := newLoop(s)
		if err != nil {
			return "", err
		}
		s.loops = append(s.loops, l)
	}
	if address, err = s.listen(s.config.Addr); err != nil {
		return "", err
	}
	s.working.Store(int64(len(s.loops)))
	s.running.Go(s.base.run)
	for i, l := range s.loops {
		cpu := -1
		if s.config.Pin {
			cpu = s.config.CPUs[i%len(s.config.CPUs)]
		}
		s.running.Go(func() { l.run(cpu) })
	}
	return address, nil
}

// listen gives the base loop its listener.
func (s *server) listen(address string) (string, error) {
	options := netpoll.ListenOptions{Backlog: backlog, Claim: true}
	fd, bound, err := netpoll.Listen(&s.base.counters, address, options)
	if err != nil {
		return "", err
	}
	return bound, s.base.acceptor.start(fd)
}

// Drain implements serve.Server. The workers are told by the base loop, once it
// has handed over the last connection.
func (s *server) Drain() { s.base.ask(&s.base.drainAsked) }

// Kill implements serve.Server.
func (s *server) Kill() {
	s.base.ask(&s.base.drainAsked)
	for _, l := range s.loops {
		l.post(new(netpoll.Counters), message{what: kill})
	}
}

// Wait implements serve.Server. What wakes a loop is closed last, as the others
// may use it until they end.
func (s *server) Wait() {
	s.running.Wait()
	s.base.poller.Close(&s.base.counters)
	for _, l := range s.loops {
		l.poller.Close(&l.counters)
	}
}

// Loops implements serve.Server.
func (s *server) Loops() []*netpoll.Published {
	published := make([]*netpoll.Published, len(s.loops), len(s.loops)+1)
	for i, l := range s.loops {
		published[i] = &l.published
	}
	return append(published, &s.base.published)
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

// placement chooses the worker for a new connection: the one that has the
// fewest.
func (s *server) placement() *loop {
	fewest := s.loops[0]
	for _, l := range s.loops {
		if l.load.Load() < fewest.load.Load() {
			fewest = l
		}
	}
	return fewest
}

// An acceptor takes new connections from a listener. It belongs to the base
// loop.
type acceptor struct {
	loop       *baseLoop
	listener   int // -1 when there is none, or no longer one
	reserve    *netpoll.Reserve
	paused     atomic.Bool // the listener is not waited for, as there is no descriptor left
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
		if a.paused.Load() {
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
	c, err := newConn(l.server.placement(), &l.counters, fd, a.generation, l.now, !entered)
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
	if !a.paused.Load() {
		// A readable listener that nobody accepts from would wake the loop for ever.
		a.loop.poller.Modify(&a.loop.counters, a.listener, 0, 0)
		a.paused.Store(true)
	}
	held := a.reserve.Full()
	a.reserve.Release(&a.loop.counters)
	return held
}

// resume accepts again, if it can, after a descriptor may have become free.
func (a *acceptor) resume() {
	if a.reserve.Refill(&a.loop.counters) == nil {
		a.paused.Store(false)
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
	if !a.paused.Load() {
		a.accept(math.MaxInt, register)
	}
	a.paused.Store(false)
	netpoll.Close(&a.loop.counters, a.listener)
	a.reserve.Close(&a.loop.counters)
	a.listener = -1
}
