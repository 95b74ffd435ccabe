package netpoll

import (
	"bytes"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestSendAndReceive(t *testing.T) {
	a, b := pair(t)
	var c Counters
	buffer := make([]byte, 16)

	n, err := Receive(&c, b, buffer)
	require.Equal(t, ErrWouldBlock, err)
	require.Zero(t, n)
	require.Equal(t, Counters{Reads: 1, ReadAgains: 1}, c)

	n, err = Send(&c, a, []byte("hello"))
	require.NoError(t, err)
	require.Equal(t, 5, n)
	require.Equal(t, Counters{Reads: 1, ReadAgains: 1, Writes: 1, WrittenBytes: 5}, c)

	n, err = Receive(&c, b, buffer)
	require.NoError(t, err)
	require.Equal(t, "hello", string(buffer[:n]))
	require.Equal(t, Counters{Reads: 2, ReadAgains: 1, ReadBytes: 5, Writes: 1, WrittenBytes: 5}, c)

	require.NoError(t, ShutdownWrite(&c, a))
	n, err = Receive(&c, b, buffer)
	require.Equal(t, io.EOF, err)
	require.Zero(t, n)
	require.Equal(t, Counters{Reads: 3, ReadAgains: 1, ReadBytes: 5, Writes: 1, WrittenBytes: 5, Shutdowns: 1}, c)
}

func TestEmptySlicesMakeNoCall(t *testing.T) {
	a, _ := pair(t)
	var c Counters
	n, err := Receive(&c, a, nil)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = Send(&c, a, []byte{})
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, Counters{}, c)
}

func TestSendUntilFull(t *testing.T) {
	server, client := connection(t)
	var c Counters
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	total := 0
	for {
		n, err := Send(&c, server, data)
		if err != nil {
			require.Equal(t, ErrWouldBlock, err)
			break
		}
		require.Positive(t, n)
		total += n
	}
	require.EqualValues(t, 1, c.WriteAgains)
	require.EqualValues(t, total, c.WrittenBytes)

	require.NoError(t, Close(&c, server))
	received := 0
	buffer := make([]byte, 1<<16)
	for {
		n, err := Receive(&c, client, buffer)
		if err == io.EOF {
			break
		}
		if err == ErrWouldBlock {
			await(t, client, unix.POLLIN)
			continue
		}
		require.NoError(t, err)
		received += n
	}
	require.Equal(t, total, received)
	require.EqualValues(t, received, c.ReadBytes)
}

func TestSendToClosedPeerIsEPIPEWithoutSignal(t *testing.T) {
	a, b := pair(t)
	require.NoError(t, unix.Shutdown(b, unix.SHUT_RD))
	_, err := Send(new(Counters), a, []byte("x"))
	require.Equal(t, syscall.EPIPE, err)
}

func TestLinger0Resets(t *testing.T) {
	server, client := connection(t)
	require.NoError(t, SetLinger0(client))
	require.NoError(t, Close(new(Counters), client))
	await(t, server, unix.POLLIN)
	_, err := Receive(new(Counters), server, make([]byte, 1))
	require.Equal(t, syscall.ECONNRESET, err)
}

func TestCloseReportsAndCounts(t *testing.T) {
	var c Counters
	fd, err := openEventfd()
	require.NoError(t, err)
	require.NoError(t, Close(&c, fd))
	require.Equal(t, syscall.EBADF, Close(&c, fd))
	require.Equal(t, Counters{Closes: 2}, c)
}

func TestCloseIsNeverRetriedAndAlwaysMade(t *testing.T) {
	for _, fault := range []struct {
		errno syscall.Errno
		want  error
	}{{unix.EINTR, nil}, {unix.EIO, syscall.EIO}, {unix.ENOSPC, syscall.ENOSPC}} {
		t.Run(fault.errno.Error(), func(t *testing.T) {
			before := openDescriptors(t)
			fd, err := openEventfd()
			require.NoError(t, err)
			injectFaults(t, CallClose, fail(fault.errno)...)
			var c Counters
			require.Equal(t, fault.want, Close(&c, fd))
			require.EqualValues(t, 1, c.Closes)
			require.Equal(t, before, openDescriptors(t))
		})
	}
}

