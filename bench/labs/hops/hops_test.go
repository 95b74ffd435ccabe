//go:build linux

package hops

import (
	"runtime"
	"slices"
	"testing"
)

// ways in the order of lab.yaml; the first is the baseline.
var ways = []struct {
	name string
	make func() (server, error)
}{
	{"call", func() (server, error) { return direct{}, nil }},
	{"two-closures", func() (server, error) { return newChain(2), nil }},
	{"four-closures", func() (server, error) { return newChain(4), nil }},
	{"goroutine", func() (server, error) { return started{}, nil }},
	{"channel", func() (server, error) { return newStanding(), nil }},
	{"eventfd", newBell},
}

func TestSame(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			s, err := w.make()
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			for n := 1; n <= most; n++ {
				have, want := make([]uint64, n), make([]uint64, n)
				for i := range have {
					have[i], want[i] = uint64(1000*n+i), work(uint64(1000*n+i))
				}
				if s.serve(have); !slices.Equal(have, want) {
					t.Fatalf("a batch of %d: %d, not %d", n, have, want)
				}
			}
		})
	}
}

func BenchmarkHops(b *testing.B) {
	for _, c := range []struct {
		name  string
		batch int
	}{{"one", 1}, {"sixteen", most}} {
		b.Run(c.name, func(b *testing.B) {
			for _, w := range ways {
				b.Run(w.name, func(b *testing.B) {
					s, err := w.make()
					if err != nil {
						b.Fatal(err)
					}
					defer s.close()
					if w.name == "eventfd" {
						runtime.LockOSThread() // as the loops of the stages are
						defer runtime.UnlockOSThread()
					}
					batch := make([]uint64, c.batch)
					for b.Loop() {
						s.serve(batch)
					}
					if batch[0] == 0 {
						b.Fatal("nothing was served")
					}
				})
			}
		})
	}
}
