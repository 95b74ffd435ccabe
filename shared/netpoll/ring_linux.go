package netpoll

import (
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	ringEntries     = 1024 // of the submission queue: more requests than that are submitted in several calls
	ringCompletions = 8192 // of the completion queue; the kernel keeps what does not fit
	ringBuffers     = 1024 // that the kernel receives into; a power of two
	ringBufferSize  = 4096 // bytes of each
)

// The numbers are those of linux/io_uring.h; io_uring_setup(2), io_uring_enter(2) and
// io_uring_register(2) say what they mean.
const (
	setupCQSize       = 1 << 3
	setupDisabled     = 1 << 6  // until it is enabled, by the thread that will use it
	setupSubmitAll    = 1 << 7  // a request that is wrong does not keep back those behind it
	setupSingleIssuer = 1 << 12 // one thread submits
	setupDeferTaskrun = 1 << 13 // what is left to do for a completion is done in Enter

	enterGetEvents = 1 << 0
	enterExtArg    = 1 << 3

	registerEnable     = 12
	registerBufferRing = 22

	opcodeSendmsg     = 9
	opcodeTimeout     = 11
	opcodeAccept      = 13
	opcodeAsyncCancel = 14
	opcodePollAdd     = 6
	opcodeSend        = 26
	opcodeRecv        = 27

	sqeBufferSelect = 1 << 5 // the kernel picks a buffer of the ring of buffers
	sqeSkipSuccess  = 1 << 6 // no completion unless it fails

	pollMultishot   = 1 << 0
	acceptMultishot = 1 << 0
	recvMultishot   = 1 << 1

	cqeBuffer      = 1 << 0 // the upper half of the flags is a buffer's number
	cqeMore        = 1 << 1
	cqeBufferShift = 16

	offsetRings    = 0
	offsetRequests = 0x10000000
)

// ringParams is struct io_uring_params, see io_uring_setup(2).
type ringParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFD uint32
	_                                                                      [3]uint32

	sq struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

// ringRequest is struct io_uring_sqe, see io_uring_enter(2). Its unions are named after what they
// are used for here.
type ringRequest struct {
	opcode    uint8
	flags     uint8
	ioprio    uint16 // the flags of accept and recv
	fd        int32
	off       uint64
	addr      uint64
	len       uint32
	opFlags   uint32 // msg_flags, accept_flags, poll32_events
	userData  uint64
	bufGroup  uint16
	_         uint16
	fileIndex uint32
	_         [2]uint64
}

// ringResult is struct io_uring_cqe, see io_uring_enter(2).
type ringResult struct {
	userData uint64
	result   int32
	flags    uint32
}

// ringBuffer is struct io_uring_buf, see io_uring_register(2), IORING_REGISTER_PBUF_RING. In the
// first one the last field is the tail of the ring.
type ringBuffer struct {
	addr uint64
	len  uint32
	id   uint16
	tail uint16
}

// bufferRing is struct io_uring_buf_reg, see the same.
type bufferRing struct {
	addr    uint64
	entries uint32
	group   uint16
	flags   uint16
	_       [3]uint64
}

// ringWait is struct io_uring_getevents_arg, see io_uring_enter(2), IORING_ENTER_EXT_ARG.
type ringWait struct {
	sigmask     uint64
	sigmaskSize uint32
	_           uint32
	timeout     uint64 // the address of a unix.Timespec
}

// Ring is an io_uring instance, see io_uring(7), and an eventfd that wakes it from other threads.
// It is no [Poller]: it does not say what could be done, but what has been done. Accept, Receive,
// Send and After note a request in memory that the kernel shares, and make no system call;
// [Ring.Enter] makes one for all that has been noted, and waits; [Ring.Next] gives what is
// complete.
//
// One thread, its owner, calls all of it but Wake. What a request points to belongs to the kernel
// until its completion has been given: it must neither change nor move nor be collected. The caller
// gives each request an id, below 2^24, which the completion has too; of one operation no two
// requests may have the same at a time.
//
// It needs Linux 6.1 or later.
type Ring struct {
	fd, wake int

	rings, requestMemory, bufferMemory []byte // mapped

	sqHead, sqTail *uint32
	sqMask         uint32
	requests       []ringRequest
	tail           uint32 // behind the last request that has been noted

	cqHead, cqTail *uint32
	cqMask         uint32
	results        []ringResult
	head           uint32 // of the first completion that has not been given

	aside int // how many SendAside have been noted since the last Enter

	bufferRing []ringBuffer
	returned   uint16 // behind the last buffer that the kernel has been given
	lent       int    // the buffer that the present completion has, or -1

	period  unix.Timespec // of After, until it is submitted
	wait    ringWait
	timeout unix.Timespec // of wait
}