func TestAccept(t *testing.T) {
	l, bound := listener(t, "127.0.0.1:0", ListenOptions{})
	var c Counters
	fd, err := Accept(&c, l)
	require.Equal(t, ErrWouldBlock, err)
	require.Equal(t, -1, fd)
	require.Equal(t, Counters{Accepts: 1, AcceptAgains: 1}, c)

	dial(t, Address{}, bound)
	await(t, l, unix.POLLIN)
	fd, err = Accept(&c, l)
	require.NoError(t, err)
	require.Equal(t, Counters{Accepts: 2, AcceptAgains: 1}, c)

	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	require.NoError(t, err)
	require.NotZero(t, flags&unix.O_NONBLOCK)
	flags, err = unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	require.NoError(t, err)
	require.NotZero(t, flags&unix.FD_CLOEXEC)
	noDelay, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
	require.NoError(t, err)
	require.NotZero(t, noDelay, "inherited from the listener")
	require.NoError(t, Close(&c, fd))
}

func TestAcceptPassesOverDeadConnections(t *testing.T) {
	l, bound := listener(t, "127.0.0.1:0", ListenOptions{})
	dial(t, Address{}, bound)
	await(t, l, unix.POLLIN)
	dead := fail(unix.EINTR, unix.ECONNABORTED, unix.EPROTO, unix.ENETDOWN, unix.ENOPROTOOPT, unix.EHOSTDOWN, unix.ENONET,
		unix.EHOSTUNREACH, unix.EOPNOTSUPP, unix.ENETUNREACH, unix.ETIMEDOUT)
	injectFaults(t, CallAccept4, dead...)
	var c Counters
	fd, err := Accept(&c, l)
	require.NoError(t, err)
	require.Equal(t, Counters{Accepts: uint64(len(dead)) + 1}, c)
	require.NoError(t, Close(&c, fd))
}

func TestAcceptWithoutDescriptors(t *testing.T) {
	l, bound := listener(t, "127.0.0.1:0", ListenOptions{})
	var c Counters
	reserve, err := newReserve(&c, 2)
	require.NoError(t, err)
	require.True(t, reserve.full())
	dial(t, Address{}, bound)
	await(t, l, unix.POLLIN)
	limitDescriptors(t, 0)

	_, err = Accept(&c, l)
	require.Equal(t, syscall.EMFILE, err)
	require.True(t, IsExhausted(err))

	reserve.release(&c)
	require.False(t, reserve.full())
	fd, err := Accept(&c, l)
	require.NoError(t, err, "the connection was still queued")
	timer, err := NewTimer(&c)
	require.NoError(t, err)

	require.Equal(t, syscall.EMFILE, reserve.refill(&c))
	require.NoError(t, Close(&c, fd))
	require.Equal(t, syscall.EMFILE, reserve.refill(&c), "one of two")
	require.False(t, reserve.full())
	require.NoError(t, Close(&c, timer))
	require.NoError(t, reserve.refill(&c))
	require.True(t, reserve.full())
	reserve.close(&c)
	require.NoError(t, reserve.refill(&c))
	require.Equal(t, Counters{Accepts: 2, Closes: 6, TimerfdCreates: 1}, c)
}

func TestNewReserveThatFailsHoldsNothing(t *testing.T) {
	before := openDescriptors(t)
	var made int
	Fault = func(call Call, _ int) (int, error, bool) {
		if call == CallEventfd2 {
			made++
		}
		return 0, syscall.ENFILE, call == CallEventfd2 && made == 3
	}
	t.Cleanup(func() { Fault = nil })
	r, err := newReserve(new(Counters), 4)
	require.Equal(t, syscall.ENFILE, err)
	require.Nil(t, r)
	require.Equal(t, before, openDescriptors(t))
}

