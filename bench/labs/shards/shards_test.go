package shards

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// ways in the order of lab.yaml; the first is the baseline.
var ways = []struct {
	name string
	make func() table
}{
	{"rwmutex", func() table { return newLocked() }},
	{"fixed-key", func() table { return newFixed() }},
	{"mutex", func() table { return newExclusive() }},
	{"sync-map", func() table { return &library{} }},
	{"shards", func() table { return newSharded() }},
}

// token has 32 characters, as session cookies have.
func token(a, b uint64) string { return fmt.Sprintf("%016x%016x", a, b) }

// Goroutines that put, get and drop tokens of their own find what they left, and no others.
func TestSame(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			m := w.make()
			var all sync.WaitGroup
			for g := range 4 {
				all.Go(func() {
					for i := range 500 {
						name, s := token(uint64(g), uint64(i)), &session{user: uint64(i)}
						m.put(name, s)
						if have, ok := m.get(name); !ok || have != s {
							t.Errorf("%s is not what was put", name)
						}
						if i%3 == 0 {
							m.drop(name)
						}
						if _, ok := m.get(name); ok == (i%3 == 0) {
							t.Errorf("%s is there: %v", name, ok)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

func BenchmarkShards(b *testing.B) {
	const sessions = 10_000
	tokens := make([]string, sessions)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range tokens {
		tokens[i] = token(random.Uint64(), random.Uint64())
	}
	for _, c := range []struct {
		name     string
		cpus     int
		requests int // look-ups between one session that ends and one that begins
	}{{"alone", 1, 100}, {"looking-up", 2, 100}, {"coming-and-going", 2, 4}} {
		b.Run(c.name, func(b *testing.B) {
			for _, w := range ways {
				b.Run(w.name, func(b *testing.B) {
					// In here: package testing sets it anew for each benchmark.
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.cpus))
					m := w.make()
					for _, token := range tokens {
						m.put(token, &session{user: 1})
					}
					var goroutines, users atomic.Uint64
					b.ResetTimer()
					b.RunParallel(func(pb *testing.PB) {
						random := rand.New(rand.NewPCG(3, goroutines.Add(1)))
						sum, n := uint64(0), 0
						for pb.Next() {
							token := tokens[random.Uint32N(sessions)]
							if n++; n > c.requests {
								n = 0
								m.drop(token)
								m.put(token, &session{user: 1})
								continue
							}
							if s, ok := m.get(token); ok { // it may be gone for a moment
								sum += s.user
							}
						}
						users.Add(sum)
					})
					if n := goroutines.Load(); n != uint64(c.cpus) {
						b.Fatalf("%d goroutines, where there are %d CPUs", n, c.cpus)
					}
					if b.N > 100 && users.Load() == 0 {
						b.Fatal("nobody was found")
					}
				})
			}
		})
	}
}
