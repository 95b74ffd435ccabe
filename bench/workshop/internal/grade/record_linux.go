package grade

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/witness"
)

// record is what has been seen of a server's system calls.
type record struct {
	mutex    sync.Mutex
	calls    map[string]int
	waits    map[int]uintptr     // by thread: the epoll instance that it waited for last
	epollOf  map[uintptr]uintptr // by descriptor: the epoll instance that it is registered with
	loops    map[uintptr]bool    // the epoll instances whose sockets are read
	since    map[int]int         // by thread: sockets read since it last waited
	mostRead int                 // the most of them
	room     uintptr             // the most that a first read after a wait had room for
	bodies   map[piece]bool      // large ones that were sent
	more     map[uintptr]int     // by descriptor that MSG_MORE was the last word to: the thread that said it
}

func newRecord() *record {
	return &record{calls: map[string]int{}, waits: map[int]uintptr{}, epollOf: map[uintptr]uintptr{}, loops: map[uintptr]bool{}, since: map[int]int{}, bodies: map[piece]bool{}, more: map[uintptr]int{}}
}

func (r *record) observe(c *witness.Call) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch c.Number {
	case unix.SYS_EPOLL_PWAIT:
		r.waits[c.Thread] = c.Args[0]
		r.since[c.Thread] = 0
		r.calls[epollWait]++
		for descriptor, thread := range r.more {
			if thread == c.Thread {
				r.calls[heldBack]++
				delete(r.more, descriptor)
			}
		}
	case unix.SYS_EPOLL_CTL:
		r.calls[epollCtl]++
		if c.Args[1] != unix.EPOLL_CTL_DEL && c.Result >= 0 {
			r.epollOf[c.Args[2]] = c.Args[0]
		}
	case unix.SYS_ACCEPT4:
		r.calls[accepts]++
	case unix.SYS_IO_URING_ENTER:
		r.calls[enters]++
	case unix.SYS_RECVFROM:
		r.calls[reads]++
		if epoll, ok := r.epollOf[c.Args[0]]; ok {
			r.loops[epoll] = true // Go's own netpoller reads by read(2)
		}
		if r.crosses(c) {
			r.calls[readsElsewhere]++
		}
		if r.since[c.Thread] == 0 {
			r.room = max(r.room, c.Args[2])
		}
		r.since[c.Thread]++
		r.mostRead = max(r.mostRead, r.since[c.Thread])
	case unix.SYS_SENDTO:
		r.sent(c)
		r.copied(c)
		r.large(c.Args[1], c.Args[2])
		if c.Args[3]&unix.MSG_MORE != 0 {
			r.more[c.Args[0]] = c.Thread
		}
	case unix.SYS_SENDMSG:
		r.sent(c)
		r.copied(c)
		r.segments(c)
		if c.Args[2]&unix.MSG_MORE != 0 {
			r.more[c.Args[0]] = c.Thread
		}
	case unix.SYS_WRITEV:
		r.sent(c)
		r.copied(c)
	case unix.SYS_SENDFILE:
		r.sent(c)
	case unix.SYS_CLOSE:
		if c.Result == -int64(unix.EBADF) {
			r.calls[closedAgain]++
		}
		delete(r.more, c.Args[0])
	case unix.SYS_WRITE:
		if c.Args[2] == 8 {
			r.calls[wakeUps]++ // eight bytes are what an eventfd takes
			if r.loops[r.epollOf[c.Args[0]]] && r.crosses(c) {
				r.calls[wokenLoops]++
			}
		}
	case unix.SYS_TIMERFD_SETTIME:
		r.calls[timerfdSettime]++
	case unix.SYS_TIMERFD_CREATE:
		r.calls[timerfdCreate]++
	case unix.SYS_FUTEX:
		r.calls[futex]++
	}
}

// copied counts the bytes that the kernel has copied from the program's memory.
func (r *record) copied(c *witness.Call) { r.calls[fromMemory] += int(max(c.Result, 0)) }

func (r *record) sent(c *witness.Call) {
	r.calls[writes]++
	delete(r.more, c.Args[0])
	if r.crosses(c) {
		r.calls[writesElsewhere]++
	}
}

// crosses says whether a socket is used by another thread than the one that waits for it.
func (r *record) crosses(c *witness.Call) bool {
	epoll, ok := r.epollOf[c.Args[0]]
	return ok && r.waits[c.Thread] != epoll
}

func (r *record) large(address, size uintptr) {
	if size >= largePiece {
		r.bodies[piece{address, size}] = true
	}
}

// segments notes the pieces of a sendmsg(2).
func (r *record) segments(c *witness.Call) {
	var message unix.Msghdr
	if !c.Read(bytesOf(&message), c.Args[1]) {
		return
	}
	for i := range min(uintptr(message.Iovlen), 256) {
		var piece unix.Iovec
		if !c.Read(bytesOf(&piece), uintptr(unsafe.Pointer(message.Iov))+i*unsafe.Sizeof(piece)) {
			return
		}
		r.large(uintptr(unsafe.Pointer(piece.Base)), uintptr(piece.Len))
	}
}

// bytesOf is the memory of a value whose pointers are another process's and are never followed.
func bytesOf[T any](value *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))
}
