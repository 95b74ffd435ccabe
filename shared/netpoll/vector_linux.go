package netpoll

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxSegments is UIO_MAXIOV, the most that sendmsg(2) takes.
const maxSegments = 1024

// Vector is a list of byte slices to send in order with one system call. It holds the slices themselves, not copies: they
// must stay unchanged until they are sent or Reset is called. It owns its arrays, allocates nothing after NewVector and
// is made to be reused. One thread at a time.
type Vector struct {
	segments []unix.Iovec // those appended since Reset, sent ones included
	first    int          // index of the first that is not wholly sent
	length   int          // bytes not sent yet
	message  unix.Msghdr
}

// NewVector makes a Vector for at most that many segments, 1 to 1024; it panics outside that.
func NewVector(segments int) *Vector {
	if segments < 1 || segments > maxSegments {
		panic("netpoll: a Vector holds 1 to 1024 segments")
	}
	return &Vector{segments: make([]unix.Iovec, 0, segments)}
}

// Append adds b at the end. An empty b is left out. It panics when Full.
func (v *Vector) Append(b []byte) {
	if len(b) == 0 {
		return
	}
	if v.Full() {
		panic("netpoll: the Vector is full")
	}
	v.segments = v.segments[:len(v.segments)+1]
	last := &v.segments[len(v.segments)-1]
	last.Base = unsafe.SliceData(b)
	last.SetLen(len(b))
	v.length += len(b)
}

// Len is the number of bytes not sent yet.
func (v *Vector) Len() int { return v.length }

// Segments is the number of segments not wholly sent yet.
func (v *Vector) Segments() int { return len(v.segments) - v.first }

// Full says that nothing can be appended before Reset. Room for sent segments comes back only when all are sent.
func (v *Vector) Full() bool { return len(v.segments) == cap(v.segments) }

// Segment is what is left of segment i, from 0 to Segments()-1; 0 is the next to be sent. It is a view of the slice that was
// appended. It panics when i is out of range.
func (v *Vector) Segment(i int) []byte {
	s := &v.segments[v.first:][i]
	return unsafe.Slice(s.Base, int(s.Len))
}

// Reset forgets all segments, so that the collector can free what they point into.
func (v *Vector) Reset() {
	clear(v.segments)
	v.segments = v.segments[:0]
	v.first, v.length = 0, 0
	v.message.Iov = nil
}

// Advance drops the first n bytes, those that Send says are sent; all of them is as good as Reset. It panics if n is negative or more
// than Len.
func (v *Vector) Advance(n int) {
	if n < 0 || n > v.length {
		panic("netpoll: Advance beyond the Vector")
	}
	if n == v.length {
		v.Reset()
		return
	}
	v.length -= n
	for {
		s := &v.segments[v.first]
		if size := int(s.Len); n >= size {
			*s = unix.Iovec{}
			v.first++
			n -= size
			continue
		}
		s.Base = (*byte)(unsafe.Add(unsafe.Pointer(s.Base), n))
		s.SetLen(int(s.Len) - n)
		return
	}
}

// Send is sendmsg(2) with MSG_NOSIGNAL. It answers how many bytes the kernel took, from the first on, which may be fewer
// than Len with a nil error: call Advance(n) then. ErrWouldBlock and errors are as with [Send]. An empty Vector makes no
// call.
func (v *Vector) Send(c *Counters, fd int) (n int, err error) {
	if v.length == 0 {
		return 0, nil
	}
	v.message.Iov = &v.segments[v.first]
	v.message.SetIovlen(v.Segments())
	for {
		c.Writes++
		c.VectoredWrites++
		n, errno := v.sendmsg(fd)
		if errno != unix.EINTR {
			return sent(c, n, errno)
		}
	}
}

func (v *Vector) sendmsg(fd int) (int, syscall.Errno) {
	if n, errno, injected := consult(CallSendmsg, fd); injected {
		if errno != 0 || n <= 0 {
			return 0, errno
		}
		if n < v.length {
			return v.sendCut(fd, n)
		}
	}
	n, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&v.message)), unix.MSG_NOSIGNAL)
	return int(n), errno
}

// sendCut sends at most n bytes, fewer than there are: only for Fault.
func (v *Vector) sendCut(fd, n int) (int, syscall.Errno) {
	cut := NewVector(cap(v.segments))
	for i := 0; n > 0; i++ {
		b := v.Segment(i)
		b = b[:min(n, len(b))]
		cut.Append(b)
		n -= len(b)
	}
	cut.message.Iov = &cut.segments[0]
	cut.message.SetIovlen(cut.Segments())
	sent, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&cut.message)), unix.MSG_NOSIGNAL)
	return int(sent), errno
}
