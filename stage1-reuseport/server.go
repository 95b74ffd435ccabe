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

// A server is some loops, each with a listener of its own (with -acceptor, only
// the first has one). The kernel spreads new connections over the listeners by a
// hash of the client's address and port.
type server struct {
	config      *serve.Config
	started     time.Time
	loops       []*loop
	oneAcceptor bool         // only the first loop has a listener (-acceptor)
	connections atomic.Int64 // open ones, apart from those that an acceptor refuses
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
		s.running.Go(func() { l.run(i) })
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
	l.acceptor, err = netpoll.NewAcceptor(&l.counters, l.poller, fd, netpoll.Refusal{
		Answer: http1.AppendNoRoom, Patience: s.config.LingerTimeout,
	})
	return bound, err
}

// Drain implements serve.Server. With one acceptor, the other loops are told by
// it, once it has handed over the last connection.
func (s *server) Drain() {
	for i, l := range s.loops {
		if i == 0 || !s.oneAcceptor {
			l.post(new(netpoll.Counters), message{what: drain})
		}
	}
}

// Kill implements serve.Server.
func (s *server) Kill() {
	for _, l := range s.loops {
		l.post(new(netpoll.Counters), message{what: kill})
	}
}

// Wait implements serve.Server.
func (s *server) Wait() { s.running.Wait() }

// Close implements serve.Server.
func (s *server) Close() {
	for _, l := range s.loops {
		l.acceptor.Close()
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

// placement chooses the loop for a connection that own has accepted: own, or,
// where one acceptor works for all, the loop that has the fewest.
func (s *server) placement(own *loop) *loop {
	if !s.oneAcceptor {
		return own
	}
	fewest := s.loops[0]
	for _, l := range s.loops {
		if l.load.Load() < fewest.load.Load() {
			fewest = l
		}
	}
	return fewest
}
