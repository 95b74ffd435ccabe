package netpoll

import (
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Counters says what one loop has done since it began. A count of calls includes the calls that failed, the attempts that
// were interrupted, and faults injected by a test ([Fault]): it is what strace would count.
//
// It belongs to one thread, which alone may read and write it; the others read its [Published]. The first two fields and
// Connections are kept by the loop itself (and by its [Acceptor], for connections that it refuses), the others by this package. The zero value is ready.
type Counters struct {
	Requests uint64 // requests answered
	Handoffs uint64 // times that work went from this thread to another

	Accepts        uint64 // accept4(2) calls
	AcceptAgains   uint64 // those of Accepts that found no connection: EAGAIN
	Closes         uint64 // close(2) calls, whatever the descriptor was
	Reads          uint64 // recvfrom(2) calls
	ReadAgains     uint64 // those of Reads that found nothing: EAGAIN
	ReadBytes      uint64 // bytes received, by a Ring too
	Writes         uint64 // sendto(2) and sendmsg(2) calls
	VectoredWrites uint64 // those of Writes that were sendmsg(2)
	WriteAgains    uint64 // those of Writes that found the socket full: EAGAIN
	WrittenBytes   uint64 // bytes that the kernel took, from a Ring too

	EpollWaits    uint64 // epoll_pwait(2) calls
	Events        uint64 // events that they gave, wake-ups included
	EpollCtls     uint64 // epoll_ctl(2) calls
	EventfdWrites uint64 // write(2) calls to an eventfd: wake-ups sent

	Enters      uint64 // io_uring_enter(2) calls
	Completions uint64 // that they gave, wake-ups included

	TimerfdCreates  uint64 // timerfd_create(2) calls
	TimerfdSettimes uint64 // timerfd_settime(2) calls
	Shutdowns       uint64 // shutdown(2) calls
	Ioctls          uint64 // ioctl(2) calls: what a socket still holds, to send or to read

	BodyBytesCopied uint64 // bytes that went through CopyBody
	HeldBytes       uint64 // gauge: bytes of buffers held by connections, by capacity
	Connections     uint64 // gauge: connections that are open
}

// counterNames are the fields' names in their order; a test holds them to the struct.
var counterNames = [...]string{
	"requests", "handoffs",
	"accepts", "accept_agains", "closes", "reads", "read_agains", "read_bytes",
	"writes", "vectored_writes", "write_agains", "written_bytes",
	"epoll_waits", "events", "epoll_ctls", "eventfd_writes",
	"enters", "completions",
	"timerfd_creates", "timerfd_settimes", "shutdowns", "ioctls",
	"body_bytes_copied", "held_bytes", "connections",
}

// counterHelp says of each what it counts, for people who watch a server and have not read this file.
var counterHelp = [len(counterNames)]string{
	"requests answered", "times that work went from this thread to another",
	"accept4 calls", "accept4 calls that found no connection, EAGAIN", "close calls", "recvfrom calls",
	"recvfrom calls that found nothing, EAGAIN", "bytes received",
	"sendto and sendmsg calls", "sendmsg calls", "sendto and sendmsg calls that found the socket full, EAGAIN", "bytes sent",
	"epoll_pwait calls", "events that epoll_pwait gave, wake-ups included", "epoll_ctl calls", "wake-ups sent through an eventfd",
	"io_uring_enter calls", "completions that io_uring_enter gave, wake-ups included",
	"timerfd_create calls", "timerfd_settime calls", "shutdown calls", "ioctl calls",
	"bytes of bodies copied", "bytes of buffers held by connections", "connections that are open",
}

// CounterHelp is a short text about the counter that [Counters.Each] gives this name; "" if there is none.
func CounterHelp(name string) string {
	if i := slices.Index(counterNames[:], name); i >= 0 {
		return counterHelp[i]
	}
	return ""
}

// counterArray is how Counters looks in memory: all its fields are uint64.
type counterArray = [len(counterNames)]uint64

func (c *Counters) array() *counterArray { return (*counterArray)(unsafe.Pointer(c)) }

// Each calls yield with every counter's name in snake_case ("requests", "handoffs", …) and value, always in the order of
// the fields.
func (c *Counters) Each(yield func(name string, value uint64)) {
	for i, value := range c.array() {
		yield(counterNames[i], value)
	}
}

// Set sets the counter that [Counters.Each] gives this name, and says whether there is one.
func (c *Counters) Set(name string, value uint64) bool {
	i := slices.Index(counterNames[:], name)
	if i >= 0 {
		c.array()[i] = value
	}
	return i >= 0
}

// IsGauge says whether the counter of this name is a level, which goes up and down: HeldBytes and Connections.
func IsGauge(name string) bool { return name == "held_bytes" || name == "connections" }

// Add adds every counter of o to c, gauges too: the sum over several loops. A buffer that one loop took and another gave
// back leaves a gauge below zero, that is wrapped round, in the second; the sum is right again.
func (c *Counters) Add(o Counters) {
	sum := c.array()
	for i, value := range o.array() {
		sum[i] += value
	}
}

// Sub is what has happened since o was read: each count of c less that of o. The gauges stay as they are in c, for a
// level has no meaningful difference.
func (c Counters) Sub(o Counters) Counters {
	rest := c.array()
	for i, value := range o.array() {
		if !IsGauge(counterNames[i]) {
			rest[i] -= value
		}
	}
	return c
}

// CopyBody is append(dst, src...), counted in BodyBytesCopied. Every copy of body bytes that a stage makes goes through it.
func (c *Counters) CopyBody(dst, src []byte) []byte {
	c.BodyBytesCopied += uint64(len(src))
	return append(dst, src...)
}

// NewBuffer is make([]byte, size), counted in HeldBytes until Release(cap(buffer)).
func (c *Counters) NewBuffer(size int) []byte {
	b := make([]byte, size)
	c.Hold(cap(b))
	return b
}

// GrowBuffer gives b, with its length and content, room for at least n more bytes: as it is if it has it, else in a new
// array of at least twice the capacity. What the capacity grew by is counted in HeldBytes; the move is not a body copy.
// b must be a whole buffer of NewBuffer or GrowBuffer, or nil, and must not be used again.
func (c *Counters) GrowBuffer(b []byte, n int) []byte {
	if n <= cap(b)-len(b) {
		return b
	}
	// slices.Grow adds only a quarter to a large slice; a body that arrives in small pieces is moved less often if it doubles.
	grown := slices.Grow(b, max(n, 2*cap(b)-len(b)))
	c.Hold(cap(grown) - cap(b))
	return grown
}

// Hold adds n bytes to HeldBytes: a connection has taken a buffer of that capacity, from a pool for instance.
func (c *Counters) Hold(n int) { c.HeldBytes += uint64(n) }

// Release takes n bytes off HeldBytes: a connection has given a buffer of that capacity back, or dropped it.
func (c *Counters) Release(n int) { c.HeldBytes -= uint64(n) }

// Published is a loop's [Counters] as others may see them. The owner stores them once per turn; any goroutine loads them
// at any time. It stands on cache lines of its own, so that a reader slows down no neighbour. The zero value is ready; it
// must not be copied.
type Published struct {
	_      cpu.CacheLinePad
	values [len(counterNames)]atomic.Uint64
	_      cpu.CacheLinePad
}

// Publish shows c's present values. Only the loop that owns c may call it. An atomic store is dear and a load is cheap, so
// that only what has changed is stored.
func (p *Published) Publish(c *Counters) {
	for i, value := range c.array() {
		if p.values[i].Load() != value {
			p.values[i].Store(value)
		}
	}
}

// Load is what was published last. Each value is whole, and none ever goes back but the gauges; the set may mix two
// neighbouring turns when the owner publishes meanwhile. Safe from any goroutine.
func (p *Published) Load() Counters {
	var c Counters
	values := c.array()
	for i := range p.values {
		values[i] = p.values[i].Load()
	}
	return c
}
