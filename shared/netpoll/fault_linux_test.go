package netpoll

import (
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestEveryCallFailsAsItsManualPageLists injects each errno of a call's manual page: the wrapper passes it on unchanged, makes
// no second attempt and counts one call. EINTR it retries instead.
func TestEveryCallFailsAsItsManualPageLists(t *testing.T) {
	var c Counters
	a, b := pair(t)
	p := poller(t, &c)
	require.NoError(t, p.Add(&c, a, 1, Readable))
	clock := timer(t, &c)
	l, _ := listener(t, "127.0.0.1:0", ListenOptions{})
	vector := NewVector(1)
	vector.Append([]byte("x"))

	for _, w := range []struct {
		call   Call
		made   *uint64 // nil: not counted
		errnos []syscall.Errno
		run    func() error
	}{
		{CallRecvfrom, &c.Reads, []syscall.Errno{unix.EBADF, unix.ECONNREFUSED, unix.ECONNRESET, unix.EFAULT, unix.EINVAL, unix.ENOMEM,
			unix.ENOTCONN, unix.ENOTSOCK, unix.ETIMEDOUT, unix.EHOSTUNREACH}, func() error {
			_, err := Receive(&c, a, make([]byte, 1))
			return err
		}},
		{CallSendto, &c.Writes, []syscall.Errno{unix.EBADF, unix.ECONNRESET, unix.EFAULT, unix.EINVAL, unix.EMSGSIZE, unix.ENOBUFS,
			unix.ENOMEM, unix.ENOTCONN, unix.ENOTSOCK, unix.EOPNOTSUPP, unix.EPIPE, unix.EACCES}, func() error {
			_, err := Send(&c, a, []byte("x"))
			return err
		}},
		{CallSendmsg, &c.VectoredWrites, []syscall.Errno{unix.EBADF, unix.ECONNRESET, unix.EMSGSIZE, unix.ENOBUFS, unix.ENOMEM, unix.EPIPE}, func() error {
			_, err := vector.Send(&c, a)
			return err
		}},
		{CallAccept4, &c.Accepts, []syscall.Errno{unix.EBADF, unix.EFAULT, unix.EINVAL, unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM,
			unix.ENOTSOCK, unix.EPERM}, func() error {
			_, err := Accept(&c, l)
			return err
		}},
		{CallShutdown, &c.Shutdowns, []syscall.Errno{unix.EBADF, unix.EINVAL, unix.ENOTCONN, unix.ENOTSOCK}, func() error { return ShutdownWrite(&c, b) }},
		{CallEpollCtl, &c.EpollCtls, []syscall.Errno{unix.EBADF, unix.EEXIST, unix.EINVAL, unix.ENOENT, unix.ENOMEM, unix.ENOSPC, unix.EPERM}, func() error {
			return p.Modify(&c, a, 1, Readable)
		}},
		{CallWrite, &c.EventfdWrites, []syscall.Errno{unix.EAGAIN, unix.EBADF, unix.EINVAL}, func() error { return p.Wake(&c) }},
		{CallTimerfdCreate, &c.TimerfdCreates, []syscall.Errno{unix.EINVAL, unix.EMFILE, unix.ENFILE, unix.ENODEV, unix.ENOMEM}, func() error {
			fd, err := NewTimer(&c)
			if err != nil && fd >= 0 {
				t.Error("a failed NewTimer must not give a descriptor")
			}
			return err
		}},
		{CallTimerfdSettime, &c.TimerfdSettimes, []syscall.Errno{unix.EBADF, unix.EINVAL, unix.EFAULT}, func() error { return SetTimer(&c, clock, time.Hour) }},
		{CallConnect, nil, []syscall.Errno{unix.EACCES, unix.EADDRINUSE, unix.EADDRNOTAVAIL, unix.EAGAIN, unix.ECONNREFUSED, unix.ENETUNREACH,
			unix.ETIMEDOUT}, func() error {
			_, err := Connect(&c, Address{}, address(t, "127.0.0.1:1"))
			return err
		}},
		{CallSocket, nil, []syscall.Errno{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM}, func() error {
			_, err := Connect(&c, Address{}, address(t, "127.0.0.1:1"))
			return err
		}},
		{CallSetsockopt, nil, []syscall.Errno{unix.EBADF, unix.ENOPROTOOPT}, func() error { return SetLinger0(a) }},
		{CallGetsockopt, nil, []syscall.Errno{unix.EBADF, unix.ENOTSOCK}, func() error { return ConnectError(&c, a) }},
		{CallIoctl, &c.Ioctls, []syscall.Errno{unix.EBADF, unix.ENOTTY}, func() error { _, err := Unacknowledged(&c, a); return err }},
	} {
		t.Run(w.call.String(), func(t *testing.T) {
			for _, errno := range w.errnos {
				t.Run(errno.Error(), func(t *testing.T) {
					open := openDescriptors(t)
					injectFaults(t, w.call, fail(errno)...)
					var before uint64
					if w.made != nil {
						before = *w.made
					}
					require.Equal(t, errno, w.run())
					if w.made != nil {
						require.EqualValues(t, 1, *w.made-before)
					}
					require.Equal(t, open, openDescriptors(t))
				})
			}
		})
	}
}

func TestInterruptedCallsAreRetried(t *testing.T) {
	twice := fail(unix.EINTR, unix.EINTR)
	var c Counters
	a, b := pair(t)
	p := poller(t, &c)
	require.NoError(t, p.Add(&c, a, 1, Readable))
	clock := timer(t, &c)
	vector := NewVector(1)
	vector.Append([]byte("y"))
	c = Counters{}

	injectFaults(t, CallSendto, twice...)
	n, err := Send(&c, a, []byte("x"))
	require.NoError(t, err)
	require.Equal(t, 1, n)

	injectFaults(t, CallSendmsg, twice...)
	n, err = vector.Send(&c, a)
	require.NoError(t, err)
	require.Equal(t, 1, n)

	injectFaults(t, CallRecvfrom, twice...)
	n, err = Receive(&c, b, make([]byte, 8))
	require.NoError(t, err)
	require.Equal(t, 2, n)

	injectFaults(t, CallEpollCtl, twice...)
	require.NoError(t, p.Modify(&c, a, 1, Readable))
	injectFaults(t, CallWrite, twice...)
	require.NoError(t, p.Wake(&c))
	injectFaults(t, CallTimerfdSettime, twice...)
	require.NoError(t, SetTimer(&c, clock, time.Hour))
	injectFaults(t, CallShutdown, twice...)
	require.NoError(t, ShutdownWrite(&c, a))

	require.Equal(t, Counters{Reads: 3, ReadBytes: 2, Writes: 6, VectoredWrites: 3, WrittenBytes: 2,
		EpollCtls: 3, EventfdWrites: 3, TimerfdSettimes: 3, Shutdowns: 3}, c)
}

func TestInterruptedConnectGoesOn(t *testing.T) {
	injectFaults(t, CallConnect, fail(unix.EINTR)...)
	fd, err := Connect(new(Counters), Address{}, address(t, "127.0.0.1:1"))
	require.NoError(t, err)
	require.NoError(t, Close(new(Counters), fd))
}

func TestInjectedEAGAIN(t *testing.T) {
	var c Counters
	a, _ := pair(t)
	l, _ := listener(t, "127.0.0.1:0", ListenOptions{})
	vector := NewVector(1)
	vector.Append([]byte("x"))
	injectFaults(t, CallRecvfrom, fail(unix.EAGAIN)...)
	_, err := Receive(&c, a, make([]byte, 1))
	require.Equal(t, ErrWouldBlock, err)
	injectFaults(t, CallSendto, fail(unix.EAGAIN)...)
	_, err = Send(&c, a, []byte("x"))
	require.Equal(t, ErrWouldBlock, err)
	injectFaults(t, CallSendmsg, fail(unix.EAGAIN)...)
	_, err = vector.Send(&c, a)
	require.Equal(t, ErrWouldBlock, err)
	injectFaults(t, CallAccept4, fail(unix.EAGAIN)...)
	_, err = Accept(&c, l)
	require.Equal(t, ErrWouldBlock, err)
	require.Equal(t, Counters{Reads: 1, ReadAgains: 1, Writes: 2, VectoredWrites: 1, WriteAgains: 2, Accepts: 1, AcceptAgains: 1}, c)
}

func TestInjectedShortTransfersAreReal(t *testing.T) {
	var c Counters
	a, b := pair(t)
	buffer := make([]byte, 64)
	receive := func() string {
		n, err := Receive(&c, b, buffer)
		require.NoError(t, err)
		return string(buffer[:n])
	}

	injectFaults(t, CallSendto, answer{n: 3}, answer{n: 0}, answer{n: 99})
	n, err := Send(&c, a, []byte("hello"))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	n, err = Send(&c, a, []byte("lo"))
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = Send(&c, a, []byte("lo"))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, "hello", receive())

	v := NewVector(3)
	v.Append([]byte("one "))
	v.Append([]byte("two "))
	v.Append([]byte("three"))
	injectFaults(t, CallSendmsg, answer{n: 6}, answer{n: 0}, answer{n: 99})
	n, err = v.Send(&c, a)
	require.NoError(t, err)
	require.Equal(t, 6, n)
	v.Advance(n)
	n, err = v.Send(&c, a)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = v.Send(&c, a)
	require.NoError(t, err)
	require.Equal(t, 7, n)
	require.Equal(t, "one two three", receive())

	_, err = Send(&c, a, []byte("hello"))
	require.NoError(t, err)
	injectFaults(t, CallRecvfrom, answer{n: 2}, answer{n: 99})
	require.Equal(t, "he", receive())
	require.Equal(t, "llo", receive())
	injectFaults(t, CallRecvfrom, answer{n: 0})
	_, err = Receive(&c, b, buffer)
	require.Equal(t, io.EOF, err)
}

