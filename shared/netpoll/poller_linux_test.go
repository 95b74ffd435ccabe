package netpoll

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestInterestIsTheKernels(t *testing.T) {
	require.EqualValues(t, unix.EPOLLIN, Readable)
	require.EqualValues(t, unix.EPOLLOUT, Writable)
	require.EqualValues(t, unix.EPOLLRDHUP, PeerClosed)
	require.EqualValues(t, unix.EPOLLONESHOT, OneShot)
	require.EqualValues(t, uint32(unix.EPOLLET), EdgeTriggered)
}

// wait is a Wait that must give one event.
func wait(t *testing.T, p *Poller, c *Counters) Event {
	t.Helper()
	events, err := p.Wait(c, patience)
	require.NoError(t, err)
	require.Len(t, events, 1)
	return events[0]
}

func quiet(t *testing.T, p *Poller, c *Counters) {
	t.Helper()
	events, err := p.Wait(c, 0)
	require.NoError(t, err)
	require.Empty(t, events)
}

func TestPollerReports(t *testing.T) {
	a, b := pair(t)
	var c Counters
	p := poller(t, &c)
	require.NoError(t, p.Add(&c, b, math.MaxUint32, Readable|PeerClosed))
	quiet(t, p, &c)

	_, err := Send(&c, a, []byte("x"))
	require.NoError(t, err)
	for range 2 { // level-triggered
		e := wait(t, p, &c)
		require.Equal(t, b, e.FD())
		require.Equal(t, uint32(math.MaxUint32), e.Generation())
		require.True(t, e.Readable())
		require.False(t, e.Writable() || e.Closed() || e.IsWake())
	}

	require.NoError(t, p.Modify(&c, b, 7, Writable))
	e := wait(t, p, &c)
	require.Equal(t, uint32(7), e.Generation())
	require.True(t, e.Writable())
	require.False(t, e.Readable() || e.Closed())

	require.NoError(t, ShutdownWrite(&c, a))
	require.NoError(t, p.Modify(&c, b, 8, Readable|PeerClosed))
	e = wait(t, p, &c)
	require.True(t, e.Readable())
	require.True(t, e.Closed())

	require.NoError(t, p.Remove(&c, b))
	quiet(t, p, &c)
	require.Equal(t, Counters{Writes: 1, WrittenBytes: 1, Shutdowns: 1, EpollCtls: 5, EpollWaits: 6, Events: 4}, c)
}

func TestPollerReportsHangUpUnasked(t *testing.T) {
	server, client := connection(t)
	var c Counters
	p := poller(t, &c)
	require.NoError(t, p.Add(&c, server, 1, 0))
	require.NoError(t, SetLinger0(client))
	require.NoError(t, Close(&c, client))
	e := wait(t, p, &c)
	require.Equal(t, server, e.FD())
	require.True(t, e.Closed())
}

func TestOneShot(t *testing.T) {
	a, b := pair(t)
	var c Counters
	p := poller(t, &c)
	require.NoError(t, p.Add(&c, b, 1, Readable|OneShot))
	_, err := Send(&c, a, []byte("x"))
	require.NoError(t, err)
	require.True(t, wait(t, p, &c).Readable())
	quiet(t, p, &c)
	_, err = Send(&c, a, []byte("x"))
	require.NoError(t, err)
	quiet(t, p, &c)
	require.NoError(t, p.Modify(&c, b, 1, Readable|OneShot))
	require.True(t, wait(t, p, &c).Readable())
}

func TestEdgeTriggered(t *testing.T) {
	a, b := pair(t)
	var c Counters
	p := poller(t, &c)
	require.NoError(t, p.Add(&c, b, 1, Readable|PeerClosed|EdgeTriggered))
	for range 3 {
		_, err := Send(&c, a, []byte("x"))
		require.NoError(t, err)
		require.True(t, wait(t, p, &c).Readable())
		quiet(t, p, &c)
	}
}

func TestClosedDescriptorIsForgotten(t *testing.T) {
	a, b := pair(t)
	var c Counters
	p := poller(t, &c)
	require.NoError(t, p.Add(&c, b, 1, Readable))
	_, err := Send(&c, a, []byte("x"))
	require.NoError(t, err)
	require.NoError(t, Close(&c, b))
	quiet(t, p, &c)
}

