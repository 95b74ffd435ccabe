package netpoll

import (
	"math"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// maxEvents is how many events one Wait reports at most; the others follow in the next.
const maxEvents = 512

// Poller is an epoll instance, see epoll(7), with an eventfd that wakes it from other threads. One thread, its owner, calls
// Wait. Add, Modify, Remove and Wake are safe from any thread. Close must come after all of them.
type Poller struct {
	epoll int
	wake  int
	_     cpu.CacheLinePad // other threads read what is above, the owner writes what is below

	signalled bool // the runtime sends a signal when it wants a thread
	events    [maxEvents]Event
}

// NewPoller opens a Poller: epoll_create1(2) and eventfd(2). It fails with EMFILE, ENFILE or ENOMEM, and holds nothing then.
func NewPoller(c *Counters) (*Poller, error) {
	epoll, errno := epollCreate1()
	if errno != 0 {
		return nil, errno
	}
	wake, err := openEventfd()
	if err != nil {
		Close(c, epoll)
		return nil, err
	}
	p := &Poller{epoll: epoll, wake: wake, signalled: !strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff=1")}
	// Edge-triggered, each write is one event, whether or not the eventfd was ever read: so it never is.
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: wakeFD}
	if err := p.control(c, unix.EPOLL_CTL_ADD, wake, &event); err != nil {
		p.Close(c)
		return nil, err
	}
	return p, nil
}

// Share returns another Poller of the same epoll instance, for another thread to wait with; each is owned by one. What is added by
// one is waited for by all. An event goes to one of those that wait if it is OneShot or EdgeTriggered, and may go to several
// otherwise; Wake wakes one. The new Poller has no descriptor of its own: only p is to be closed.
func (p *Poller) Share() *Poller {
	return &Poller{epoll: p.epoll, wake: p.wake, signalled: p.signalled}
}

func epollCreate1() (int, syscall.Errno) {
	if n, errno, injected := consult(CallEpollCreate1, -1); injected {
		return n, errno
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_EPOLL_CREATE1, unix.EPOLL_CLOEXEC, 0, 0)
	return int(fd), errno
}

// openEventfd is eventfd(2), non-blocking and closed on exec.
func openEventfd() (int, error) {
	if n, errno, injected := consult(CallEventfd2, -1); injected {
		return n, failure(errno)
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_EVENTFD2, 0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC, 0)
	return int(fd), failure(errno)
}

// Add is epoll_ctl(2) with EPOLL_CTL_ADD: from now on fd's events are reported, with generation. It fails with EEXIST if fd is
// there already, ENOMEM or ENOSPC when the kernel has no room. The Poller does not own fd; when fd is closed the
// kernel forgets it. c belongs to the calling thread.
func (p *Poller) Add(c *Counters, fd int, generation uint32, interest Interest) error {
	event := unix.EpollEvent{Events: uint32(interest), Fd: int32(fd), Pad: int32(generation)}
	return p.control(c, unix.EPOLL_CTL_ADD, fd, &event)
}

// Modify is epoll_ctl(2) with EPOLL_CTL_MOD: it replaces generation and interest, and arms OneShot again. What is ready at that
// moment is reported (again), edge-triggered or not. It fails with ENOENT if fd was never added.
func (p *Poller) Modify(c *Counters, fd int, generation uint32, interest Interest) error {
	event := unix.EpollEvent{Events: uint32(interest), Fd: int32(fd), Pad: int32(generation)}
	return p.control(c, unix.EPOLL_CTL_MOD, fd, &event)
}

// Remove is epoll_ctl(2) with EPOLL_CTL_DEL. Before Close it is needless. Events that Wait has already returned are not taken
// back. It fails with ENOENT if fd was never added.
func (p *Poller) Remove(c *Counters, fd int) error {
	return p.control(c, unix.EPOLL_CTL_DEL, fd, nil)
}

func (p *Poller) control(c *Counters, operation, fd int, event *unix.EpollEvent) error {
	for {
		c.EpollCtls++
		if errno := epollControl(p.epoll, operation, fd, event); errno != unix.EINTR {
			return failure(errno)
		}
	}
}

func epollControl(epoll, operation, fd int, event *unix.EpollEvent) syscall.Errno {
	if _, errno, injected := consult(CallEpollCtl, fd); injected {
		return errno
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(epoll), uintptr(operation), uintptr(fd), uintptr(unsafe.Pointer(event)), 0, 0)
	return errno
}

// Wait is epoll_pwait(2): it waits until something happens and returns the events, at most 512; the slice is valid until
// the next Wait. It waits no longer than timeout, rounded up to a millisecond; 0 only looks, less than 0 waits for ever. No
// events and no error means that the time is over, or that a timeout of more than 24 days was cut short. Interruptions
// by signals are waited out and do not lengthen the time. Only the owner may call it.
//
// A wait without a time limit begins as a call that the Go scheduler does not hear of: telling it costs half a microsecond per
// request under load, most of it in the runtime's monitor thread, which then looks after a processor that changes hands all
// the time. When the runtime wants the thread, to collect garbage or because 10 ms have passed, it sends a signal; the wait goes on
// in the way that lets the scheduler have the processor. So a loop under load keeps its processor, and one at rest does not.
func (p *Poller) Wait(c *Counters, timeout time.Duration) ([]Event, error) {
	var n int
	var errno syscall.Errno
	switch {
	case timeout == 0:
		if n, errno = p.raw(c, 0); errno == unix.EINTR {
			n, errno = p.block(c, 0)
		}
	case timeout < 0 && p.signalled:
		if n, errno = p.raw(c, -1); errno == unix.EINTR {
			n, errno = p.block(c, timeout)
		}
	default:
		n, errno = p.block(c, timeout)
	}
	c.Events += uint64(n)
	return p.events[:n], failure(errno)
}

// raw waits without telling the Go scheduler, until the first signal.
func (p *Poller) raw(c *Counters, milliseconds int) (int, syscall.Errno) {
	c.EpollWaits++
	n, errno, ask := p.room()
	if !ask {
		return n, errno
	}
	got, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events)), uintptr(n), uintptr(milliseconds), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(got), 0
}

