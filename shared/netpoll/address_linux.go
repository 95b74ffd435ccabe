package netpoll

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// family is the address family of socket(2).
func (a Address) family() int {
	if a.ip.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// encode writes a as the kernel reads it, see ip(7) and ipv6(7), into s, which has room for either family, and answers the
// length.
func (a Address) encode(s *unix.RawSockaddrInet6) uintptr {
	if a.ip.Is4() {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(s))
		v4.Family = unix.AF_INET
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&v4.Port))[:], a.port)
		v4.Addr = a.ip.As4()
		return unix.SizeofSockaddrInet4
	}
	s.Family = unix.AF_INET6
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&s.Port))[:], a.port)
	s.Addr = a.ip.As16()
	s.Scope_id = a.scope
	return unix.SizeofSockaddrInet6
}

// bind is bind(2).
func bind(fd int, a Address) syscall.Errno {
	if _, errno, injected := consult(CallBind, fd); injected {
		return errno
	}
	var s unix.RawSockaddrInet6
	length := a.encode(&s)
	_, _, errno := unix.RawSyscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&s)), length)
	return errno
}

// boundPort asks getsockname(2) which port fd is bound to.
func boundPort(fd int) (uint16, syscall.Errno) {
	if n, errno, injected := consult(CallGetsockname, fd); injected {
		return uint16(n), errno
	}
	var s unix.RawSockaddrInet6
	length := uint32(unsafe.Sizeof(s))
	_, _, errno := unix.RawSyscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&s)), uintptr(unsafe.Pointer(&length)))
	// The port stands at the same place in both families.
	return binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&s.Port))[:]), errno
}
