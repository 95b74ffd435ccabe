package main

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/http1"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
	"github.com/qps-ladder/qps-ladder/shared/serve"
)

// backlog is how many finished handshakes the kernel keeps for us (it caps this
// at net.core.somaxconn).
const backlog = 4096

// A server is one base loop, which accepts and waits for every connection, and
// some workers, which handle what it finds ready.
type server struct {
	config      *serve.Config
	started     time.Time
	base        *baseLoop
	loops       []*loop      // the workers
	working     atomic.Int64 // those that have not ended
	connections atomic.Int64 // open ones, apart from those that an acceptor refuses
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
		s.running.Go(func() { l.run(i) })
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
	s.base.acceptor, err = netpoll.NewAcceptor(&s.base.counters, s.base.poller, fd, netpoll.Refusal{
		Answer: http1.AppendNoRoom, Patience: s.config.LingerTimeout,
	})
	return bound, err
}

// Drain implements serve.Server. The workers are told by the base loop, once it
// has handed over the last connection.
func (s *server) Drain() { s.base.askToDrain() }

// Kill implements serve.Server.
func (s *server) Kill() {
	s.base.askToDrain()
	for _, l := range s.loops {
		l.post(new(netpoll.Counters), message{what: kill})
	}
}

// Wait implements serve.Server.
func (s *server) Wait() { s.running.Wait() }

// Close implements serve.Server.
func (s *server) Close() {
	s.base.acceptor.Close()
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

// admit counts a connection in, where there is room for one more.
func (s *server) admit() bool {
	if n := s.connections.Add(1); s.config.MaxConns == 0 || n <= int64(s.config.MaxConns) {
		return true
	}
	s.connections.Add(-1)
	return false
}

// discharge counts a connection out that was admitted.
func (s *server) discharge() { s.connections.Add(-1) }

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
