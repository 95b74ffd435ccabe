// Package locks asks what it costs to share something small between threads, with each of the locks
// that Go has, and without one.
package locks

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// state is what is shared, a cache line long: a server's counters, say. All its numbers are always
// equal, so that a reader notices half a write.
type state struct{ hits [8]uint64 }

// add is the section of a writer; each pass takes some ten nanoseconds.
func (s *state) add(passes int) {
	for range passes {
		for i := range s.hits {
			s.hits[i]++
		}
	}
}

// read is the section of a reader: a checksum, every step of which needs the one before. ok is
// false when it saw half a write.
func (s *state) read(passes int) (sum uint64, ok bool) {
	ok = true
	for range passes {
		for _, v := range s.hits {
			sum = sum*31 + v
			ok = ok && v == s.hits[0]
		}
	}
	return sum, ok
}

// shared is a state that many goroutines use.
type shared interface {
	add(passes int)
	read(passes int) (sum uint64, ok bool)
}

// mutexed is the baseline: one sync.Mutex for readers and writers.
type mutexed struct {
	mu sync.Mutex
	state
}

func (m *mutexed) add(passes int) {
	m.mu.Lock()
	m.state.add(passes)
	m.mu.Unlock()
}

func (m *mutexed) read(passes int) (uint64, bool) {
	m.mu.Lock()
	v, ok := m.state.read(passes)
	m.mu.Unlock()
	return v, ok
}

// rwMutexed lets readers in together; they still have to count themselves in and out.
type rwMutexed struct {
	mu sync.RWMutex
	state
}

func (m *rwMutexed) add(passes int) {
	m.mu.Lock()
	m.state.add(passes)
	m.mu.Unlock()
}

func (m *rwMutexed) read(passes int) (uint64, bool) {
	m.mu.RLock()
	v, ok := m.state.read(passes)
	m.mu.RUnlock()
	return v, ok
}

// snapshot has no lock: a reader follows a pointer to a state that nobody changes any more, and a
// writer changes a copy and exchanges the pointer, once more if another one was faster.
type snapshot struct{ now atomic.Pointer[state] }

func newSnapshot() *snapshot {
	s := &snapshot{}
	s.now.Store(&state{})
	return s
}

func (s *snapshot) add(passes int) {
	for {
		old := s.now.Load()
		next := *old
		next.add(passes)
		if s.now.CompareAndSwap(old, &next) {
			return
		}
	}
}

func (s *snapshot) read(passes int) (uint64, bool) { return s.now.Load().read(passes) }

// spinning waits by looking again. A goroutine may lose its thread while it holds the lock, so who
// has looked in vain for long gives the thread to others.
type spinning struct {
	taken atomic.Bool
	state
}

const looks = 100

func (s *spinning) lock() {
	for n := 1; ; n++ {
		// Looking does not take the cache line away from the owner; trying to take it does.
		if !s.taken.Load() && s.taken.CompareAndSwap(false, true) {
			return
		}
		if n%looks == 0 {
			runtime.Gosched()
		}
	}
}

func (s *spinning) add(passes int) {
	s.lock()
	s.state.add(passes)
	s.taken.Store(false)
}

func (s *spinning) read(passes int) (uint64, bool) {
	s.lock()
	v, ok := s.state.read(passes)
	s.taken.Store(false)
	return v, ok
}

// channelled keeps the state in a channel with one place: who has taken it out owns it.
type channelled chan *state

func newChannelled() channelled {
	c := make(channelled, 1)
	c <- &state{}
	return c
}

func (c channelled) add(passes int) {
	s := <-c
	s.add(passes)
	c <- s
}

func (c channelled) read(passes int) (uint64, bool) {
	s := <-c
	v, ok := s.read(passes)
	c <- s
	return v, ok
}
