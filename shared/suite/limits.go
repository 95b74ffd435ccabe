package suite

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func mostConnections(t T, p Program) {
	const most = 4
	s := p.Start(t, "-max-conns", "4")
	var open []*client
	for range most {
		c := dial(t, s)
		c.hello(t)
		open = append(open, c)
	}
	for range 3 {
		c := dial(t, s)
		c.send(t, helloRequest)
		c.expect(t, Refusal(503))
		c.expectEnd(t)
		c.Close()
	}
	for _, c := range open {
		c.hello(t)
	}
	// One goes, and at last another may come.
	open[0].Close()
	s.awaitServed(t)
	for _, c := range open[1:] {
		c.hello(t)
	}
}

// awaitServed tries until somebody new is served. Until then a 503 is a good answer.
func (s *Server) awaitServed(t T) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		c, err := connect(s.Ready.Address)
		require.NoError(t, err)
		err = c.tryHello()
		c.Close()
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(end), "nobody new is served: %v", err)
		time.Sleep(2 * time.Millisecond)
	}
}

// More clients come than there are descriptors for, and they stay: some fifty connections, or half as
// many where each has a timer of its own, are all there can be.
func descriptorsExhausted(t T, p Program) {
	for _, flags := range []string{"-max-files 64 -workers 2", "-max-files 65 -workers 1", "-max-files 64 -workers 2 -acceptor"} {
		t.Run(flags, func(t T) {
			t.Parallel()
			exhaust(t, p, strings.Fields(flags), flags == "-max-files 64 -workers 2")
		})
	}
}

// exhaust: those that are served are served on; of the others, some are told that there is no room, and
// the rest waits in the kernel's queue. The server does not spin, and when some go, others are served.
// queues says that there is more than one queue: the first without room may have to wait too.
func exhaust(t T, p Program, flags []string, queues bool) {
	s := p.Start(t, append(flags, "-linger-timeout", "100ms")...)
	s.Counters(t) // the admin connection is open from here on
	files := s.settledFiles(t)
	var served, refused, waiting []*client
	for len(refused)+len(waiting) < 60 {
		c := dial(t, s)
		c.send(t, helloRequest)
		if len(refused)+len(waiting) > 0 {
			waiting = append(waiting, c) // whether it waits or is told will show
			continue
		}
		if queues {
			c.Timeout = 2 * time.Second
		}
		answer, err := c.answer(false)
		c.Timeout = patience
		switch {
		case queues && harness.TimedOut(err):
			waiting = append(waiting, c)
			continue
		case err == nil && answer.Status == 200:
			require.NoError(t, Hello().Check(answer))
			served = append(served, c)
			continue
		}
		require.NoError(t, err, "the first that finds no room has an answer, as all before it")
		require.NoError(t, Refusal(503).Check(answer))
		c.expectEnd(t)
		refused = append(refused, c)
	}
	t.Logf("%d served, and then none", len(served))
	require.GreaterOrEqual(t, len(served), 15)
	for _, c := range served {
		c.hello(t)
	}

	// Processor time, not speed: so much of a period at most, whatever else the machine does. It is full all the while;
	// those that were told so are gone after the linger time. A server that spins does so in each of some periods; a
	// busy machine makes one that does not look so in one of them.
	load, turns := 1.0, math.Inf(1)
	for range 3 {
		before, start := s.Counters(t), time.Now()
		time.Sleep(300 * time.Millisecond)
		spent, passed := s.Counters(t).Sub(before), time.Since(start)
		load = min(load, float64(spent.Process.CPUNanos)/float64(passed))
		turns = min(turns, float64(spent.Total.EpollWaits+spent.Total.Enters)/passed.Seconds())
	}
	t.Logf("full, it used %.3f of a CPU, and had %.0f turns in a second", load, turns)
	require.Less(t, load, 0.2, "the server spins while it is full: CPUs") // one that does takes all of one
	require.Less(t, turns, 200.0, "the loops spin while the server is full: turns in a second")

	// Some go, and others are served at once: those in the queue first. Then all go that were served. Each
	// that waits has an answer then: it is served, or was told that there is no room.
	// More come before that, as all who came earlier may have been told meanwhile.
	for range 40 {
		c := dial(t, s)
		c.send(t, helloRequest)
		waiting = append(waiting, c)
	}
	for _, c := range served[:8] {
		c.Close()
	}
	first, err := waiting[0].answer(false)
	require.NoError(t, err)
	require.Contains(t, []int{200, 503}, first.Status)
	waiting[0].Close()
	for _, c := range served[8:] {
		c.hello(t)
		c.Close()
	}
	room := 0
	for _, c := range waiting[1:] {
		answer, err := c.answer(false)
		require.NoError(t, err)
		if answer.Status == 200 {
			require.NoError(t, Hello().Check(answer))
			room++
		} else {
			require.NoError(t, Refusal(503).Check(answer))
			c.expectEnd(t)
		}
		c.Close()
	}
	t.Logf("of those that waited %d were served, %d told", room, len(waiting)-1-room)
	require.Positive(t, room)
	s.awaitServed(t)
	s.settled(t, files)
}

// As many connections as -connections says, each answered, three times.
func manyConnections(t T, p Program) {
	needsFiles(t, 1500)
	// A connection takes two descriptors of the server, the second one for its timer.
	n := min(connections, int(min(fileLimit(), 1<<20)-500)/2)
	t.Logf("%d connections (the limit of open files is %d)", n, fileLimit())
	s := p.Start(t)
	before := levelAtRest(t, s)
	open := make([]*client, n)
	failures := make([]error, n)
	all := func(do func(i int) error) {
		t.Helper()
		var next atomic.Int64
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
					failures[i] = do(i)
				}
			})
		}
		group.Wait()
		for i, err := range failures {
			require.NoError(t, err, "connection %d", i)
		}
	}
	all(func(i int) (err error) {
		if open[i], err = connect(s.Ready.Address); err != nil {
			return err
		}
		t.Cleanup(func() { open[i].Close() })
		return open[i].tryHello()
	})
	s.AwaitConnections(t, uint64(n))
	for range 2 {
		all(func(i int) error { return open[i].tryHello() })
	}
	held := s.AwaitConnections(t, uint64(n)).Total.HeldBytes
	t.Logf("at rest a connection holds %d bytes of buffers", held/uint64(n))
	all(func(i int) error { return open[i].Close() })
	before.heap += int64(n) * 1024 // tables that grow and do not shrink
	nothingLeft(t, s, before)
}

// needsFiles skips a test that needs more descriptors than this process may have.
func needsFiles(t T, n uint64) {
	t.Helper()
	if limit := fileLimit(); limit < n {
		t.Skipf("%d open files are not enough (ulimit -Hn)", limit)
	}
}
