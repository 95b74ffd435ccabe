package app

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// layer is one layer of synchronous middleware that does nothing: what remains is the price of the
// call itself. The call goes through a variable, so that the compiler cannot flatten the chain.
func layer(next handler) handler {
	return func(q *http1.Request, s *http1.Response) {
		next(q, s)
	}
}

// helpers are the goroutines that asynchronous middleware hops to. A layer there hands its work
// over and waits for the answer, as one does that asks a session store; the work is nothing, so that
// what remains is the price of two hand-offs. A loop is a locked thread, so each of them is
// a thread that stops and another that starts.
type helpers struct {
	start sync.Once
	stop  sync.Once
	asks  chan chan struct{}
	begun atomic.Bool
	ended sync.WaitGroup
	// answers holds one channel for each request under way; a pool, since requests come from many loops.
	answers sync.Pool
}

// visit hops to a helper and back, n times.
func (h *helpers) visit(n int) {
	if n == 0 {
		return
	}
	h.start.Do(h.begin)
	answer := h.answers.Get().(chan struct{})
	for range n {
		h.asks <- answer
		<-answer
	}
	h.answers.Put(answer)
}

func (h *helpers) begin() {
	h.asks = make(chan chan struct{})
	h.answers.New = func() any { return make(chan struct{}, 1) }
	for range runtime.GOMAXPROCS(0) {
		h.ended.Go(func() {
			for answer := range h.asks {
				answer <- struct{}{}
			}
		})
	}
	h.begun.Store(true)
}

func (h *helpers) close() {
	h.stop.Do(func() {
		if h.begun.Load() {
			close(h.asks)
			h.ended.Wait()
		}
	})
}