// RingError says why there can be no Ring here; it is nil where there can. The error wraps
// [ErrNoRing] if it is for good.
func RingError() error {
	r, err := NewRing(new(Counters))
	if err == nil {
		r.Close(new(Counters))
	}
	return err
}

// NewRing opens a Ring: io_uring_setup(2), io_uring_register(2) for its buffers, and eventfd(2).
// Any thread may do that; it can be used once its owner has called Enable. It takes 4 MiB for the
// buffers, which become resident as they are used. The error wraps [ErrNoRing] where io_uring is
// forbidden or too old, or else the errno: EMFILE, ENFILE, ENOMEM. Nothing is held then.
func NewRing(c *Counters) (*Ring, error) {
	params := ringParams{
		flags:     setupCQSize | setupDisabled | setupSubmitAll | setupSingleIssuer | setupDeferTaskrun,
		cqEntries: ringCompletions,
	}
	fd, errno := ioUringSetup(ringEntries, &params)
	switch errno {
	case 0:
	case unix.ENOSYS, unix.EPERM, unix.EACCES, unix.EINVAL:
		return nil, fmt.Errorf("%w (io_uring_setup: %w): it needs Linux 6.1, and neither kernel.io_uring_disabled nor a seccomp profile that forbids it", ErrNoRing, errno)
	default:
		return nil, errno
	}
	r := &Ring{fd: fd, wake: -1, lent: -1}
	if err := r.open(c, &params); err != nil {
		r.Close(c)
		return nil, err
	}
	return r, nil
}

func ioUringSetup(entries int, params *ringParams) (int, syscall.Errno) {
	if n, errno, injected := consult(CallIoUringSetup, -1); injected {
		return n, errno
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(params)), 0)
	return int(fd), errno
}

// open maps what the kernel shares, and gives it buffers.
func (r *Ring) open(c *Counters, params *ringParams) (err error) {
	const readWrite = unix.PROT_READ | unix.PROT_WRITE
	// Both rings are in one piece (IORING_FEAT_SINGLE_MMAP, since Linux 5.4).
	size := max(params.sq.array+params.sqEntries*4, params.cq.cqes+params.cqEntries*uint32(unsafe.Sizeof(ringResult{})))
	if r.rings, err = unix.Mmap(r.fd, offsetRings, int(size), readWrite, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return err
	}
	size = params.sqEntries * uint32(unsafe.Sizeof(ringRequest{}))
	if r.requestMemory, err = unix.Mmap(r.fd, offsetRequests, int(size), readWrite, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return err
	}
	number := func(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[offset])) }
	r.sqHead, r.sqTail, r.sqMask = number(params.sq.head), number(params.sq.tail), *number(params.sq.mask)
	r.requests = unsafe.Slice((*ringRequest)(unsafe.Pointer(&r.requestMemory[0])), params.sqEntries)
	// The queue is a list of places in the array of requests; here each stands at its own.
	for i := range params.sqEntries {
		*number(params.sq.array + i*4) = i
	}
	r.cqHead, r.cqTail, r.cqMask = number(params.cq.head), number(params.cq.tail), *number(params.cq.mask)
	r.results = unsafe.Slice((*ringResult)(unsafe.Pointer(&r.rings[params.cq.cqes])), params.cqEntries)

	if err := r.provideBuffers(); err != nil {
		return err
	}
	r.wait.timeout = uint64(uintptr(unsafe.Pointer(&r.timeout)))
	if r.wake, err = openEventfd(); err != nil {
		return err
	}
	r.watchWake(c)
	return nil
}

