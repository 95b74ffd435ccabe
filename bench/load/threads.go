package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// kind of a phase. Every phase ends with no answer outstanding.
type kind uint8

const (
	connecting kind = iota // until every connection is there, or has failed often enough
	warming                // like measuring, but nothing counts; idle connections send once
	measuring
)

// phase is an order to every thread.
type phase struct {
	kind    kind
	length  time.Duration
	timeout time.Duration // for answers outstanding when length is over
	begin   time.Duration // set by run: the same for all threads
}

// threads are the generator's event loops.
type threads struct {
	o       *Options
	base    time.Time
	all     []*thread
	stopped atomic.Bool
	guard   sync.Mutex // of closed: a loop that is closed must not be woken
	closed  bool
}

func (s *threads) now() time.Duration { return time.Since(s.base) }

// startThreads spreads the connections over the threads. No connection is made yet.
func startThreads(o *Options, address netpoll.Address) (*threads, error) {
	s := &threads{o: o, base: time.Now()}
	limits := ReadLimits()
	sources, err := o.sources(address, limits)
	if err != nil {
		return nil, err
	}
	count := min(o.Threads, o.Workload.Connections)
	// One thread more than loops: nothing but the end of a phase runs on it, but
	// with GOMAXPROCS equal to the loops that end would wait for a loop to rest.
	if runtime.GOMAXPROCS(0) < count+1 {
		runtime.GOMAXPROCS(count + 1)
	}
	for i := range count {
		share := func(n int) int { return n*(i+1)/count - n*i/count }
		t, err := newThread(s, address, i, count, share(o.Workload.Connections), share(o.Workload.Idle))
		if err != nil {
			s.close()
			return nil, fmt.Errorf("cannot start the generator: %w", err)
		}
		t.sources, t.atOnce = sources, atOnce
		if limits.Backlog > 0 && loopback(address) {
			t.atOnce = max(1, min(atOnce, limits.Backlog/count))
			t.shortQueue = limits.Backlog < min(o.Workload.Total(), longQueue)
		}
		s.all = append(s.all, t)
		go t.serve()
	}
	return s, nil
}

// run gives every thread the order and waits for all.
func (s *threads) run(p phase) error {
	p.begin = s.now()
	for _, t := range s.all {
		t.orders <- p
	}
	var first error
	for _, t := range s.all {
		if err := <-t.results; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// stop makes every thread return from its phase at once. Safe from any goroutine.
func (s *threads) stop() {
	s.stopped.Store(true)
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.closed {
		return
	}
	for _, t := range s.all {
		var counters netpoll.Counters
		_ = t.poller.Wake(&counters) // fails only with the counter of 500 years full
	}
}

func (s *threads) close() {
	s.guard.Lock()
	s.closed = true
	s.guard.Unlock()
	for _, t := range s.all {
		close(t.orders)
		<-t.results
	}
}

// serve is the thread's goroutine.
func (t *thread) serve() {
	runtime.LockOSThread()
	defer close(t.results)
	for p := range t.orders {
		t.results <- t.run(p)
	}
	t.closeAll()
}

var errStopped = fmt.Errorf("stopped: %w", context.Canceled)

// errLost is wrapped by the error of a run whose server went away.
var errLost = errors.New("the server is gone")