func TestPollerErrors(t *testing.T) {
	a, _ := pair(t)
	var c Counters
	p := poller(t, &c)
	require.Equal(t, syscall.ENOENT, p.Modify(&c, a, 1, Readable))
	require.Equal(t, syscall.ENOENT, p.Remove(&c, a))
	require.NoError(t, p.Add(&c, a, 1, Readable))
	require.Equal(t, syscall.EEXIST, p.Add(&c, a, 1, Readable))
	require.Equal(t, syscall.EBADF, p.Add(&c, -1, 1, Readable))
	require.EqualValues(t, 1+5, c.EpollCtls, "the first is the eventfd's")
}

func TestMoreEventsThanRoom(t *testing.T) {
	var c Counters
	p := poller(t, &c)
	const many = maxEvents + 88
	waiting := map[int]bool{}
	for range many {
		fd, err := openEventfd()
		require.NoError(t, err)
		t.Cleanup(func() { unix.Close(fd) })
		require.NoError(t, p.Add(&c, fd, uint32(fd), Writable|EdgeTriggered))
		waiting[fd] = true
	}
	for _, want := range []int{maxEvents, many - maxEvents} {
		events, err := p.Wait(&c, -1)
		require.NoError(t, err)
		require.Len(t, events, want)
		for _, e := range events {
			require.EqualValues(t, e.FD(), e.Generation())
			delete(waiting, e.FD())
		}
	}
	require.Empty(t, waiting)
	require.EqualValues(t, many, c.Events)
}

func TestWaitGoesOnAfterASignal(t *testing.T) {
	var c Counters
	p := poller(t, &c)
	calls := func(timeout time.Duration, events int) uint64 {
		before := c.EpollWaits
		got, err := p.Wait(&c, timeout)
		require.NoError(t, err)
		require.Len(t, got, events)
		return c.EpollWaits - before
	}
	require.NoError(t, p.Wake(new(Counters)))
	require.EqualValues(t, 1, calls(-1, 1), "one call, of which the scheduler does not hear")
	require.NoError(t, p.Wake(new(Counters)))
	injectFaults(t, CallEpollPwait, fail(unix.EINTR)...)
	require.EqualValues(t, 2, calls(-1, 1), "the runtime wanted the thread: once more, and the scheduler hears of it")
	require.EqualValues(t, 1, calls(0, 0), "it only looks")
}

// A collection needs every thread that runs Go code, also one that waits without the scheduler's knowledge.
func TestCollectionWhileWaiting(t *testing.T) {
	p := poller(t, new(Counters))
	waiting := make(chan struct{})
	ended := make(chan error)
	go func() {
		runtime.LockOSThread()
		var c Counters
		close(waiting)
		_, err := p.Wait(&c, -1)
		ended <- err
	}()
	<-waiting
	for range 10 {
		runtime.GC()
	}
	require.NoError(t, p.Wake(new(Counters)))
	require.NoError(t, <-ended)
}

func TestWaitIsNeverEarly(t *testing.T) {
	var c Counters
	p := poller(t, &c)
	for _, timeout := range []time.Duration{1, 1500 * time.Microsecond, 20 * time.Millisecond} {
		begin := time.Now()
		events, err := p.Wait(&c, timeout)
		require.NoError(t, err)
		require.Empty(t, events)
		require.GreaterOrEqual(t, time.Since(begin), timeout)
	}
}

func TestMilliseconds(t *testing.T) {
	for timeout, want := range map[time.Duration]int{
		-1:                    -1,
		math.MinInt64:         -1,
		0:                     0,
		1:                     1,
		time.Millisecond:      1,
		time.Millisecond + 1:  2,
		time.Second:           1000,
		math.MaxInt64:         math.MaxInt32,
		30 * 24 * time.Hour:   math.MaxInt32,
		24 * 24 * time.Hour:   24 * 24 * 3600 * 1000,
		999 * time.Nanosecond: 1,
	} {
		require.Equal(t, want, milliseconds(timeout), timeout)
	}
}

