package netpoll

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// rig is an acceptor with what it needs, and a place for what it accepts.
type rig struct {
	*Acceptor
	t        testing.TB
	counters Counters
	poller   *Poller
	address  string
	taken    []int
	reserved []bool  // of each call of take
	answers  []error // of the next calls of take; nil when there are none left
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t}
	r.poller = poller(t, &r.counters)
	var listener int
	var err error
	listener, r.address, err = Listen(&r.counters, "127.0.0.1:0", ListenOptions{})
	require.NoError(t, err)
	r.Acceptor, err = NewAcceptor(&r.counters, r.poller, listener)
	require.NoError(t, err)
	t.Cleanup(func() {
		r.Stop(r.take)
		for _, fd := range r.taken {
			unix.Close(fd)
		}
	})
	return r
}

func (r *rig) take(fd int, reserved bool) error {
	r.reserved = append(r.reserved, reserved)
	if len(r.answers) > 0 {
		answer := r.answers[0]
		r.answers = r.answers[1:]
		if answer != nil {
			return answer
		}
	}
	r.taken = append(r.taken, fd)
	return nil
}

// connect makes n connections, which wait in the listener's queue.
func (r *rig) connect(n int) (clients []int) {
	for range n {
		clients = append(clients, dial(r.t, Address{}, r.address))
	}
	return clients
}

// turn is what a loop does once, without waiting.
func (r *rig) turn() {
	r.t.Helper()
	events, err := r.poller.Wait(&r.counters, 0)
	require.NoError(r.t, err)
	for i := range events {
		require.True(r.t, r.Has(&events[i]))
		r.Accept(r.take)
	}
	r.Resume()
}

func TestAcceptorWithoutListener(t *testing.T) {
	var a *Acceptor
	require.False(t, a.Has(&Event{}))
	require.False(t, a.Paused())
	require.Less(t, a.Timeout(), time.Duration(0))
	a.Resume()
	a.Stop(nil)
}

func TestAcceptorTakesWhatWaits(t *testing.T) {
	r := newRig(t)
	r.turn()
	require.Empty(t, r.reserved)
	r.connect(3)
	r.turn()
	require.Equal(t, []bool{false, false, false}, r.reserved)
	require.Less(t, r.Timeout(), time.Duration(0))
	require.EqualValues(t, 1, r.counters.AcceptAgains, "it accepts until the queue is empty")
}

// One turn is bounded, and the listener, level-triggered, brings the next.
func TestAcceptorLeavesTheOthersATurn(t *testing.T) {
	r := newRig(t)
	r.connect(5)
	r.accept(2, r.take)
	require.Len(t, r.taken, 2)
	r.turn()
	require.Len(t, r.taken, 5)
}

func TestAcceptorOwnsItsListener(t *testing.T) {
	for _, call := range []Call{CallEventfd2, CallEpollCtl} {
		t.Run(call.String(), func(t *testing.T) {
			var c Counters
			p := poller(t, &c)
			open := openDescriptors(t)
			fd, bound, err := Listen(&c, "127.0.0.1:0", ListenOptions{})
			require.NoError(t, err)
			injectFaults(t, call, fail(unix.ENOMEM)...)
			_, err = NewAcceptor(&c, p, fd)
			require.Equal(t, unix.ENOMEM, err)
			require.Equal(t, open, openDescriptors(t))
			client, err := Connect(&c, Address{}, address(t, bound))
			if err == nil {
				await(t, client, unix.POLLOUT)
				err = ConnectError(&c, client)
				unix.Close(client)
			}
			require.Equal(t, unix.ECONNREFUSED, err)
		})
	}
}

// No descriptor is left: one connection is taken with those held back, to be refused, and the others wait.
func TestAcceptorUsesItsReserve(t *testing.T) {
	r := newRig(t)
	r.connect(3)
	limitDescriptors(t, 0)
	r.turn()
	require.Equal(t, []bool{true}, r.reserved)
	require.True(t, r.Paused())
	require.Equal(t, acceptPause, r.Timeout())
	require.Len(t, r.reserve.held, 1, "one for the connection, and the other is held back again")

	// Full, it rests.
	before := r.counters
	for range 5 {
		r.turn()
	}
	require.Zero(t, r.counters.Sub(before).Events)
	require.Zero(t, r.counters.Sub(before).Accepts)

	// The connection is closed, and the next one takes its place.
	unix.Close(r.taken[0])
	r.taken = nil
	r.turn()
	require.False(t, r.Paused())
	r.turn()
	require.Equal(t, []bool{true, true}, r.reserved)
}

// The socket had a descriptor, the timer has none.
func TestAcceptorUsesItsReserveForTheRest(t *testing.T) {
	r := newRig(t)
	r.connect(2)
	r.answers = []error{unix.EMFILE, nil}
	r.turn()
	require.Equal(t, []bool{false, true}, r.reserved)
	require.Len(t, r.taken, 1)
	require.False(t, r.Paused(), "descriptors were free again")
	r.turn()
	require.Equal(t, []bool{false, true, false}, r.reserved)
	require.Len(t, r.taken, 2)
}