func TestFaultSeesCallAndDescriptor(t *testing.T) {
	a, b := pair(t)
	type asked struct {
		call Call
		fd   int
	}
	var log []asked
	Fault = func(call Call, fd int) (int, error, bool) {
		log = append(log, asked{call, fd})
		return 0, nil, false
	}
	t.Cleanup(func() { Fault = nil })
	c := new(Counters)
	p, err := NewPoller(c)
	require.NoError(t, err)
	require.NoError(t, p.Add(c, b, 1, Readable))
	Send(c, a, []byte("x"))
	p.Wait(c, 0)
	Receive(c, b, make([]byte, 1))
	require.NoError(t, p.Wake(c))
	require.NoError(t, p.Close(c))
	require.Equal(t, []asked{
		{CallEpollCreate1, -1}, {CallEventfd2, -1}, {CallEpollCtl, p.wake}, {CallEpollCtl, b}, {CallSendto, a},
		{CallEpollPwait, p.epoll}, {CallRecvfrom, b}, {CallWrite, p.wake}, {CallClose, p.epoll}, {CallClose, p.wake},
	}, log)
}

func TestFaultMustBeAnErrno(t *testing.T) {
	a, _ := pair(t)
	injectFaults(t, CallSendto, answer{err: io.ErrUnexpectedEOF})
	require.Panics(t, func() { Send(new(Counters), a, []byte("x")) })
}