func TestWakeNeedsNoRead(t *testing.T) {
	var owner, other Counters
	p := poller(t, &owner)
	owner = Counters{}
	for range 3 {
		require.NoError(t, p.Wake(&other))
		require.NoError(t, p.Wake(&other))
		e := wait(t, p, &owner)
		require.True(t, e.IsWake())
		require.Negative(t, e.FD())
		quiet(t, p, &owner)
	}
	require.Equal(t, Counters{EventfdWrites: 6}, other)
	require.Equal(t, Counters{EpollWaits: 6, Events: 3}, owner, "two wake-ups, one event")
}

func TestShare(t *testing.T) {
	var c, other Counters
	p := poller(t, &c)
	q := p.Share()
	server, client := connection(t)
	require.NoError(t, p.Add(&c, server, 7, Readable|OneShot))
	send(t, client, "x")
	e := wait(t, q, &other)
	require.Equal(t, server, e.FD())
	require.EqualValues(t, 7, e.Generation())
	quiet(t, p, &c)
	require.NoError(t, q.Modify(&other, server, 8, Readable|OneShot))
	require.EqualValues(t, 8, wait(t, p, &c).Generation())
	quiet(t, q, &other)

	for _, pair := range [...][2]*Poller{{p, q}, {q, p}, {p, p}, {q, q}} {
		require.NoError(t, pair[0].Wake(&c))
		require.True(t, wait(t, pair[1], &other).IsWake())
		quiet(t, p, &c)
		quiet(t, q, &other)
	}
}

