package netpoll

import (
	"bytes"
	"io"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ring is an enabled Ring that belongs to the test's thread. Where there can be none the test is
// skipped, with one line.
func ring(t testing.TB, c *Counters) *Ring {
	t.Helper()
	if err := RingError(); err != nil {
		t.Skip(err)
	}
	runtime.LockOSThread() // for good: the thread goes with the test
	r, err := NewRing(c)
	require.NoError(t, err)
	t.Cleanup(func() { r.Close(new(Counters)) })
	require.NoError(t, r.Enable())
	return r
}

// next enters until there is a completion, and gives it.
func (r *Ring) next(t testing.TB, c *Counters) (done Completion) {
	t.Helper()
	for end := time.Now().Add(patience); !r.Next(c, &done); {
		require.True(t, time.Now().Before(end), "no completion in time")
		require.NoError(t, r.Enter(c, time.Second))
	}
	return done
}

func vectorOf(pieces ...string) *Vector {
	v := NewVector(max(len(pieces), 1))
	for _, p := range pieces {
		v.Append([]byte(p))
	}
	return v
}

// One request brings all that arrives, and its end; no call is made but those that enter.
func TestRingReceives(t *testing.T) {
	c := new(Counters)
	r := ring(t, c)
	server, client := connection(t)
	r.Receive(c, 7, server)
	require.NoError(t, r.Enter(c, 0))
	for _, text := range []string{"one", "two", "three"} {
		_, err := Send(new(Counters), client, []byte(text))
		require.NoError(t, err)
		done := r.next(t, c)
		require.Equal(t, OpReceive, done.Operation)
		require.EqualValues(t, 7, done.ID)
		b, err := done.Bytes()
		require.NoError(t, err)
		require.Equal(t, text, string(b))
		require.True(t, done.More())
	}
	require.NoError(t, ShutdownWrite(new(Counters), client))
	done := r.next(t, c)
	_, err := done.Bytes()
	require.Equal(t, io.EOF, err)
	require.False(t, done.More())
	require.Equal(t, Counters{Enters: c.Enters, Completions: 4, ReadBytes: 11}, *c)
	require.Positive(t, c.Enters)
}

// The buffers come back: much more passes through them than they hold, and is whole.
func TestRingBuffersComeBack(t *testing.T) {
	c := new(Counters)
	r := ring(t, c)
	server, client := connection(t)
	const total = 3 * ringBuffers * ringBufferSize
	want := make([]byte, total)
	for i := range want {
		want[i] = byte(i>>12) ^ byte(i)
	}
	go func() {
		for rest := want; len(rest) > 0; {
			n, err := Send(new(Counters), client, rest)
			if err == ErrWouldBlock {
				unix.Poll([]unix.PollFd{{Fd: int32(client), Events: unix.POLLOUT}}, 1000)
			} else if err != nil {
				return
			}
			rest = rest[n:]
		}
		ShutdownWrite(new(Counters), client)
	}()
	r.Receive(c, 1, server)
	var got bytes.Buffer
	for {
		done := r.next(t, c)
		b, err := done.Bytes()
		if err == io.EOF {
			break
		}
		if !IsExhausted(err) { // ENOBUFS: all buffers were in use
			require.NoError(t, err)
		}
		got.Write(b)
		if !done.More() {
			r.Receive(c, 1, server)
		}
	}
	require.Equal(t, total, got.Len())
	require.True(t, bytes.Equal(want, got.Bytes()))
}

// Without waiting the kernel takes what there is room for, and says how much; the rest goes when
// there is room.
func TestRingSends(t *testing.T) {
	c := new(Counters)
	r := ring(t, c)
	server, client := connection(t)
	r.Send(c, 3, server, vectorOf("Hello, ", "World!"), SendAtOnce)
	done := r.next(t, c)
	require.Equal(t, OpSend, done.Operation)
	n, err := done.Result()
	require.NoError(t, err)
	require.Equal(t, 13, n)
	b := make([]byte, 64)
	await(t, client, unix.POLLIN)
	n, err = Receive(new(Counters), client, b)
	require.NoError(t, err)
	require.Equal(t, "Hello, World!", string(b[:n]))

	v := NewVector(1)
	v.Append(make([]byte, 16<<20))
	sent := 0
	for {
		r.Send(c, 3, server, v, SendAtOnce)
		done := r.next(t, c)
		n, err := done.Result()
		if err != nil {
			require.Equal(t, ErrWouldBlock, err)
			break
		}
		v.Advance(n)
		sent += n
	}
	require.Positive(t, v.Len())
	r.Send(c, 3, server, v, SendPatiently)
	require.NoError(t, r.Enter(c, 0))
	require.False(t, r.Next(c, &done), "there is no room yet")
	go func() {
		for buffer := make([]byte, 1<<20); ; {
			unix.Poll([]unix.PollFd{{Fd: int32(client), Events: unix.POLLIN}}, 1000)
			if n, err := Receive(new(Counters), client, buffer); n == 0 && err != ErrWouldBlock {
				return
			}
		}
	}()
	for v.Len() > 0 {
		done := r.next(t, c)
		n, err := done.Result()
		require.NoError(t, err)
		if v.Advance(n); v.Len() > 0 {
			r.Send(c, 3, server, v, SendPatiently)
		}
	}
	require.EqualValues(t, 13+16<<20, c.WrittenBytes)
	require.Zero(t, c.Writes)
	ShutdownWrite(new(Counters), server)
}

// One call submits a send behind which nothing is to be done, and waits for something else.
func TestRingSendsAndWaitsInOneCall(t *testing.T) {
	c := new(Counters)
	r := ring(t, c)
	server, client := connection(t)
	r.Receive(c, 1, server)
	require.NoError(t, r.Enter(c, 0))
	answered := make(chan struct{})
	go func() { // it asks again only when it has the answer
		defer close(answered)
		unix.Poll([]unix.PollFd{{Fd: int32(client), Events: unix.POLLIN}}, int(patience/time.Millisecond))
		Send(new(Counters), client, []byte("again"))
	}()
	before := c.Enters
	r.Send(c, 1, server, vectorOf("answer"), SendAside)
	require.NoError(t, r.Enter(c, -1))
	<-answered
	var operations []Operation
	for done := (Completion{}); r.Next(c, &done); {
		operations = append(operations, done.Operation)
	}
	require.ElementsMatch(t, []Operation{OpSend, OpReceive}, operations)
	require.LessOrEqual(t, c.Enters-before, uint64(3), "the runtime may have interrupted it")
}

func TestRingAccepts(t *testing.T) {
	c := new(Counters)
	r := ring(t, c)
	l, bound := listener(t, "127.0.0.1:0", ListenOptions{})
	r.Accept(c, 2, l)
	require.NoError(t, r.Enter(c, 0))
	for range 3 {
		dial(t, Address{}, bound)
		done := r.next(t, c)
		require.Equal(t, OpAccept, done.Operation)
		fd, err := done.Result()
		require.NoError(t, err)
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		require.NoError(t, err)
		require.NotZero(t, flags&unix.O_NONBLOCK)
		require.NoError(t, unix.Close(fd))
		require.True(t, done.More())
	}
	r.Cancel(c, OpAccept, 2)
	done := r.next(t, c)
	_, err := done.Result()
	require.Equal(t, ErrCanceled, err)
	require.False(t, done.More())
	require.Zero(t, c.Accepts)
}

// A request that is on its way keeps the socket open, whoever closes the descriptor: it has to be
// cancelled.
func TestRingCancel(t *testing.T) {
	c := new(Counters)
	r := ring(t, c)
	server, client := connection(t)
	r.Receive(c, 5, server)
	require.NoError(t, r.Enter(c, 0))
	r.Cancel(c, OpReceive, 5)
	r.Cancel(c, OpReceive, 6) // there is none: nobody hears of it
	done := r.next(t, c)
	require.Equal(t, OpReceive, done.Operation)
	_, err := done.Bytes()
	require.Equal(t, ErrCanceled, err)
	require.False(t, done.More())
	require.NoError(t, r.Enter(c, 0))
	require.False(t, r.Next(c, &done))
	require.NoError(t, unix.Shutdown(server, unix.SHUT_RDWR))
	await(t, client, unix.POLLIN)
}

func TestRingWaits(t *testing.T) {
	c := new(Counters)
	r := ring(t, c)
	server, client := connection(t)
	r.Receive(c, 4, server)
	require.NoError(t, r.Enter(c, 0))
	require.False(t, r.Waits(OpReceive, 4))
	_, err := Send(new(Counters), client, []byte("x"))
	require.NoError(t, err)
	await(t, server, unix.POLLIN)
	require.NoError(t, r.Enter(c, -1))
	require.True(t, r.Waits(OpReceive, 4))
	require.False(t, r.Waits(OpReceive, 3))
	r.next(t, c)
	require.False(t, r.Waits(OpReceive, 4))
}

func TestRingTimer(t *testing.T) {
	c := new(Counters)
	r := ring(t, c)
	const after = 30 * time.Millisecond
	began := time.Now()
	r.After(c, 0, after)
	require.NoError(t, r.Enter(c, -1))
	done := r.next(t, c)
	require.Equal(t, OpTimer, done.Operation)
	require.GreaterOrEqual(t, time.Since(began), after)

	began = time.Now()
	require.NoError(t, r.Enter(c, after))
	require.False(t, r.Next(c, &done))
	require.GreaterOrEqual(t, time.Since(began), after)
	require.NoError(t, r.Enter(c, 0))
}

// Each wake-up reaches the owner, from any thread, whether it waits or not.
func TestRingWake(t *testing.T) {
	c := new(Counters)
	r := ring(t, c)
	for range 50 {
		require.NoError(t, r.Wake(c))
		require.Equal(t, OpWake, r.next(t, c).Operation)
		go func() { r.Wake(new(Counters)) }()
		require.NoError(t, r.Enter(c, -1))
		require.Equal(t, OpWake, r.next(t, c).Operation)
	}
	require.EqualValues(t, 50, c.EventfdWrites)
}

// More requests than the queue has places for are submitted in several calls.
func TestRingManyRequests(t *testing.T) {
	c := new(Counters)
	r := ring(t, c)
	server, client := connection(t)
	const n = 2*ringEntries + 10
	v := vectorOf("x")
	for i := range uint32(n) {
		r.Send(c, i, server, v, SendAtOnce)
	}
	for i := range uint32(n) {
		done := r.next(t, c)
		require.Equal(t, i, done.ID)
		took, err := done.Result()
		require.NoError(t, err)
		require.Equal(t, 1, took)
	}
	received := 0
	for buffer := make([]byte, n); received < n; {
		await(t, client, unix.POLLIN)
		got, err := Receive(new(Counters), client, buffer)
		require.NoError(t, err)
		received += got
	}
}

// The error where io_uring is forbidden is one line that says so; another error is itself.
func TestRingForbidden(t *testing.T) {
	for _, errno := range []syscall.Errno{unix.EPERM, unix.ENOSYS, unix.EINVAL} {
		injectFaults(t, CallIoUringSetup, fail(errno)...)
		err := RingError()
		require.ErrorIs(t, err, ErrNoRing)
		require.ErrorIs(t, err, errno)
		require.NotContains(t, err.Error(), "\n")
	}
	injectFaults(t, CallIoUringSetup, fail(unix.EMFILE)...)
	_, err := NewRing(new(Counters))
	require.Equal(t, unix.EMFILE, err)
	var none *Ring
	require.NoError(t, none.Close(new(Counters)))
}

func TestRingFailsWhole(t *testing.T) {
	ring(t, new(Counters))
	for _, call := range []Call{CallIoUringRegister, CallEventfd2} {
		open := openDescriptors(t)
		injectFaults(t, call, fail(unix.ENOMEM)...)
		_, err := NewRing(new(Counters))
		require.Equal(t, unix.ENOMEM, err)
		require.Equal(t, open, openDescriptors(t))
	}
}

func TestRingEnterFails(t *testing.T) {
	c := new(Counters)
	r := ring(t, c)
	require.NoError(t, r.Wake(c))
	injectFaults(t, CallIoUringEnter, fail(unix.EINTR, unix.EAGAIN, unix.EBUSY)...)
	before := c.Enters
	require.NoError(t, r.Enter(c, -1))
	require.GreaterOrEqual(t, c.Enters-before, uint64(4))
	require.Equal(t, OpWake, r.next(t, c).Operation)
	injectFaults(t, CallIoUringEnter, fail(unix.EBADF)...)
	require.Equal(t, unix.EBADF, r.Enter(c, -1))
}

func TestRingAllocatesNothing(t *testing.T) {
	c := new(Counters)
	r := ring(t, c)
	server, client := connection(t)
	r.Receive(c, 1, server)
	v, answer, b := NewVector(1), []byte("y"), make([]byte, 1)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		Send(c, client, answer)
		var done Completion
		for !r.Next(c, &done) {
			r.Enter(c, -1)
		}
		v.Reset()
		v.Append(answer)
		r.Send(c, 1, server, v, SendAtOnce)
		for !r.Next(c, &done) {
			r.Enter(c, 0)
		}
		Receive(c, client, b)
	}))
}
