//go:build linux

package price

import (
	"testing"

	"golang.org/x/sys/unix"
)

// ways in the order of lab.yaml; the first is the baseline.
var ways = []struct {
	name string
	do   func(*kernel) error
}{
	{"getpid", (*kernel).getpid},
	{"clock-vdso", (*kernel).clockVDSO},
	{"clock-call", (*kernel).clockCall},
	{"recv-nothing", (*kernel).recvNothing},
	{"send", (*kernel).send},
	{"epoll-wait", (*kernel).epollWait},
	{"epoll-ctl", (*kernel).epollCtl},
	{"timerfd-settime", (*kernel).setTimer},
	{"eventfd-write", (*kernel).eventfd},
}

var calls = []struct {
	name string
	call call
}{{"raw", raw}, {"scheduled", scheduled}}

// Made in either way, each call does what it is there for.
func TestSame(t *testing.T) {
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			k, err := newKernel(c.call)
			if err != nil {
				t.Fatal(err)
			}
			defer k.close()
			for _, w := range ways {
				for range 3 {
					if err := w.do(k); err != nil {
						t.Fatalf("%s: %v", w.name, err)
					}
				}
			}
			if k.sent != 3 || k.drain() != nil {
				t.Error("what was sent did not arrive")
			}
			if pid, _, _ := c.call(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0); int(pid) != unix.Getpid() {
				t.Errorf("process %d, not %d", pid, unix.Getpid())
			}
			var left unix.ItimerSpec
			if err := unix.TimerfdGettime(k.timer, &left); err != nil || left.Value.Sec < 50 {
				t.Errorf("the timer was not set: %v, %v", left, err)
			}
			var count [8]byte
			if _, err := unix.Read(k.event, count[:]); err != nil || count[0] != 3 {
				t.Errorf("the bell was rung %d times: %v", count[0], err)
			}
		})
	}
}

func BenchmarkPrice(b *testing.B) {
	for _, c := range calls {
		b.Run(c.name, func(b *testing.B) {
			for _, w := range ways {
				b.Run(w.name, func(b *testing.B) {
					k, err := newKernel(c.call)
					if err != nil {
						b.Fatal(err)
					}
					defer k.close()
					for b.Loop() {
						if err := w.do(k); err != nil {
							b.Fatal(err)
						}
						if k.sent == enough {
							b.StopTimer()
							if err := k.drain(); err != nil {
								b.Fatal(err)
							}
							b.StartTimer()
						}
					}
				})
			}
		})
	}
}
