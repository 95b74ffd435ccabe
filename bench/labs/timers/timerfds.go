//go:build linux

package timers

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// timerfds is the baseline, and stage2: a timer of the kernel for each connection, which fires too
// early and is set again for what is left. With round it fires at the next tick, as do all that are
// due by then: one interrupt, and one wait for up to 128.
type timerfds struct {
	*base
	epoll  int
	timer  []int
	round  bool
	offset int64 // of CLOCK_MONOTONIC to clock
}

func newTimerfds(b *base, round bool) (watch, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	t := &timerfds{base: b, epoll: epoll, round: round, offset: -clock()}
	var now unix.Timespec
	if err == nil {
		err = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	}
	t.offset += now.Nano()
	for i := 0; i < len(b.last) && err == nil; i++ {
		var fd int
		if fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err == nil {
			t.timer = append(t.timer, fd)
			err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(i)})
			t.set(i, b.left(i, clock()))
		}
	}
	return t, err
}

func (t *timerfds) set(i int, d time.Duration) {
	value, flags := int64(d), uintptr(0)
	if t.round {
		next := (d + time.Duration(clock()) + t.tick - 1).Truncate(t.tick)
		value, flags = int64(next)+t.offset, unix.TFD_TIMER_ABSTIME
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(value)}
	unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(t.timer[i]), flags, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
}

func (t *timerfds) run(until time.Time) {
	var events [128]unix.EpollEvent
	for rest := time.Until(until); rest > 0; rest = time.Until(until) {
		n, _ := unix.EpollWait(t.epoll, events[:], int((rest+time.Millisecond-1)/time.Millisecond))
		if n > 0 {
			t.woken.Add(1)
		}
		for _, e := range events[:max(n, 0)] {
			t.set(int(e.Fd), t.left(int(e.Fd), clock()))
		}
	}
}

func (t *timerfds) close() {
	for _, fd := range append(t.timer, t.epoll) {
		unix.Close(fd)
	}
}
