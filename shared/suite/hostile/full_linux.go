package hostile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/suite"
)

func exhausted(t *testing.T) { exhaust(t, "-max-files", "65", "-workers", "1") }
func exhaustedWithAcceptor(t *testing.T) {
	exhaust(t, "-max-files", "64", "-workers", "2", "-acceptor")
}

// More clients come than there are descriptors for, and they stay. Those that are served are served on; of the others, some are told
// that there is no room, and the rest waits in the kernel's queue. The server does not spin, and when some go,
// others are served.
func exhaust(t *testing.T, flags ...string) {
	s := suite.Start(t, append(flags, "-linger-timeout", "100ms")...)
	s.Counters(t) // the admin connection is open from here on
	var served, refused, waiting []*client
	for len(refused)+len(waiting) < 60 {
		c := dial(t, s)
		require.NoError(t, c.send(hello))
		if len(refused) > 0 {
			waiting = append(waiting, c) // whether it waits or is told will show
			continue
		}
		answer, err := suite.ReadAnswer(c.reader, false)
		require.NoError(t, err, "the first that finds no room has an answer, as all before it")
		if answer.Status == 200 {
			served = append(served, c)
			continue
		}
		require.NoError(t, suite.Refusal(503).Check(answer))
		require.NoError(t, c.end())
		refused = append(refused, c)
	}
	t.Logf("%d served, and then none", len(served))
	require.GreaterOrEqual(t, len(served), 15)
	for _, c := range served {
		require.NoError(t, c.hello())
	}

	// Processor time, not speed: so much of a second at most, whatever else the machine does. It is full
	// all the while; those that were told so are gone after the linger time.
	before, start := s.Counters(t), time.Now()
	time.Sleep(time.Second)
	after, passed := s.Counters(t), time.Since(start)
	used := time.Duration(after.Runtime["cpu_ns"] - before.Runtime["cpu_ns"])
	t.Logf("full, it used %v of %v", used, passed)
	require.Less(t, used, passed/20, "the server spins")
	for _, c := range served {
		require.NoError(t, c.hello())
	}

	// All that were served leave. Each that waits has an answer then: it is served, or was told that there is no room.
	for _, c := range served {
		c.Close()
	}
	room := 0
	for _, c := range waiting {
		answer, err := suite.ReadAnswer(c.reader, false)
		require.NoError(t, err)
		if answer.Status == 200 {
			require.NoError(t, suite.Hello().Check(answer))
			room++
		} else {
			require.NoError(t, suite.Refusal(503).Check(answer))
			require.NoError(t, c.end())
		}
		c.Close()
	}
	require.Positive(t, room)
	s.AwaitConnections(t, 0)
	require.Zero(t, s.Counters(t).Total["held_bytes"])
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		c, err := connect(s.Addr)
		require.NoError(t, err)
		err = c.hello()
		c.Close()
		if err == nil {
			break
		}
		require.True(t, time.Now().Before(end), "nobody is served again: %v", err)
	}
}