func TestWakeFromManyThreads(t *testing.T) {
	var c Counters
	p := poller(t, &c)
	const threads, times = 4, 200
	var posted atomic.Int64
	var wakers sync.WaitGroup
	for range threads {
		wakers.Go(func() {
			for range times {
				posted.Add(1)
				if err := p.Wake(new(Counters)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	// Each is posted before its wake-up, so that none can be missed, however the wake-ups merge.
	for posted.Load() < threads*times {
		require.True(t, wait(t, p, &c).IsWake())
	}
	wakers.Wait()
	require.LessOrEqual(t, c.Events, uint64(threads*times))
}

// waiting runs a Wait for ever on a thread of its own. attempts is asked before each epoll_pwait.
func waiting(t *testing.T, p *Poller, c *Counters) (thread int, attempts *atomic.Int64, done chan []Event) {
	attempts = new(atomic.Int64)
	Fault = func(call Call, _ int) (int, error, bool) {
		if call == CallEpollPwait {
			attempts.Add(1)
		}
		return 0, nil, false
	}
	t.Cleanup(func() { Fault = nil })
	threads := make(chan int)
	done = make(chan []Event, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		threads <- unix.Gettid()
		events, err := p.Wait(c, -1)
		if err != nil {
			t.Error(err)
		}
		done <- events
	}()
	return <-threads, attempts, done
}

func TestWakeUnblocks(t *testing.T) {
	var c Counters
	p := poller(t, &c)
	_, attempts, done := waiting(t, p, &c)
	// The runtime's own signal may have interrupted it once.
	require.Eventually(t, func() bool { return attempts.Load() >= 1 }, patience, time.Millisecond)
	require.NoError(t, p.Wake(new(Counters)))
	events := <-done
	require.Len(t, events, 1)
	require.True(t, events[0].IsWake())
}

func TestWaitSurvivesRealSignals(t *testing.T) {
	var c Counters
	p := poller(t, &c)
	thread, attempts, done := waiting(t, p, &c)
	// SIGURG is the runtime's own, and harmless. It interrupts the call each time that it is blocked.
	require.Eventually(t, func() bool {
		require.NoError(t, unix.Tgkill(unix.Getpid(), thread, unix.SIGURG))
		return attempts.Load() >= 5
	}, patience, time.Millisecond)
	require.Empty(t, done)
	require.NoError(t, p.Wake(new(Counters)))
	events := <-done
	require.Len(t, events, 1)
	require.True(t, events[0].IsWake())
	require.EqualValues(t, attempts.Load(), c.EpollWaits)
}

func TestInterruptionsDoNotLengthenAWait(t *testing.T) {
	var c Counters
	p := poller(t, &c)
	Fault = func(call Call, _ int) (int, error, bool) { return 0, syscall.EINTR, call == CallEpollPwait }
	t.Cleanup(func() { Fault = nil })
	begin := time.Now()
	// If each interruption began anew, it would never end.
	events, err := p.Wait(&c, 20*time.Millisecond)
	require.NoError(t, err)
	require.Empty(t, events)
	require.GreaterOrEqual(t, time.Since(begin), 20*time.Millisecond)
	require.Greater(t, c.EpollWaits, uint64(1))
}

func TestWaitFaults(t *testing.T) {
	var c Counters
	p := poller(t, &c)
	require.NoError(t, p.Wake(&c))
	t.Run("interrupted look", func(t *testing.T) {
		injectFaults(t, CallEpollPwait, fail(unix.EINTR, unix.EINTR)...)
		before := c.EpollWaits
		events, err := p.Wait(&c, 0)
		require.NoError(t, err)
		require.Len(t, events, 1)
		require.EqualValues(t, 3, c.EpollWaits-before)
	})
	t.Run("interrupted block", func(t *testing.T) {
		quiet(t, p, &c)
		require.NoError(t, p.Wake(&c))
		injectFaults(t, CallEpollPwait, fail(unix.EINTR, unix.EINTR)...)
		require.True(t, wait(t, p, &c).IsWake())
	})
	for _, timeout := range []time.Duration{0, -1} {
		for _, errno := range []syscall.Errno{unix.EBADF, unix.EFAULT, unix.EINVAL} {
			injectFaults(t, CallEpollPwait, fail(errno)...)
			events, err := p.Wait(&c, timeout)
			require.Equal(t, errno, err)
			require.Empty(t, events)
		}
	}
	t.Run("no event", func(t *testing.T) {
		injectFaults(t, CallEpollPwait, answer{})
		events, err := p.Wait(&c, -1)
		require.NoError(t, err)
		require.Empty(t, events)
	})
	t.Run("one event of two", func(t *testing.T) {
		a, b := pair(t)
		require.NoError(t, p.Add(&c, a, 1, Writable))
		require.NoError(t, p.Add(&c, b, 1, Writable))
		injectFaults(t, CallEpollPwait, answer{n: 1})
		wait(t, p, &c)
		events, err := p.Wait(&c, 0)
		require.NoError(t, err)
		require.Len(t, events, 2)
	})
}

func TestNewPollerThatFailsHoldsNothing(t *testing.T) {
	for _, fault := range []struct {
		call  Call
		errno syscall.Errno
	}{
		{CallEpollCreate1, unix.EMFILE}, {CallEpollCreate1, unix.ENFILE}, {CallEpollCreate1, unix.ENOMEM},
		{CallEventfd2, unix.EMFILE}, {CallEventfd2, unix.ENFILE}, {CallEventfd2, unix.ENODEV}, {CallEventfd2, unix.ENOMEM},
		{CallEpollCtl, unix.ENOMEM}, {CallEpollCtl, unix.ENOSPC},
	} {
		t.Run(fault.call.String()+" "+fault.errno.Error(), func(t *testing.T) {
			before := openDescriptors(t)
			injectFaults(t, fault.call, fail(fault.errno)...)
			p, err := NewPoller(new(Counters))
			require.Equal(t, fault.errno, err)
			require.Nil(t, p)
			require.Equal(t, before, openDescriptors(t))
		})
	}
}

func TestPollerClose(t *testing.T) {
	before := openDescriptors(t)
	var c Counters
	p, err := NewPoller(&c)
	require.NoError(t, err)
	require.NoError(t, p.Close(&c))
	require.Equal(t, Counters{EpollCtls: 1, Closes: 2}, c)
	require.Equal(t, before, openDescriptors(t))

	p, err = NewPoller(&c)
	require.NoError(t, err)
	injectFaults(t, CallClose, answer{}, answer{err: unix.EIO})
	require.Equal(t, syscall.EIO, p.Close(&c))
	require.Equal(t, before, openDescriptors(t))
}
