//go:build linux

package timers

import (
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ways in the order of lab.yaml; the first is the baseline.
var ways = []struct {
	name string
	make func(*base) (watch, error)
}{
	{"timerfd", func(b *base) (watch, error) { return newTimerfds(b, false) }},
	{"timerfd-tick", func(b *base) (watch, error) { return newTimerfds(b, true) }},
	{"go-timer", func(b *base) (watch, error) { return newGoTimers(b), nil }},
	{"heap", func(b *base) (watch, error) { return newDeadlines(b), nil }},
	{"wheel", func(b *base) (watch, error) { return newWheel(b), nil }},
	{"scanner", func(b *base) (watch, error) { return scanner{b}, nil }},
}

const ticks = 60 // of a limit: one each second for a limit of a minute

// newBase has n connections that were last used at even distances within the last limit.
func newBase(n int, limit time.Duration, expired func(int)) *base {
	b := &base{limit: limit, tick: limit / ticks, last: make([]atomic.Int64, n), expired: expired}
	for i := range b.last {
		b.last[i].Store(clock() - int64(limit)*int64(i)/int64(n))
	}
	return b
}

// A connection that is in use is not taken for idle, and one that is not is found, and not too soon.
func TestSame(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			const n, limit = 200, 300 * time.Millisecond
			var mu sync.Mutex
			over := false
			used, found := make([]int64, n), map[int]bool{}
			b := newBase(n, limit, func(i int) {
				mu.Lock()
				defer mu.Unlock()
				if over { // a timer of Go's cannot be called back
					return
				}
				if idle := clock() - used[i]; time.Duration(idle) < limit {
					t.Errorf("connection %d was taken for idle after %s", i, time.Duration(idle))
				}
				found[i] = true
			})
			for i := range used {
				used[i] = b.last[i].Load()
			}
			s, err := w.make(b)
			if err != nil {
				t.Fatal(err)
			}
			defer s.close()
			idle := func() (count int) {
				mu.Lock()
				defer mu.Unlock()
				for i := range found {
					count += i % 2 // the even ones are in use
				}
				return count
			}
			late := time.Now().Add(time.Minute)
			for now := time.Now(); idle() < n/2 && now.Before(late); {
				for i := 0; i < n; i += 2 {
					mu.Lock() // a timer of Go's may look meanwhile
					used[i] = clock()
					s.touch(i)
					mu.Unlock()
				}
				now = time.Now().Add(b.tick)
				s.run(now)
			}
			have := idle()
			mu.Lock()
			over = true
			mu.Unlock()
			if have != n/2 {
				t.Errorf("%d of %d idle connections were found", have, n/2)
			}
		})
	}
}

// A timer that is rounded fires not before its deadline, and at most a tick after it.
func TestTick(t *testing.T) {
	const n, limit = 50, time.Hour
	b := newBase(n, limit, func(int) {})
	w, err := newTimerfds(b, true)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for i, fd := range w.(*timerfds).timer {
		var left unix.ItimerSpec
		deadline, from := b.last[i].Load()+int64(limit), clock()
		if err := unix.TimerfdGettime(fd, &left); err != nil {
			t.Fatal(err)
		}
		if late := time.Duration(clock() + left.Value.Nano() - deadline); late < 0 {
			t.Errorf("timer %d fires %s before its deadline", i, -late)
		}
		if late := time.Duration(from + left.Value.Nano() - deadline); late > b.tick+time.Second {
			t.Errorf("timer %d fires %s after its deadline", i, late)
		}
	}
}

func BenchmarkTimers(b *testing.B) {
	const n, limit = 10_000, 120 * time.Millisecond
	for _, c := range []struct {
		name   string
		active bool
	}{{"in-use", true}, {"resting", false}} {
		b.Run(c.name, func(b *testing.B) {
			for _, w := range ways {
				b.Run(w.name, func(b *testing.B) {
					var expired atomic.Int64
					of := newBase(n, limit, func(int) { expired.Add(1) })
					s, err := w.make(of)
					if err != nil {
						b.Fatal(err)
					}
					defer s.close()
					next, woken, cpu, periods := time.Now(), of.woken.Load(), cpuTime(), 0
					for b.Loop() { // a whole limit
						periods++
						for tick := range ticks {
							for i := tick; c.active && i < n; i += ticks {
								s.touch(i)
							}
							next = next.Add(limit / ticks)
							s.run(next)
						}
					}
					b.ReportMetric(float64(cpuTime()-cpu)/1e3/float64(periods), "cpu-µs")
					b.ReportMetric(float64(of.woken.Load()-woken)/float64(periods), "wake-ups")
				})
			}
		})
	}
}

// cpuTime is what the process has used, see getrusage(2).
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // there is no such error
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