// provideBuffers registers the ring of buffers. The memory is not the collector's: the kernel
// writes to it at any time.
func (r *Ring) provideBuffers() (err error) {
	const table = ringBuffers * int(unsafe.Sizeof(ringBuffer{}))
	r.bufferMemory, err = unix.Mmap(-1, 0, table+ringBuffers*ringBufferSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	r.bufferRing = unsafe.Slice((*ringBuffer)(unsafe.Pointer(&r.bufferMemory[0])), ringBuffers)
	registration := bufferRing{addr: uint64(uintptr(unsafe.Pointer(&r.bufferMemory[0]))), entries: ringBuffers}
	if errno := r.register(registerBufferRing, unsafe.Pointer(&registration), 1); errno != 0 {
		return errno
	}
	for i := range ringBuffers {
		r.giveBuffer(i)
	}
	r.publishBuffers()
	return nil
}

// buffer is the memory of one buffer.
func (r *Ring) buffer(id int) []byte {
	const table = ringBuffers * int(unsafe.Sizeof(ringBuffer{}))
	from := table + id*ringBufferSize
	return r.bufferMemory[from : from+ringBufferSize : from+ringBufferSize]
}

// giveBuffer puts a buffer behind those that the kernel has.
func (r *Ring) giveBuffer(id int) {
	entry := &r.bufferRing[r.returned&(ringBuffers-1)]
	entry.addr = uint64(uintptr(unsafe.Pointer(&r.buffer(id)[0])))
	entry.len = ringBufferSize
	entry.id = uint16(id)
	r.returned++
}

// publishBuffers shows the kernel the buffers that it has been given. The tail shares four bytes
// with the first one's number; no atomic store is as small, so both are stored.
func (r *Ring) publishBuffers() {
	first := &r.bufferRing[0]
	both := [2]uint16{first.id, r.returned}
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&first.id)), *(*uint32)(unsafe.Pointer(&both)))
}

// Enable makes the calling thread the owner. The goroutine must hold it with runtime.LockOSThread,
// and end without unlocking it: the thread gets no SIGURG any more, by which the Go runtime
// interrupts one that it wants. It has the thread at the next call of a function, or in Enter,
// which tells it. The kernel receives for a Receive in this thread too, and where a read stands
// before an urgent byte, a signal that is pending makes it find nothing (tcp_recvmsg, MSG_OOB), and
// nothing else would make it look again.
func (r *Ring) Enable() error {
	var urgent unix.Sigset_t
	const bits = 8 * int(unsafe.Sizeof(urgent.Val[0]))
	urgent.Val[(int(unix.SIGURG)-1)/bits] |= 1 << ((int(unix.SIGURG) - 1) % bits)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &urgent, nil); err != nil {
		return err
	}
	return failure(r.register(registerEnable, nil, 0))
}

func (r *Ring) register(what int, argument unsafe.Pointer, n int) syscall.Errno {
	if _, errno, injected := consult(CallIoUringRegister, r.fd); injected {
		return errno
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), uintptr(what), uintptr(argument), uintptr(n), 0, 0)
	return errno
}

// note is the next free request, cleared, with that id; if there is none, those that have been
// noted are submitted.
func (r *Ring) note(c *Counters, operation Operation, id uint32) *ringRequest {
	for r.tail-atomic.LoadUint32(r.sqHead) == uint32(len(r.requests)) {
		r.submit(c)
	}
	request := &r.requests[r.tail&r.sqMask]
	r.tail++
	*request = ringRequest{userData: userData(operation, id)}
	return request
}

// userData is what a completion has of its request.
func userData(operation Operation, id uint32) uint64 { return uint64(operation)<<32 | uint64(id) }

// watchWake asks for a completion for each write to the eventfd. Nobody reads it: each write is an
// event.
func (r *Ring) watchWake(c *Counters) {
	request := r.note(c, OpWake, 0)
	request.opcode, request.fd = opcodePollAdd, int32(r.wake)
	request.len, request.opFlags = pollMultishot, unix.POLLIN
}

// Accept notes a request for all connections that come to listener: a completion for each, whose
// result is the descriptor, non-blocking and closed on exec, until one for which More does not
// hold: it has failed, or was cancelled. It fails with EMFILE or ENFILE when no descriptor is left,
// even if no connection waits.
func (r *Ring) Accept(c *Counters, id uint32, listener int) {
	r.AcceptOne(c, id, listener)
	r.requests[(r.tail-1)&r.sqMask].ioprio = acceptMultishot
}

// AcceptOne is Accept for one connection.
func (r *Ring) AcceptOne(c *Counters, id uint32, listener int) {
	request := r.note(c, OpAccept, id)
	request.opcode, request.fd, request.opFlags = opcodeAccept, int32(listener), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC
}

