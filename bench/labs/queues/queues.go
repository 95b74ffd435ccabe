// Package queues asks how to hand work to one thread from several.
package queues

import (
	"sync"
	"sync/atomic"
)

// request is what is handed over: which connection, and what happened to it.
type request struct {
	fd     uint32
	events uint64
}

// queue takes requests of any number of goroutines, and gives them to one.
type queue interface {
	put(r request)
	// drain calls f with all that is there, in the order of each producer, and tells how many.
	drain(f func(request)) int
}

// locked is the baseline: a slice under a Mutex, which the consumer exchanges for an empty one.
type locked struct {
	mu         sync.Mutex
	queue, old []request
}

func (q *locked) put(r request) {
	q.mu.Lock()
	q.queue = append(q.queue, r)
	q.mu.Unlock()
}

func (q *locked) drain(f func(request)) int {
	q.mu.Lock()
	q.queue, q.old = q.old[:0], q.queue
	q.mu.Unlock()
	for _, r := range q.old {
		f(r)
	}
	return len(q.old)
}

// buffered is a channel. Who finds it full waits.
type buffered chan request

func (q buffered) put(r request) { q <- r }

func (q buffered) drain(f func(request)) (n int) {
	for {
		select {
		case r := <-q:
			f(r)
			n++
		default:
			return n
		}
	}
}

type node struct {
	request
	next atomic.Pointer[node]
}

// linked is Vyukov's queue for many producers and one consumer. A producer exchanges the tail, and
// then links the node behind the one that was there: two steps, between which the list is torn, and
// the consumer waits for the second. No producer waits for another.
type linked struct {
	tail   atomic.Pointer[node]
	_      [56]byte     // the consumer's end does not share the producers' cache line
	head   *node        // a node whose request has been taken
	fresh  func() *node // next is nil
	forget func(*node)
}

func newLinked() *linked {
	q := &linked{head: &node{}, fresh: func() *node { return &node{} }, forget: func(*node) {}}
	q.tail.Store(q.head)
	return q
}

// newPooled is linked with nodes that are used again.
func newPooled() *linked {
	q, p := newLinked(), pool{}
	q.fresh, q.forget = p.get, p.put
	return q
}

func (q *linked) put(r request) {
	n := q.fresh()
	n.request = r
	q.tail.Swap(n).next.Store(n)
}

func (q *linked) drain(f func(request)) (n int) {
	for next := q.head.next.Load(); next != nil; next = next.next.Load() {
		f(next.request)
		q.forget(q.head)
		q.head = next
		n++
	}
	return n
}

// pool keeps up to 128 nodes. The consumer gives, producers take: a free list with a Mutex that
// nobody sleeps on, as who finds it taken does without.
type pool struct {
	mu   sync.Mutex
	free [128]*node
	n    int
}

func (p *pool) get() *node {
	if p.mu.TryLock() {
		defer p.mu.Unlock()
		if p.n > 0 {
			p.n--
			n := p.free[p.n]
			n.next.Store(nil)
			return n
		}
	}
	return &node{}
}

func (p *pool) put(n *node) {
	if p.mu.TryLock() {
		if p.n < len(p.free) {
			p.free[p.n] = n
			p.n++
		}
		p.mu.Unlock()
	}
}

// stack is a free list without a lock, by compare and swap on its top. It looks right. Between
// reading the top's next and the exchange, others may take that node, take the next one too, and put
// the first back: the top is what it was, the exchange succeeds, and the top is then a node that
// somebody else owns. It is the ABA problem. In Go the collector hides it as long as nodes are made
// anew; it shows as soon as they are used again.
type stack struct {
	top    atomic.Pointer[node]
	paused func() // for the test: between the look and the exchange
}

func (s *stack) push(n *node) {
	for {
		top := s.top.Load()
		n.next.Store(top)
		if s.top.CompareAndSwap(top, n) {
			return
		}
	}
}

func (s *stack) pop() *node {
	for {
		top := s.top.Load()
		if top == nil {
			return nil
		}
		next := top.next.Load()
		if s.paused != nil {
			s.paused()
		}
		if s.top.CompareAndSwap(top, next) {
			return top
		}
	}
}