func TestAcceptorClosesWhatNobodyTakes(t *testing.T) {
	for name, answers := range map[string][]error{
		"no descriptor with the reserve": {unix.EMFILE, unix.EMFILE},
		"another error":                  {unix.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			clients := r.connect(1)
			open := openDescriptors(t)
			r.answers = answers
			r.turn()
			require.Empty(t, r.taken)
			require.Equal(t, open, openDescriptors(t))
			await(t, clients[0], unix.POLLIN)
			_, err := Receive(new(Counters), clients[0], make([]byte, 1))
			require.Error(t, err)
		})
	}
}

// What accept4(2) says of the one connection is no reason to stop.
func TestAcceptorPassesOverBrokenConnections(t *testing.T) {
	r := newRig(t)
	r.connect(1)
	injectFaults(t, CallAccept4, fail(unix.ECONNABORTED, unix.EINTR, unix.EPROTO)...)
	r.turn()
	require.Equal(t, []bool{false}, r.reserved)
	require.False(t, r.Paused())
}

// Errors that stay: the loop must not turn without end, and must try again.
func TestAcceptorDoesNotSpin(t *testing.T) {
	for _, errno := range []syscall.Errno{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.EPERM} {
		t.Run(errno.Error(), func(t *testing.T) {
			r := newRig(t)
			r.connect(1)
			open := openDescriptors(t)
			Fault = func(call Call, _ int) (int, error, bool) { return 0, errno, call == CallAccept4 }
			t.Cleanup(func() { Fault = nil })
			failed := time.Now()
			r.turn()
			require.Empty(t, r.reserved)
			require.True(t, r.Paused())
			require.LessOrEqual(t, r.counters.Accepts, uint64(2))
			accepts := r.counters.Accepts
			Fault = nil
			for turns := 0; r.Paused(); turns++ {
				require.Less(t, time.Since(failed), patience)
				_, err := r.poller.Wait(&r.counters, r.Timeout())
				require.NoError(t, err)
				r.Resume()
				require.Less(t, turns, 10, "it does not rest")
			}
			require.GreaterOrEqual(t, time.Since(failed), acceptPause)
			require.Equal(t, accepts, r.counters.Accepts)
			r.turn()
			require.Equal(t, []bool{false}, r.reserved)
			require.Equal(t, open+1, openDescriptors(t))
		})
	}
}

// A loop that is told to stop and then comes to the listener's event of the same turn must know whose it is, and that it is
// void: its number is no connection's.
func TestAcceptorKnowsItsEventsAfterStop(t *testing.T) {
	r := newRig(t)
	r.connect(1)
	events, err := r.poller.Wait(&r.counters, 0)
	require.NoError(t, err)
	require.Len(t, events, 1)
	r.Stop(r.take)
	require.Len(t, r.taken, 1)
	require.True(t, r.Has(&events[0]))
	accepts := r.counters.Accepts
	r.Accept(r.take)
	require.Equal(t, accepts, r.counters.Accepts, "it asks a descriptor that is closed")
	require.False(t, r.Paused())
	successor := events[0]
	successor.raw.Pad = 1
	require.False(t, r.Has(&successor), "a connection may have that number, with a generation of its own")
}

func TestAcceptorStops(t *testing.T) {
	for name, prepare := range map[string]func(r *rig){
		"with a queue": func(r *rig) {},
		"paused": func(r *rig) {
			r.useReserve()
			require.True(t, r.Paused())
		},
	} {
		t.Run(name, func(t *testing.T) {
			open := openDescriptors(t)
			r := newRig(t)
			clients := r.connect(acceptTurn / 4)
			prepare(r)
			paused := r.Paused()
			r.Stop(r.take)
			if paused {
				require.Empty(t, r.taken, "for lack of descriptors")
			} else {
				require.Len(t, r.taken, len(clients))
			}
			require.False(t, r.Paused())
			require.Less(t, r.Timeout(), time.Duration(0))
			require.False(t, r.Has(&Event{}))
			require.Equal(t, open+2+len(clients)+len(r.taken), openDescriptors(t), "the listener or its reserve is open still")
			r.Stop(r.take)
			r.Resume()
			require.Equal(t, open+2+len(clients)+len(r.taken), openDescriptors(t))
			events, err := r.poller.Wait(&r.counters, 0)
			require.NoError(t, err)
			require.Empty(t, events)
		})
	}
}

// Clients that connect as fast as they are taken do not keep it from stopping.
func TestAcceptorStopsUnderAFlood(t *testing.T) {
	r := newRig(t)
	another := func() {
		fd, err := Connect(new(Counters), Address{}, address(t, r.address))
		require.NoError(t, err)
		await(t, fd, unix.POLLOUT)
		require.NoError(t, unix.Close(fd))
	}
	another()
	taken := 0
	r.Stop(func(fd int, _ bool) error {
		require.NoError(t, unix.Close(fd))
		if taken++; taken <= stopTurn { // so that the case fails, rather than hangs, if Stop has no bound
			another()
		}
		return nil
	})
	require.Equal(t, stopTurn, taken)
}