// Receive notes a request for all that arrives at fd: a completion whenever there is something,
// with up to 4 KiB of it in a buffer of the ring ([Completion.Bytes]), until one for which More
// does not hold: the end of input, an error, ENOBUFS when all buffers had something in them,
// ECANCELED; or the kernel had no place for more completions, and there are bytes. As long as it
// lasts the socket stays open in the kernel, whoever closes its descriptor: [Ring.Cancel] it
// before.
func (r *Ring) Receive(c *Counters, id uint32, fd int) {
	request := r.note(c, OpReceive, id)
	request.opcode, request.fd = opcodeRecv, int32(fd)
	request.flags, request.ioprio = sqeBufferSelect, recvMultishot
}

// Send notes a request to send what is left of v: send(2) or sendmsg(2) with MSG_NOSIGNAL. Its
// completion says how many bytes the kernel took, which may be fewer than there are: call
// [Vector.Advance], and Send again. v and its bytes are the kernel's until the completion, and v
// must not be empty. Of one socket only one may be on its way, or the order of bytes is not
// certain.
//
// SendAside is for an answer behind which nothing is to be done: it saves a call where a client
// waits for it. That there was no room for it shows with the next other completion.
func (r *Ring) Send(c *Counters, id uint32, fd int, v *Vector, how Sending) {
	request := r.note(c, OpSend, id)
	request.fd, request.opFlags = int32(fd), unix.MSG_NOSIGNAL
	if how != SendPatiently {
		request.opFlags |= unix.MSG_DONTWAIT
	}
	if how == SendAside {
		r.aside++
	}
	if v.Segments() == 1 {
		first := &v.segments[v.first]
		request.opcode, request.addr, request.len = opcodeSend, uint64(uintptr(unsafe.Pointer(first.Base))), uint32(first.Len)
		return
	}
	v.message.Iov = &v.segments[v.first]
	v.message.SetIovlen(v.Segments())
	request.opcode, request.addr, request.len = opcodeSendmsg, uint64(uintptr(unsafe.Pointer(&v.message))), 1
}

// After notes a request for one completion after that time. Only one may be on its way.
func (r *Ring) After(c *Counters, id uint32, d time.Duration) {
	r.period = unix.NsecToTimespec(int64(max(d, 1)))
	request := r.note(c, OpTimer, id)
	request.opcode, request.addr, request.len = opcodeTimeout, uint64(uintptr(unsafe.Pointer(&r.period))), 1
}

// Cancel notes a request to end another one. What it ends has a completion with ECANCELED, or
// another that came before; the cancelling itself has none.
func (r *Ring) Cancel(c *Counters, operation Operation, id uint32) {
	request := r.note(c, opCancel, id)
	request.opcode, request.fd, request.flags, request.addr = opcodeAsyncCancel, -1, sqeSkipSuccess, userData(operation, id)
}

// Enter is io_uring_enter(2): it submits all that has been noted, and waits until something is
// complete, a SendAside apart. It waits no longer than timeout; 0 only looks, less than 0 waits for
// ever. No error does not mean that [Ring.Next] has something to give: the time may be over.
// Interruptions by signals are waited out, and lengthen the time by as much.
//
// The Go scheduler hears of each call, as it has no other way to get the processor (see Enable).
// [Poller.Wait] saves that where it can; here a call is shared by all requests of a turn.
func (r *Ring) Enter(c *Counters, timeout time.Duration) error {
	r.takeBack()
	atomic.StoreUint32(r.cqHead, r.head)
	atomic.StoreUint32(r.sqTail, r.tail)
	wanted := r.aside + 1
	r.aside = 0
	flags := uintptr(enterGetEvents)
	var argument unsafe.Pointer
	var size uintptr
	if timeout == 0 {
		wanted = 0
	} else if timeout > 0 {
		r.timeout = unix.NsecToTimespec(int64(timeout))
		flags |= enterExtArg
		argument, size = unsafe.Pointer(&r.wait), unsafe.Sizeof(r.wait)
	}
	for {
		c.Enters++
		_, errno, injected := consult(CallIoUringEnter, r.fd)
		if !injected {
			submit := r.tail - atomic.LoadUint32(r.sqHead)
			_, _, errno = unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(submit), uintptr(wanted), flags, uintptr(argument), size)
		}
		switch errno {
		case 0, unix.ETIME, unix.EINTR:
		case unix.EAGAIN, unix.EBUSY: // short of memory for the moment, or of places for completions
		default:
			return errno
		}
		// Without an error it may have been interrupted as well, if it had submitted something
		// before.
		if r.complete() || timeout == 0 || errno == unix.ETIME || errno == 0 && timeout > 0 {
			return nil
		}
	}
}

