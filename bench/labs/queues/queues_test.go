package queues

import (
	"runtime"
	"sync"
	"testing"
)

// ways in the order of lab.yaml; the first is the baseline.
var ways = []struct {
	name string
	make func() queue
}{
	{"locked-slice", func() queue { return &locked{} }},
	{"channel", func() queue { return make(buffered, 1024) }},
	{"linked", func() queue { return newLinked() }},
	{"linked-pool", func() queue { return newPooled() }},
}

// move has producers put so many requests each, and drains until all are there.
func move(q queue, producers, each int, f func(request)) {
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			for i := range each {
				q.put(request{fd: uint32(p), events: uint64(i)})
			}
		})
	}
	for left := producers * each; left > 0; {
		n := q.drain(f)
		if left -= n; n == 0 {
			runtime.Gosched()
		}
	}
	all.Wait()
}

// Nothing is lost, doubled or overtaken by the same producer's.
func TestSame(t *testing.T) {
	const producers, each = 4, 2000
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			var next [producers]uint64
			q := w.make()
			move(q, producers, each, func(r request) {
				if r.events != next[r.fd] {
					t.Fatalf("producer %d: number %d came in the place of %d", r.fd, r.events, next[r.fd])
				}
				next[r.fd]++
			})
			if n := q.drain(func(request) {}); n != 0 {
				t.Errorf("%d more than there were", n)
			}
		})
	}
}

// The naive stack gives one node to two owners: others run at the worst moment, and put back what
// they found on top.
func TestNaiveStackHasABA(t *testing.T) {
	var s stack
	a, b, c := &node{}, &node{}, &node{}
	for _, n := range []*node{c, b, a} {
		s.push(n)
	}
	var theirs *node
	s.paused = func() {
		s.paused = nil
		first := s.pop()
		theirs = s.pop() // kept
		s.push(first)
	}
	if s.pop() != a || theirs != b {
		t.Fatal("a on top and b below it were to be taken")
	}
	if again := s.pop(); again != theirs {
		t.Fatalf("the stack is whole: %p, not b %p a second time", again, theirs)
	}
}

func BenchmarkQueues(b *testing.B) {
	const batch = 64 // requests between two drains where one thread does both
	none := func(request) {}
	b.Run("alone", func(b *testing.B) {
		for _, w := range ways {
			b.Run(w.name, func(b *testing.B) {
				q := w.make()
				for n := 0; b.Loop(); n++ {
					q.put(request{fd: 1, events: 2})
					if n%batch == batch-1 && q.drain(none) != batch {
						b.Fatal("some were lost")
					}
				}
			})
		}
	})
	for _, c := range []struct {
		name      string
		producers int
	}{{"one-producer", 1}, {"four-producers", 4}} {
		b.Run(c.name, func(b *testing.B) {
			for _, w := range ways {
				b.Run(w.name, func(b *testing.B) {
					var sum uint64
					move(w.make(), c.producers, (b.N+c.producers-1)/c.producers, func(r request) { sum += r.events })
					if b.N > 100 && sum == 0 {
						b.Fatal("nothing came")
					}
				})
			}
		})
	}
}
