package netpoll

import (
	"strings"
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
	refused  []string // what those had sent that were told that there is no room
	takes    int      // calls of take
	answers  []error  // of the next calls of take; nil when there are none left
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t}
	r.poller = poller(t, &r.counters)
	var listener int
	var err error
	listener, r.address, err = Listen(&r.counters, "127.0.0.1:0", ListenOptions{})
	require.NoError(t, err)
	r.Acceptor, err = NewAcceptor(&r.counters, r.poller, listener, Refusal{
		Answer: func(dst, input []byte) []byte {
			r.refused = append(r.refused, string(input))
			return append(dst, "no room"...)
		},
		Patience: refusalPatience,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		r.Stop(r.take)
		for _, fd := range r.taken {
			unix.Close(fd)
		}
	})
	return r
}

func (r *rig) take(fd int) error {
	r.takes++
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

// await turns until something has come about.
func (r *rig) await(done func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !done(); r.turn() {
		require.True(r.t, time.Now().Before(end), "it does not come about")
	}
}

// turn is what a loop does once, without waiting.
func (r *rig) turn() {
	r.t.Helper()
	events, err := r.poller.Wait(&r.counters, 0)
	require.NoError(r.t, err)
	for i := range events {
		require.True(r.t, r.Has(&events[i]))
		r.Handle(&events[i], r.take)
	}
	r.Maintain()
}

func TestAcceptorWithoutListener(t *testing.T) {
	var a *Acceptor
	require.False(t, a.Has(&Event{}))
	require.Less(t, a.Timeout(), time.Duration(0))
	a.Maintain()
	a.Stop(nil)
	a.Close()
}

func TestAcceptorTakesWhatWaits(t *testing.T) {
	r := newRig(t)
	r.turn()
	require.Zero(t, r.takes)
	r.connect(3)
	r.turn()
	require.Equal(t, 3, r.takes)
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
			_, err = NewAcceptor(&c, p, fd, Refusal{})
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

// No descriptor is left: one connection is taken with the one held back, to be refused, and the others wait.
func TestAcceptorUsesItsReserve(t *testing.T) {
	r := newRig(t)
	clients := r.connect(3)
	limitDescriptors(t, 0)
	r.turn()
	require.Zero(t, r.takes)
	require.True(t, r.paused)
	require.LessOrEqual(t, r.Timeout(), acceptPause)
	require.Empty(t, r.reserve.held)
	r.giveWay = time.Now().Add(time.Hour)

	// Full, it rests.
	before := r.counters
	for range 5 {
		r.turn()
	}
	require.Zero(t, r.counters.Sub(before).Events)
	require.Zero(t, r.counters.Sub(before).Accepts)

	// The client is told, and leaves; the next one takes its place.
	send(t, clients[0], "hello")
	r.await(func() bool { return len(r.refused) == 1 })
	require.Equal(t, []string{"hello"}, r.refused)
	require.Equal(t, "no room", receiveAll(t, clients[0]))
	require.NoError(t, unix.Shutdown(clients[0], unix.SHUT_RDWR))
	send(t, clients[1], "me too")
	r.await(func() bool { return len(r.refused) == 2 })
	require.Equal(t, "me too", r.refused[1])
}

// A silent client in the reserve's place does not keep the others waiting for as long as it may be silent.
func TestAcceptorServesTheNextInLine(t *testing.T) {
	r := newRig(t)
	r.Acceptor.refused.Patience = time.Hour
	clients := r.connect(3)
	limitDescriptors(t, 0)
	for _, client := range clients[:2] {
		r.await(func() bool { return r.counters.Connections == 1 })
		paused := time.Now()
		answered := len(r.refused)
		r.await(func() bool { return len(r.refused) > answered })
		require.GreaterOrEqual(t, time.Since(paused), acceptPause/2)
		require.Equal(t, "no room", receiveAll(t, client))
	}
}

// The socket had a descriptor, the timer has none.
func TestAcceptorRefusesWhatLacksTheRest(t *testing.T) {
	r := newRig(t)
	clients := r.connect(2)
	send(t, clients[0], "a")
	r.answers = []error{unix.EMFILE, nil}
	r.await(func() bool { return r.takes == 2 })
	require.Len(t, r.taken, 1)
	require.Equal(t, []string{"a"}, r.refused)
	require.False(t, r.paused, "descriptors were free again")
}

// refusalPatience is so long that a test which waits for its end fails on no machine that is merely slow.
const refusalPatience = 500 * time.Millisecond

// One that is silent is told in the end; then it has as long to leave.
func TestAcceptorRefusesTheSilent(t *testing.T) {
	r := newRig(t)
	r.answers = []error{ErrNoRoom}
	client := r.connect(1)[0]
	accepted := time.Now()
	r.await(func() bool { return len(r.refused) == 1 })
	require.GreaterOrEqual(t, time.Since(accepted), refusalPatience)
	require.Equal(t, []string{""}, r.refused)
	require.Equal(t, "no room", receiveAll(t, client))
	answered := time.Now()
	r.await(func() bool { return r.counters.Connections == 0 })
	require.GreaterOrEqual(t, time.Since(answered), refusalPatience/2)
}

// There are never more than some: for the next one the oldest goes, with an answer.
func TestAcceptorHoldsFewOfThem(t *testing.T) {
	r := newRig(t)
	open := openDescriptors(t)
	for range refusedLimit + 3 {
		r.answers = append(r.answers, ErrNoRoom)
	}
	clients := r.connect(refusedLimit + 3)
	r.await(func() bool { return r.takes == len(clients) })
	require.Equal(t, open+len(clients)+refusedLimit, openDescriptors(t))
	require.EqualValues(t, refusedLimit, r.counters.Connections)
	require.Len(t, r.refused, 3)
	for _, client := range clients[:3] {
		require.Equal(t, "no room", receiveAll(t, client))
	}
	// Those who have spoken are answered before anything else, and are the youngest then.
	send(t, clients[3], "now")
	r.await(func() bool { return len(r.refused) == 4 })
	require.Equal(t, "now", r.refused[3])
	r.Close()
	require.Equal(t, open+len(clients)-2, openDescriptors(t), "the listener and the reserve are closed too")
}

// What a refused client sends on is read and dropped, but not for ever.
func TestAcceptorReadsWhatTheRefusedSend(t *testing.T) {
	r := newRig(t)
	r.answers = []error{ErrNoRoom}
	client := r.connect(1)[0]
	chunk := strings.Repeat("x", 16<<10)
	for range refusedInput / len(chunk) / 2 {
		send(t, client, chunk)
		r.turn()
	}
	require.Len(t, r.refused, 1)
	require.EqualValues(t, 1, r.counters.Connections)
	r.await(func() bool {
		unix.Write(client, []byte(chunk))
		return r.counters.Connections == 0
	})
}

func TestAcceptorClosesWhatNobodyTakes(t *testing.T) {
	for name, answers := range map[string][]error{
		"another error": {unix.EINVAL},
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
	require.Equal(t, 1, r.takes)
	require.False(t, r.paused)
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
			require.Zero(t, r.takes)
			require.True(t, r.paused)
			require.LessOrEqual(t, r.counters.Accepts, uint64(2))
			accepts := r.counters.Accepts
			Fault = nil
			for turns := 0; r.paused; turns++ {
				require.Less(t, time.Since(failed), patience)
				_, err := r.poller.Wait(&r.counters, r.Timeout())
				require.NoError(t, err)
				r.Maintain()
				require.Less(t, turns, 10, "it does not rest")
			}
			require.GreaterOrEqual(t, time.Since(failed), acceptPause)
			require.Equal(t, accepts, r.counters.Accepts)
			r.turn()
			require.Equal(t, 1, r.takes)
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
	r.Handle(&events[0], r.take)
	require.Equal(t, accepts, r.counters.Accepts, "it asks a descriptor that is closed")
	require.False(t, r.paused)
	successor := events[0]
	successor.raw.Pad = 1
	require.False(t, r.Has(&successor), "a connection may have that number, with a generation of its own")
}

func TestAcceptorStops(t *testing.T) {
	for name, prepare := range map[string]func(r *rig){
		"with a queue": func(r *rig) {},
		"paused": func(r *rig) {
			r.useReserve()
			require.True(t, r.paused)
		},
	} {
		t.Run(name, func(t *testing.T) {
			open := openDescriptors(t)
			r := newRig(t)
			clients := r.connect(acceptTurn / 4)
			prepare(r)
			paused := r.paused
			r.Stop(r.take)
			if paused {
				require.Empty(t, r.taken, "for lack of descriptors")
			} else {
				require.Len(t, r.taken, len(clients))
			}
			require.False(t, r.paused)
			require.Less(t, r.Timeout(), time.Duration(0))
			require.Equal(t, open+2+len(clients)+len(r.taken), openDescriptors(t), "the listener or its reserve is open still")
			r.Stop(r.take)
			r.Maintain()
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
	r.Stop(func(fd int) error {
		require.NoError(t, unix.Close(fd))
		if taken++; taken <= stopTurn { // so that the case fails, rather than hangs, if Stop has no bound
			another()
		}
		return nil
	})
	require.Equal(t, stopTurn, taken)
}