// submit makes room for more requests, without waiting for any.
func (r *Ring) submit(c *Counters) {
	atomic.StoreUint32(r.sqTail, r.tail)
	c.Enters++
	unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(r.tail-atomic.LoadUint32(r.sqHead)), 0, 0, 0, 0)
}

// complete says whether there is a completion to give.
func (r *Ring) complete() bool { return atomic.LoadUint32(r.cqTail) != r.head }

// A Completion is what a request has come to. It is valid until the next call of Next or Enter.
type Completion struct {
	Operation Operation
	ID        uint32
	result    int32
	flags     uint32
	ring      *Ring
}

// Next gives the next completion, and says whether there is one. c counts the bytes that were
// received and sent.
func (r *Ring) Next(c *Counters, done *Completion) bool {
	for r.complete() {
		r.takeBack()
		raw := &r.results[r.head&r.cqMask]
		*done = Completion{Operation: Operation(raw.userData >> 32), ID: uint32(raw.userData), result: raw.result, flags: raw.flags, ring: r}
		r.head++
		if done.flags&cqeBuffer != 0 {
			r.lent = int(done.flags >> cqeBufferShift)
		}
		switch done.Operation {
		case opCancel:
			continue
		case OpWake:
			if !done.More() {
				r.watchWake(c)
			}
		case OpReceive:
			c.ReadBytes += uint64(max(done.result, 0))
		case OpSend:
			c.WrittenBytes += uint64(max(done.result, 0))
		}
		c.Completions++
		return true
	}
	r.takeBack()
	return false
}

// takeBack gives the kernel the buffer of the last completion again.
func (r *Ring) takeBack() {
	if r.lent >= 0 {
		r.giveBuffer(r.lent)
		r.publishBuffers()
		r.lent = -1
	}
}

// Waits says whether a completion of that request is there, and not given yet, which brings bytes
// or a descriptor.
func (r *Ring) Waits(operation Operation, id uint32) bool {
	for i := r.head; i != atomic.LoadUint32(r.cqTail); i++ {
		if raw := &r.results[i&r.cqMask]; raw.userData == userData(operation, id) && raw.result > 0 {
			return true
		}
	}
	return false
}

// Result is what the call that was asked for would have answered: bytes or a descriptor, or the
// errno; ErrWouldBlock for EAGAIN.
func (d *Completion) Result() (n int, err error) {
	if d.result < 0 {
		return 0, syscall.Errno(-d.result)
	}
	return int(d.result), nil
}

// Bytes is what a Receive has brought: a view of the ring's memory, which is the kernel's again at
// the next call of Next or Enter. The error is io.EOF at the end of input, or the errno.
func (d *Completion) Bytes() ([]byte, error) {
	n, err := d.Result()
	switch {
	case err != nil:
		return nil, err
	case n == 0 || d.flags&cqeBuffer == 0:
		return nil, io.EOF
	}
	return d.ring.buffer(int(d.flags >> cqeBufferShift))[:n:n], nil
}

// More says that the request goes on, and more completions of it will come.
func (d *Completion) More() bool { return d.flags&cqeMore != 0 }

// Wake makes the owner's Enter, the present one or else the next, return with a completion of
// OpWake. Several may come as one. Any thread may call it, with counters of its own, as long as the
// Ring is not closed.
func (r *Ring) Wake(c *Counters) error {
	for {
		c.EventfdWrites++
		if errno := writeOne(r.wake); errno != unix.EINTR {
			return failure(errno)
		}
	}
}

// Close gives all back that the ring holds, and answers the first error. What has been asked for
// and is not complete is given up. A nil Ring, of a NewRing that failed, has nothing to give back.
func (r *Ring) Close(c *Counters) error {
	if r == nil {
		return nil
	}
	err := Close(c, r.fd)
	if r.wake >= 0 {
		if wakeErr := Close(c, r.wake); err == nil {
			err = wakeErr
		}
	}
	for _, memory := range [][]byte{r.rings, r.requestMemory, r.bufferMemory} {
		if memory != nil {
			unix.Munmap(memory)
		}
	}
	r.rings, r.requestMemory, r.bufferMemory = nil, nil, nil
	return err
}
