package locks

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// ways in the order of lab.yaml; the first is the baseline.
var ways = []struct {
	name string
	make func() shared
}{
	{"mutex", func() shared { return &mutexed{} }},
	{"rwmutex", func() shared { return &rwMutexed{} }},
	{"atomic", func() shared { return newSnapshot() }},
	{"spin", func() shared { return &spinning{} }},
	{"channel", func() shared { return newChannelled() }},
}

// No write is lost, and no reader sees half of one.
func TestSame(t *testing.T) {
	const writers, writes = 4, 500
	var want state
	want.add(writers * writes)
	sum, _ := want.read(1)
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			s := w.make()
			var all sync.WaitGroup
			for range writers {
				all.Go(func() {
					for range writes {
						s.add(1)
						if _, ok := s.read(2); !ok {
							t.Error("a reader saw half a write")
						}
					}
				})
			}
			all.Wait()
			if have, ok := s.read(1); have != sum || !ok {
				t.Errorf("%d after %d writes, not %d", have, writers*writes, sum)
			}
		})
	}
}

const short, long = 1, 75 // passes: some 10 and some 500 ns

func BenchmarkLocks(b *testing.B) {
	for _, c := range []struct {
		name                string
		cpus, reads, passes int // reads for each write
	}{
		{"alone-short", 1, 10, short}, {"alone-long", 1, 10, long},
		{"reads-short", 2, 100, short}, {"reads-long", 2, 100, long},
		{"ten-to-one-short", 2, 10, short}, {"ten-to-one-long", 2, 10, long},
		{"one-to-one-short", 2, 1, short}, {"one-to-one-long", 2, 1, long},
	} {
		b.Run(c.name, func(b *testing.B) {
			for _, w := range ways {
				b.Run(w.name, func(b *testing.B) {
					// In here: package testing sets it anew for each benchmark.
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.cpus))
					s := w.make()
					var total, goroutines atomic.Uint64
					b.RunParallel(func(pb *testing.PB) { // a goroutine for each CPU
						goroutines.Add(1)
						n, sum := 0, uint64(0)
						for pb.Next() {
							if n++; n > c.reads {
								s.add(c.passes)
								n = 0
								continue
							}
							v, _ := s.read(c.passes)
							sum += v
						}
						total.Add(sum)
					})
					if n := goroutines.Load(); n != uint64(c.cpus) {
						b.Fatalf("%d goroutines, where there are %d CPUs", n, c.cpus)
					}
					if b.N > 1000 && total.Load() == 0 {
						b.Fatal("nothing was read")
					}
				})
			}
		})
	}
}
