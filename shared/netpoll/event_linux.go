package netpoll

import "golang.org/x/sys/unix"

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
