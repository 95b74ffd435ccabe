package netpoll

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
