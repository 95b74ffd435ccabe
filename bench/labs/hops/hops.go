//go:build linux

// Package hops asks what it costs to let somebody else do it: a function, a chain of closures,
// another goroutine, another thread.
package hops

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// work is the handler: as good as nothing, so that only the way to it and back is measured.
//
//go:noinline
func work(x uint64) uint64 { return x*6364136223846793005 + 1442695040888963407 }

// server replaces each request of a batch by its answer, and returns when all are there.
type server interface {
	serve(batch []uint64)
	close()
}

// most requests are handed over at once.
const most = 16

// direct is the baseline: a function is called.
type direct struct{}

func (direct) serve(batch []uint64) {
	for i, x := range batch {
		batch[i] = work(x)
	}
}

func (direct) close() {}

// chain calls through closures, each of which only calls the next: middleware, or the frames of
// coroutines that await one another.
type chain func(uint64) uint64

func newChain(frames int) server {
	next := work
	for range frames {
		inner := next
		next = func(x uint64) uint64 { return inner(x ^ 1 ^ 1) }
	}
	return chain(next)
}

func (c chain) serve(batch []uint64) {
	for i, x := range batch {
		batch[i] = c(x)
	}
}

func (chain) close() {}

// started starts a goroutine for each request, and waits for all of them.
type started struct{}

func (started) serve(batch []uint64) {
	var all sync.WaitGroup
	for i := range batch {
		all.Add(1)
		go func() {
			batch[i] = work(batch[i])
			all.Done()
		}()
	}
	all.Wait()
}

func (started) close() {}

// standing has one goroutine at work all the time, with a channel there and one back. Go's scheduler
// hands over without the kernel where it can.
type standing struct{ there, back chan uint64 }

func newStanding() server {
	s := standing{make(chan uint64, most), make(chan uint64, most)}
	go func() {
		for x := range s.there {
			s.back <- work(x)
		}
	}()
	return s
}

func (s standing) serve(batch []uint64) {
	for _, x := range batch {
		s.there <- x
	}
	for i := range batch {
		batch[i] = <-s.back
	}
}

func (s standing) close() { close(s.there) }

// bell is another thread with a queue, woken through an eventfd: what a thread that waits in the
// kernel for its connections can be woken by, and how stage0 hands its requests over.
type bell struct {
	there, back inbox
	ended       chan struct{}
}

// inbox is a queue with an eventfd that says that there is something in it.
type inbox struct {
	mu    sync.Mutex
	queue []uint64
	spare []uint64 // what was emptied last
	event int
}

// put adds all of a batch, and rings once.
func (b *inbox) put(batch []uint64) {
	b.mu.Lock()
	b.queue = append(b.queue, batch...)
	b.mu.Unlock()
	unix.Write(b.event, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

// take waits in the kernel until it rings, and takes all that there is, until the next call. It is
// nothing when the inbox was rung for the end.
func (b *inbox) take() []uint64 {
	var count [8]byte
	for {
		if _, err := unix.Read(b.event, count[:]); err != unix.EINTR {
			break
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue, b.spare = b.spare[:0], b.queue
	return b.spare
}

func newBell() (server, error) {
	b := &bell{ended: make(chan struct{})}
	for _, box := range []*inbox{&b.there, &b.back} {
		var err error
		if box.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
			return nil, err
		}
	}
	go func() {
		runtime.LockOSThread()
		defer close(b.ended)
		for {
			batch := b.there.take()
			if len(batch) == 0 {
				return
			}
			direct{}.serve(batch)
			b.back.put(batch)
		}
	}()
	return b, nil
}

func (b *bell) serve(batch []uint64) {
	b.there.put(batch)
	for rest := batch; len(rest) > 0; {
		rest = rest[copy(rest, b.back.take()):]
	}
}

func (b *bell) close() {
	b.there.put(nil)
	<-b.ended
	unix.Close(b.there.event)
	unix.Close(b.back.event)
}
