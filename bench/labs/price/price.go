//go:build linux

// Package price asks what each system call costs that the ladder takes away, alone.
package price

import (
	"fmt"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is how a system call is made: raw, or through Go's scheduler.
type call func(number, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, errno unix.Errno)

// raw goes straight into the kernel, as the event loops of the stages do.
func raw(number, a1, a2, a3, a4, a5, a6 uintptr) (uintptr, uintptr, unix.Errno) {
	return unix.RawSyscall6(number, a1, a2, a3, a4, a5, a6)
}

// scheduled tells Go's scheduler first, and again behind it, as package net does.
func scheduled(number, a1, a2, a3, a4, a5, a6 uintptr) (uintptr, uintptr, unix.Errno) {
	return unix.Syscall6(number, a1, a2, a3, a4, a5, a6)
}

// kernel is what the calls are about: an epoll with one connection in it, a timer, an eventfd.
type kernel struct {
	call
	epoll, timer, event int
	near, far           net.Conn // both ends of a connection over loopback
	nearFD, farFD       int

	change  unix.EpollEvent
	events  [16]unix.EpollEvent
	in      [4096]byte
	setting unix.ItimerSpec
	one     [8]byte
	sent    int // answers that wait at the far end
}

// answer is as long as the stages' one on hello.
var answer [135]byte

func newKernel(c call) (k *kernel, err error) {
	k = &kernel{call: c, setting: unix.ItimerSpec{Value: unix.Timespec{Sec: 60}}, one: [8]byte{1}}
	if k.epoll, err = unix.EpollCreate1(0); err != nil {
		return nil, err
	}
	if k.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK); err != nil {
		return nil, err
	}
	if k.event, err = unix.Eventfd(0, unix.EFD_NONBLOCK); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	if k.near, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		return nil, err
	}
	if k.far, err = listener.Accept(); err != nil {
		return nil, err
	}
	k.nearFD, k.farFD = descriptor(k.near), descriptor(k.far)
	k.change = unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(k.nearFD)}
	return k, unix.EpollCtl(k.epoll, unix.EPOLL_CTL_ADD, k.nearFD, &k.change)
}

func (k *kernel) close() {
	k.near.Close()
	k.far.Close()
	for _, fd := range []int{k.epoll, k.timer, k.event} {
		unix.Close(fd)
	}
}

// descriptor is a connection's, which stays its own.
func descriptor(c net.Conn) (fd int) {
	if r, err := c.(*net.TCPConn).SyscallConn(); err == nil {
		r.Control(func(n uintptr) { fd = int(n) })
	}
	return fd
}

// getpid does nothing in the kernel: it is the price of the way there and back.
func (k *kernel) getpid() error {
	_, _, errno := k.call(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	return failed(errno)
}

// clockVDSO reads the clock without the kernel, see vdso(7).
func (k *kernel) clockVDSO() error {
	if time.Now().IsZero() {
		return fmt.Errorf("there is no time")
	}
	return nil
}

// clockCall asks the kernel for the same.
func (k *kernel) clockCall() error {
	var now unix.Timespec
	_, _, errno := k.call(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&now)), 0, 0, 0, 0)
	return failed(errno)
}

// recvNothing is the read that finds out that there is no more.
func (k *kernel) recvNothing() error {
	_, _, errno := k.call(unix.SYS_RECVFROM, uintptr(k.nearFD), uintptr(unsafe.Pointer(&k.in)), uintptr(len(k.in)), unix.MSG_DONTWAIT, 0, 0)
	if errno == unix.EAGAIN {
		return nil
	}
	return fmt.Errorf("something was received: %w", errno)
}

// send sends an answer. Over loopback the receiving side of TCP runs within it. See drain.
func (k *kernel) send() error {
	_, _, errno := k.call(unix.SYS_SENDTO, uintptr(k.nearFD), uintptr(unsafe.Pointer(&answer)), uintptr(len(answer)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	k.sent++
	return failed(errno)
}

// enough answers fit the far end's buffer with room to spare.
const enough = 64

// drain takes what was sent off the far end, outside of what is measured.
func (k *kernel) drain() error {
	for left := k.sent * len(answer); left > 0; {
		n, err := k.far.Read(k.in[:])
		if err != nil {
			return err
		}
		left -= n
	}
	k.sent = 0
	return nil
}

// epollWait looks for events when there is none, and does not wait.
func (k *kernel) epollWait() error {
	n, _, errno := k.call(unix.SYS_EPOLL_PWAIT, uintptr(k.epoll), uintptr(unsafe.Pointer(&k.events)), uintptr(len(k.events)), 0, 0, 0)
	if n != 0 && errno == 0 {
		return fmt.Errorf("%d events", n)
	}
	return failed(errno)
}

// epollCtl arms a connection once more, as one-shot readiness asks for after every request.
func (k *kernel) epollCtl() error {
	_, _, errno := k.call(unix.SYS_EPOLL_CTL, uintptr(k.epoll), unix.EPOLL_CTL_MOD, uintptr(k.nearFD), uintptr(unsafe.Pointer(&k.change)), 0, 0)
	return failed(errno)
}

// setTimer sets a connection's deadline.
func (k *kernel) setTimer() error {
	_, _, errno := k.call(unix.SYS_TIMERFD_SETTIME, uintptr(k.timer), 0, uintptr(unsafe.Pointer(&k.setting)), 0, 0, 0)
	return failed(errno)
}

// eventfd rings a bell that nobody is waiting for. What waking somebody costs is lab hops.
func (k *kernel) eventfd() error {
	_, _, errno := k.call(unix.SYS_WRITE, uintptr(k.event), uintptr(unsafe.Pointer(&k.one)), 8, 0, 0, 0)
	return failed(errno)
}

// failed keeps the comparison with nil of an error right: errno 0 is none.
func failed(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
