package suite

import (
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// untilEnd asks for / again and again, until the connection ends. It is an error if that is inside an answer, or a reset, or if
// anything comes after an answer that says it is the last.
func (c *client) untilEnd() error {
	for {
		if err := c.Send(helloRequest); err != nil {
			return err
		}
		answer, err := c.answer(false)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		want := Hello()
		want.Connection = answer.Field("Connection")
		if err := want.Check(answer); err != nil {
			return err
		}
		if want.Connection == "close" {
			return c.ReadEnd()
		}
	}
}

// inTime is how soon a newcomer must have asked to be answered by a server that goes away beside its successor. The servers
// give them twice as long.
const inTime = 100 * time.Millisecond

// someLoad is how many requests tell that a server is in use.
var someLoad = thorough[uint64](250, 50)

// newcomersRest is how long each newcomer waits before the next: they are not to be all that the machine does.
var newcomersRest = thorough(0, 5*time.Millisecond)

// newcomers connect, ask once and go, until stop. Whoever gets a byte gets a whole answer. It returns how many were
// answered, and how many had their connection ended or reset before any byte though they had asked in time.
func newcomers(address string, clients int, stop <-chan struct{}) (wait func() (answered, unanswered int64, err error)) {
	var good, bad atomic.Int64
	var failure atomic.Pointer[error]
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				time.Sleep(newcomersRest)
				began := time.Now()
				c, err := connect(address)
				if err != nil {
					continue // nobody listens
				}
				err = c.Send(lastHello)
				asked := time.Since(began)
				if err == nil {
					err = c.read(closing(Hello()))
				}
				c.Close()
				switch {
				case err == nil:
					good.Add(1)
				case !ended(err):
					failure.CompareAndSwap(nil, &err)
				case asked < inTime:
					bad.Add(1)
				}
			}
		})
	}
	return func() (int64, int64, error) {
		group.Wait()
		if err := failure.Load(); err != nil {
			return 0, 0, *err
		}
		return good.Load(), bad.Load(), nil
	}
}

// A stop while clients ask without a rest, and others come: no answer is cut off, no connection that was served is reset.
func stopUnderLoad(t T, p Program) {
	for _, flags := range []string{"", "-workers 1", "-workers 3 -acceptor"} {
		// Time enough for clients on a busy machine to see the end.
		s := p.Start(t, strings.Fields(flags+" -linger-timeout 10s -grace 20s")...)
		const clients = 16
		stop := make(chan struct{})
		wait := newcomers(s.Ready.Address, 4, stop)
		failures := make([]error, clients)
		var group sync.WaitGroup
		for i := range failures {
			c := dial(t, s)
			c.hello(t)
			group.Go(func() {
				failures[i] = c.untilEnd()
				c.Close()
			})
		}
		s.Await(t, "some load", func(r harness.Reading) bool { return r.Total.Requests > 2*someLoad })
		s.Stop(t)
		close(stop)
		group.Wait()
		for _, err := range failures {
			require.NoError(t, err)
		}
		answered, unanswered, err := wait()
		require.NoError(t, err)
		t.Logf("%d newcomers answered, %d not", answered, unanswered)
	}
}

// Requests that lie in the kernel when the server is told to stop, behind answers that their client has not taken yet, are
// answered too, the last one with Connection: close.
func stopWithInputUnread(t T, p Program) {
	const requests = 2000 // more than a read buffer holds
	s := p.Start(t, "-grace", "30s", "-write-timeout", "1h")
	c := dial(t, s)
	c.send(t, largest)
	require.NoError(t, c.AwaitFirst())
	// The server is in the middle of an answer, and reads nothing more.
	s.Await(t, "the first answer", func(r harness.Reading) bool { return r.Total.Requests == 1 })
	c.send(t, strings.Repeat(helloRequest, requests))
	s.Signal(t, syscall.SIGTERM)
	s.awaitNoListener(t)
	c.expect(t, someBytes(16<<20))
	c.expectLast(t, requests)
	c.Close()
	s.Wait(t)
}

// One server after the other on one port, at once, while clients come without a rest.
func restartUnderLoad(t T, p Program) {
	s := p.Start(t, "-addr", ownHost(2)+":0", "-grace", "20s")
	stop := make(chan struct{})
	wait := newcomers(s.Ready.Address, 4, stop)
	for range 3 {
		s.Await(t, "some load", func(r harness.Reading) bool { return r.Total.Requests > someLoad })
		s.Stop(t)
		s = p.Start(t, "-addr", s.Ready.Address, "-grace", "20s")
	}
	close(stop)
	answered, unanswered, err := wait()
	require.NoError(t, err)
	t.Logf("%d newcomers answered, %d not", answered, unanswered)
	require.Positive(t, answered)
}