func TestConnect(t *testing.T) {
	l, bound := listener(t, "127.0.0.1:0", ListenOptions{})
	source := address(t, "127.0.0.9:0")
	fd := dial(t, source, bound)
	noDelay, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
	require.NoError(t, err)
	require.NotZero(t, noDelay)
	late, err := unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT)
	require.NoError(t, err)
	require.NotZero(t, late)

	await(t, l, unix.POLLIN)
	server, err := Accept(new(Counters), l)
	require.NoError(t, err)
	defer unix.Close(server)
	peer, err := unix.Getpeername(server)
	require.NoError(t, err)
	require.Equal(t, [4]byte{127, 0, 0, 9}, peer.(*unix.SockaddrInet4).Addr)
}

func TestConnectOverIPv6(t *testing.T) {
	needIPv6(t)
	l, bound := listener(t, "[::1]:0", ListenOptions{})
	dial(t, address(t, "[::1]:0"), bound)
	await(t, l, unix.POLLIN)
	server, err := Accept(new(Counters), l)
	require.NoError(t, err)
	require.NoError(t, unix.Close(server))
}

func TestConnectRefused(t *testing.T) {
	l, bound := listener(t, "127.0.0.1:0", ListenOptions{})
	require.NoError(t, unix.Close(l))
	fd, err := Connect(new(Counters), Address{}, address(t, bound))
	if err == nil {
		await(t, fd, unix.POLLOUT)
		err = ConnectError(new(Counters), fd)
		require.NoError(t, Close(new(Counters), fd))
	}
	require.Equal(t, syscall.ECONNREFUSED, err)
}

func TestConnectFromForeignAddress(t *testing.T) {
	before := openDescriptors(t)
	var c Counters
	// TEST-NET-1, RFC 5737: nobody's.
	fd, err := Connect(&c, address(t, "192.0.2.1:0"), address(t, "127.0.0.1:1"))
	require.Equal(t, syscall.EADDRNOTAVAIL, err)
	require.Equal(t, -1, fd)
	require.Equal(t, Counters{Closes: 1}, c)
	require.Equal(t, before, openDescriptors(t))
}

// What the peer's kernel has confirmed is not held any more; what it has no room for is.
func TestUnacknowledged(t *testing.T) {
	server, client := connection(t)
	var c Counters
	full := 0
	for err := error(nil); err == nil; {
		var n int
		n, err = Send(&c, server, make([]byte, 1<<20))
		full += n
	}
	held := 0
	for end := time.Now().Add(patience); ; {
		before := held
		var err error
		held, err = Unacknowledged(&c, server)
		require.NoError(t, err)
		if held > 0 && held == before {
			break
		}
		require.True(t, time.Now().Before(end), "%d and %d bytes of %d", before, held, full)
	}

	buffer := make([]byte, 1<<20)
	for taken := 0; taken < full; {
		await(t, client, unix.POLLIN)
		n, err := Receive(&c, client, buffer)
		require.NoError(t, err)
		taken += n
	}
	for end := time.Now().Add(patience); held > 0; {
		var err error
		held, err = Unacknowledged(&c, server)
		require.NoError(t, err)
		require.True(t, time.Now().Before(end))
	}
	require.NotZero(t, c.Ioctls)
}

// An urgent byte stands where it was sent, and two of them stay both.
func TestUrgentBytesStayInLine(t *testing.T) {
	server, client := connection(t)
	for _, part := range []struct {
		text  string
		flags int
	}{{"ab", 0}, {"c", unix.MSG_OOB}, {"de", 0}, {"f", unix.MSG_OOB}, {"g", 0}} {
		require.NoError(t, unix.Sendto(client, []byte(part.text), part.flags, nil))
	}
	require.NoError(t, unix.Shutdown(client, unix.SHUT_WR))
	await(t, server, unix.POLLRDHUP)
	var c Counters
	require.Equal(t, 7, Unread(&c, server))
	require.Equal(t, "abcdefg", receiveAll(t, server))
	require.Zero(t, Unread(&c, server))
	require.EqualValues(t, 2, c.Ioctls)
}
