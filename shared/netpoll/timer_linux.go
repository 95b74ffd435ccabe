package netpoll

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// NewTimer is timerfd_create(2) on the monotonic clock: a descriptor, disarmed, non-blocking, closed on exec, that is
// Readable in a [Poller] once the time of [SetTimer] is over. Give it back with [Close]. It fails with EMFILE, ENFILE,
// ENOMEM.
func NewTimer(c *Counters) (fd int, err error) {
	c.TimerfdCreates++
	if n, errno, injected := consult(CallTimerfdCreate, -1); injected {
		return n, failure(errno)
	}
	timer, _, errno := unix.RawSyscall(unix.SYS_TIMERFD_CREATE, unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(timer), nil
}

// SetTimer is timerfd_settime(2): fd becomes readable once, after that time; 0 disarms it, less than 0 means at once. An
// earlier setting is replaced, and an expiry that nobody has read is forgotten: the timer is not readable any more,
// so that it need never be read. Safe from any thread.
func SetTimer(c *Counters, fd int, after time.Duration) error {
	// Zero would disarm.
	if after < 0 {
		after = 1
	}
	for {
		c.TimerfdSettimes++
		if errno := timerfdSettime(fd, after); errno != unix.EINTR {
			return failure(errno)
		}
	}
}

func timerfdSettime(fd int, after time.Duration) syscall.Errno {
	if _, errno, injected := consult(CallTimerfdSettime, fd); injected {
		return errno
	}
	setting := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(after))}
	_, _, errno := unix.RawSyscall6(unix.SYS_TIMERFD_SETTIME, uintptr(fd), 0, uintptr(unsafe.Pointer(&setting)), 0, 0, 0)
	return errno
}
