package netpoll

import (
	"io"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Receive is recvfrom(2): it takes up to len(p) bytes that have arrived at the socket fd. It answers n > 0 with a nil error,
// io.EOF at the end of input, ErrWouldBlock when nothing is there, or the errno. An empty p makes no call. It keeps
// nothing of p. Two threads may not receive from one socket if the order of bytes matters.
func Receive(c *Counters, fd int, p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		c.Reads++
		n, errno := recvfrom(fd, p)
		switch errno {
		case 0:
			if n == 0 {
				return 0, io.EOF
			}
			c.ReadBytes += uint64(n)
			return n, nil
		case unix.EINTR:
		case unix.EAGAIN:
			c.ReadAgains++
			return 0, ErrWouldBlock
		default:
			return 0, errno
		}
	}
}

func recvfrom(fd int, p []byte) (int, syscall.Errno) {
	if n, errno, injected := consult(CallRecvfrom, fd); injected {
		if errno != 0 || n <= 0 {
			return 0, errno
		}
		p = p[:min(n, len(p))]
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	return int(n), errno
}

// Send is sendto(2) with MSG_NOSIGNAL: it gives the kernel as many of p's bytes as the socket has room for. It answers
// how many, which may be fewer than len(p) with a nil error; ErrWouldBlock when there was no room; or the errno, EPIPE and
// ECONNRESET when the connection is gone. An empty p makes no call. It keeps nothing of p.
func Send(c *Counters, fd int, p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		c.Writes++
		n, errno := sendto(fd, p)
		if errno != unix.EINTR {
			return sent(c, n, errno)
		}
	}
}

func sendto(fd int, p []byte) (int, syscall.Errno) {
	if n, errno, injected := consult(CallSendto, fd); injected {
		if errno != 0 || n <= 0 {
			return 0, errno
		}
		p = p[:min(n, len(p))]
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

// sent counts what sendto or sendmsg answered.
func sent(c *Counters, n int, errno syscall.Errno) (int, error) {
	switch errno {
	case 0:
		c.WrittenBytes += uint64(n)
		return n, nil
	case unix.EAGAIN:
		c.WriteAgains++
		return 0, ErrWouldBlock
	}
	return 0, errno
}

// Accept is accept4(2): it takes the next connection off the queue of listener, a socket of [Listen], non-blocking and
// closed on exec. It answers ErrWouldBlock when the queue is empty, an error for which [IsExhausted] holds when there is
// no descriptor for it (it stays queued), or another errno. A connection that failed while it was queued is passed over, as
// the manual page advises, and the next one taken. Safe from any thread.
func Accept(c *Counters, listener int) (fd int, err error) {
	for {
		c.Accepts++
		fd, errno := accept4(listener)
		switch errno {
		case 0:
			return fd, nil
		case unix.EINTR:
		case unix.ECONNABORTED, unix.EPROTO, unix.ENETDOWN, unix.ENOPROTOOPT, unix.EHOSTDOWN, unix.ENONET,
			unix.EHOSTUNREACH, unix.EOPNOTSUPP, unix.ENETUNREACH, unix.ETIMEDOUT:
			// Each of these has taken one connection off the queue, so that this ends.
		case unix.EAGAIN:
			c.AcceptAgains++
			return -1, ErrWouldBlock
		default:
			return -1, errno
		}
	}
}

func accept4(listener int) (int, syscall.Errno) {
	if n, errno, injected := consult(CallAccept4, listener); injected {
		return n, errno
	}
	fd, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(listener), 0, 0, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	return int(fd), errno
}

// ShutdownWrite is shutdown(2) with SHUT_WR: the peer sees the end of input after the bytes sent so far, and can still
// send. ENOTCONN means that it is gone already.
func ShutdownWrite(c *Counters, fd int) error {
	for {
		c.Shutdowns++
		if errno := shutdown(fd); errno != unix.EINTR {
			return failure(errno)
		}
	}
}

func shutdown(fd int) syscall.Errno {
	if _, errno, injected := consult(CallShutdown, fd); injected {
		return errno
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_WR, 0)
	return errno
}

// Unacknowledged is how many bytes of those that were sent the peer's kernel has not confirmed yet (SIOCOUTQ, tcp(7)): it
// changes as long as the peer takes bytes. EPOLLOUT tells less: it comes only when a third of the send buffer is free again.
func Unacknowledged(c *Counters, fd int) (bytes int, err error) { return queued(c, fd, unix.TIOCOUTQ) }

// Unread is how many bytes have arrived and are not read (SIOCINQ, tcp(7)), those behind an urgent byte among them. It is 0 if
// the kernel does not tell.
func Unread(c *Counters, fd int) (bytes int) {
	bytes, _ = queued(c, fd, unix.TIOCINQ)
	return bytes
}

// queued asks how much is in one of a socket's queues, with ioctl(2).
func queued(c *Counters, fd int, request uintptr) (int, error) {
	c.Ioctls++
	if n, errno, injected := consult(CallIoctl, fd); injected {
		return n, failure(errno)
	}
	var value int32
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&value)))
	return int(value), failure(errno)
}