// A restart beside the old process (-overlap), which stages with a listener per loop can do: whoever the old one
// has accepted, or has in its queues, is served.
func overlap(t T, p Program) {
	if p.number(t) == 0 {
		refuses(t, 1, "-overlap", p.Command("-addr", "127.0.0.1:0", "-overlap"))
		return
	}
	for i, flags := range [][]string{{"-overlap"}, {"-overlap", "-acceptor"}} {
		t.Run(strings.Join(flags, " "), func(t T) {
			t.Parallel()
			overlapAt(t, p, ownHost(3+i), flags)
		})
	}
}

func overlapAt(t T, p Program, host string, flags []string) {
	old := p.Start(t, append(flags, "-addr", host+":0", "-linger-timeout", "100ms", "-grace", "20s")...)
	var open []*client
	come := func(n int) {
		for range n {
			c := dial(t, old)
			c.hello(t)
			open = append(open, c)
		}
	}
	come(10)
	stop := make(chan struct{})
	wait := newcomers(old.Ready.Address, 2, stop)
	old.Await(t, "some load", func(r harness.Reading) bool { return r.Total.Requests > someLoad })
	young := p.Start(t, append(flags, "-addr", old.Ready.Address)...)
	require.Equal(t, old.Ready.Address, young.Ready.Address)
	young.Await(t, "some load", func(r harness.Reading) bool { return r.Total.Requests > someLoad })
	close(stop)
	answered, unanswered, err := wait()
	require.NoError(t, err)
	require.Zero(t, unanswered, "of %d", answered+unanswered)
	come(50)
	refuses(t, 1, old.Ready.Address, p.Command("-addr", old.Ready.Address)) // without -overlap the port is taken

	// Half of these connections wait in the queues of the old one, which sleeps: when it wakes up it has been told to stop.
	old.Pause(t)
	var queued []*client
	for range 100 {
		c := dial(t, old)
		c.send(t, helloRequest)
		queued = append(queued, c)
	}
	old.Signal(t, syscall.SIGTERM)
	old.Resume(t)
	for _, c := range queued {
		answer, err := c.answer(false)
		require.NoError(t, err)
		want := Hello()
		want.Connection = answer.Field("Connection") // it depends on whether the old one had seen the signal
		require.NoError(t, want.Check(answer))
	}
	old.Wait(t)
	// The old one's connections have ended without a word, the young one's live on.
	var left []*client
	for _, c := range append(open, queued...) {
		if err := c.tryHello(); err == nil {
			left = append(left, c)
		} else {
			require.True(t, ended(err), "%v", err)
		}
	}
	t.Logf("%d answers before both ran; then %d of %d connections from the old server", answered, len(open)+len(queued)-len(left), len(open)+len(queued))
	require.NotEmpty(t, left)
	require.Less(t, len(left), len(open)+len(queued))
	young.AwaitConnections(t, uint64(len(left)))
	for range 50 {
		young.expectServed(t)
	}
}

// Servers follow each other, each beside the one before, while clients come without a rest: all of these are answered.
func overlapUnderLoad(t T, p Program) {
	if p.number(t) == 0 {
		return // it refuses -overlap
	}
	// The last has more listeners than the one before it. With fewer, a few connections may be reset.
	all := [][]string{
		{"-workers 2 -acceptor", "-workers 1", "-workers 3", "-workers 4"},
		{"-workers 2", "-workers 2", "-workers 2", "-workers 2"},
	}
	for i, flags := range thorough(all, all[:1]) {
		start := func(address, flags string) *Server {
			return p.Start(t, append(strings.Fields(flags), "-addr", address, "-overlap", "-grace", "20s")...)
		}
		s := start(ownHost(5+i)+":0", flags[0])
		stop := make(chan struct{})
		wait := newcomers(s.Ready.Address, 16, stop)
		load := func() {
			s.Await(t, "some load", func(r harness.Reading) bool { return r.Total.Requests > 2*someLoad })
		}
		load()
		for _, flags := range flags[1:] {
			young := start(s.Ready.Address, flags)
			s.Stop(t)
			s = young
			load()
		}
		close(stop)
		answered, unanswered, err := wait()
		require.NoError(t, err)
		require.Zero(t, unanswered, "of %d", answered+unanswered)
		s.Stop(t)
	}
}