// block waits. The Go scheduler knows, and gives the processor to others.
func (p *Poller) block(c *Counters, timeout time.Duration) (int, syscall.Errno) {
	var end time.Time
	if timeout > 0 {
		end = time.Now().Add(timeout)
	}
	for {
		c.EpollWaits++
		room, errno, ask := p.room()
		if ask {
			var n uintptr
			n, _, errno = unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events)), uintptr(room), uintptr(milliseconds(timeout)), 0, 0)
			room = int(n)
		}
		switch errno {
		case 0:
			return room, 0
		case unix.EINTR:
			// SA_RESTART, which Go sets for its signals, does not cover epoll_wait, see signal(7).
			if timeout > 0 {
				if timeout = time.Until(end); timeout <= 0 {
					return 0, 0
				}
			}
		default:
			return 0, errno
		}
	}
}

// room consults Fault. If ask is true, the kernel is to be asked for at most n events; else n and errno are the answer.
func (p *Poller) room() (n int, errno syscall.Errno, ask bool) {
	n, errno, injected := consult(CallEpollPwait, p.epoll)
	if !injected {
		return maxEvents, 0, true
	}
	if errno != 0 || n <= 0 {
		return 0, errno, false
	}
	return min(n, maxEvents), 0, true
}

// milliseconds is timeout for epoll_pwait, rounded up so that nothing is early.
func milliseconds(timeout time.Duration) int {
	if timeout < 0 {
		return -1
	}
	ms := timeout / time.Millisecond
	if timeout%time.Millisecond != 0 {
		ms++
	}
	return int(min(ms, math.MaxInt32))
}

// Wake makes the owner's Wait, the present one or else the next, return with an event for which IsWake holds. Several
// wake-ups may come as one event. It is write(2) to the eventfd. c belongs to the calling thread, not to the owner. Whoever
// calls it must know that the Poller is not closed: the number of its eventfd may be another descriptor's by then.
func (p *Poller) Wake(c *Counters) error {
	for {
		c.EventfdWrites++
		if errno := writeOne(p.wake); errno != unix.EINTR {
			return failure(errno)
		}
	}
}

func writeOne(eventfd int) syscall.Errno {
	if _, errno, injected := consult(CallWrite, eventfd); injected {
		return errno
	}
	// The sum may not exceed 2^64-2: enough for 500 years of wake-ups.
	one := uint64(1)
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(eventfd), uintptr(unsafe.Pointer(&one)), unsafe.Sizeof(one))
	return errno
}

// Close gives both descriptors back and answers the first error. The descriptors that were added stay open. A nil Poller, of
// a NewPoller that failed, has nothing to give back.
func (p *Poller) Close(c *Counters) error {
	if p == nil {
		return nil
	}
	err := Close(c, p.epoll)
	if wakeErr := Close(c, p.wake); err == nil {
		err = wakeErr
	}
	return err
}

// wakeFD stands for the wake-up eventfd in an event: no real descriptor is negative.
const wakeFD = -1

// Event is what a [Poller] reports of one descriptor. It is the kernel's own epoll_event, not a copy.
type Event struct{ raw unix.EpollEvent }

// FD is the descriptor, as given to Add. It is negative for a wake-up.
func (e Event) FD() int { return int(e.raw.Fd) }

// Generation is the number given to Add or Modify last. A descriptor's number is used again as soon as it is closed: an event
// with another generation than the present one's was meant for its predecessor.
func (e Event) Generation() uint32 { return uint32(e.raw.Pad) }

// IsWake says that the event is a wake-up, by [Poller.Wake], and no descriptor's.
func (e Event) IsWake() bool { return e.raw.Fd == wakeFD }

// Readable says that there is something to read or to accept, the end of input included: EPOLLIN.
func (e Event) Readable() bool { return e.raw.Events&unix.EPOLLIN != 0 }

// Writable says that there is room to write: EPOLLOUT.
func (e Event) Writable() bool { return e.raw.Events&unix.EPOLLOUT != 0 }

// Urgent says that an urgent byte has come, EPOLLPRI (reported only with Urgent): reads stop right before it, though bytes may
// lie behind it, see tcp(7).
func (e Event) Urgent() bool { return e.raw.Events&unix.EPOLLPRI != 0 }

// Closed says that the peer has closed its sending half, or that the connection is over or broken: EPOLLRDHUP (reported only
// with PeerClosed), EPOLLHUP or EPOLLERR. Bytes may still be left to read.
func (e Event) Closed() bool {
	return e.raw.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
}