// Close is close(2) of any descriptor. Whatever it answers, the descriptor is free afterwards and its number may already be
// another's: it must never be tried again. EINTR counts as success. An epoll forgets a closed descriptor by itself.
func Close(c *Counters, fd int) error {
	c.Closes++
	_, fault, injected := consult(CallClose, fd)
	_, _, errno := unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	if injected {
		errno = fault
	}
	if errno == unix.EINTR {
		return nil
	}
	return failure(errno)
}

// SetLinger0 sets SO_LINGER to zero seconds, see socket(7): Close then throws away what is unsent and resets the connection
// instead of ending it. It is for tests and load generators.
func SetLinger0(fd int) error {
	if _, errno, injected := consult(CallSetsockopt, fd); injected {
		return failure(errno)
	}
	linger := unix.Linger{Onoff: 1}
	_, _, errno := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_LINGER,
		uintptr(unsafe.Pointer(&linger)), unix.SizeofLinger, 0)
	return failure(errno)
}

// openSocket is socket(2): a TCP socket, non-blocking and closed on exec.
func openSocket(family int) (int, syscall.Errno) {
	if n, errno, injected := consult(CallSocket, -1); injected {
		return n, errno
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(family), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	return int(fd), errno
}

// setOption is setsockopt(2) with an int.
func setOption(fd, level, option int, value int32) syscall.Errno {
	if _, errno, injected := consult(CallSetsockopt, fd); injected {
		return errno
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option),
		uintptr(unsafe.Pointer(&value)), unsafe.Sizeof(value), 0)
	return errno
}

// Connect opens a non-blocking TCP socket with TCP_NODELAY and begins to connect it to target, see connect(2). If source is
// valid, the connection leaves from that address; with port 0 the kernel picks the port only when it knows the target
// (IP_BIND_ADDRESS_NO_PORT, ip(7)), so that each source address has all its ports for each target. The connection is usually not
// made yet when Connect returns: add fd to a [Poller] as Writable, and ask [ConnectError] when the event comes. On an
// error fd is -1 and nothing stays open. target must be valid. Safe from any thread; it does not allocate.
func Connect(c *Counters, source, target Address) (fd int, err error) {
	fd, errno := openSocket(target.family())
	if errno != 0 {
		return -1, errno
	}
	if errno = connectFrom(fd, source, target); errno != 0 {
		Close(c, fd)
		return -1, errno
	}
	return fd, nil
}

func connectFrom(fd int, source, target Address) syscall.Errno {
	if errno := setOption(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); errno != 0 {
		return errno
	}
	if source.Valid() {
		if errno := setOption(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1); errno != 0 {
			return errno
		}
		if errno := bind(fd, source); errno != 0 {
			return errno
		}
	}
	switch errno := connect(fd, target); errno {
	case unix.EINPROGRESS, unix.EINTR:
		// After EINTR the attempt goes on as well; a second connect would only answer EALREADY.
		return 0
	default:
		return errno
	}
}

func connect(fd int, target Address) syscall.Errno {
	if _, errno, injected := consult(CallConnect, fd); injected {
		return errno
	}
	var s unix.RawSockaddrInet6
	length := target.encode(&s)
	_, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&s)), length)
	return errno
}

// ConnectError tells how an attempt of [Connect] ended, once its socket is reported writable or closed: nil if it is
// connected, else the errno, such as ECONNREFUSED. It reads and clears SO_ERROR (socket(7)), so that later it
// is the error that the connection has met since.
func ConnectError(_ *Counters, fd int) error {
	if n, errno, injected := consult(CallGetsockopt, fd); injected {
		if errno == 0 {
			errno = syscall.Errno(n)
		}
		return failure(errno)
	}
	var value int32
	length := uint32(unsafe.Sizeof(value))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_ERROR,
		uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&length)), 0)
	if errno == 0 {
		errno = syscall.Errno(value)
	}
	return failure(errno)
}
