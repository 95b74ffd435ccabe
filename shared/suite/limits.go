package suite

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func mostConnections(t *testing.T) {
	const most = 4
	s := Start(t, "-max-conns", "4")
	var open []*connection
	for range most {
		c := dial(t, s.Addr)
		c.hello(t)
		open = append(open, c)
	}
	for range 3 {
		c := dial(t, s.Addr)
		c.send(t, helloRequest)
		c.expect(t, Refusal(503))
		c.expectEnd(t)
		c.close()
	}
	for _, c := range open {
		c.hello(t)
	}
	// One goes, and at last another may come.
	open[0].close()
	s.awaitServed(t)
	for _, c := range open[1:] {
		c.hello(t)
	}
}

// awaitServed tries until somebody new is served. Until then a 503 is a good answer.
func (s *Server) awaitServed(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		c, err := connect(s.Addr)
		require.NoError(t, err)
		err = c.tryHello()
		c.close()
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(end), "nobody new is served: %v", err)
		time.Sleep(2 * time.Millisecond)
	}
}

// With 64 descriptors, some fifty connections, or half as many where each has a timer of its own, are
// all there can be.
func descriptorsExhausted(t *testing.T) {
	s := Start(t, "-max-files", "64", "-workers", "2")
	s.Counters(t) // the admin connection is open from here on
	files := s.settledFiles(t)

	var served, waiting []*connection
	refused := 0
	for range 100 {
		c := dial(t, s.Addr)
		c.send(t, helloRequest)
		c.net.SetReadDeadline(time.Now().Add(2 * time.Second))
		answer, err := ReadAnswer(c.reader, false)
		c.net.SetReadDeadline(time.Now().Add(2 * patience))
		switch {
		case err == nil && answer.Status == 200:
			require.NoError(t, Hello().Check(answer))
			served = append(served, c)
		case err == nil:
			require.NoError(t, Refusal(503).Check(answer))
			c.expectEnd(t)
			c.close()
			refused++
		case errors.Is(err, os.ErrDeadlineExceeded):
			waiting = append(waiting, c) // in the kernel's queue
		default:
			require.NoError(t, err, "a connection ended without an answer")
		}
		if refused+len(waiting) >= 10 {
			break
		}
	}
	t.Logf("%d served, %d refused, %d waiting", len(served), refused, len(waiting))
	require.GreaterOrEqual(t, len(served), 15)
	require.Positive(t, refused+len(waiting), "the descriptors are not exhausted")
	for _, c := range served {
		c.hello(t)
	}

	// Full, it rests: under 5% of a CPU, and few turns of its loops.
	before, start := s.Counters(t), time.Now()
	time.Sleep(time.Second)
	after, elapsed := s.Counters(t), time.Since(start)
	used := time.Duration(after.Runtime["cpu_ns"] - before.Runtime["cpu_ns"])
	require.Less(t, used, elapsed/20, "the server spins while it is full")
	turns := float64(after.Total["epoll_waits"]-before.Total["epoll_waits"]) / elapsed.Seconds()
	require.Less(t, turns, 200.0, "the loops spin while the server is full: turns per second")

	// Some go, and others are served at once: those in the queue first.
	for _, c := range served[:8] {
		c.close()
	}
	for _, c := range waiting {
		answer, err := ReadAnswer(c.reader, false)
		require.NoError(t, err)
		require.Contains(t, []int{200, 503}, answer.Status)
		c.close()
	}
	s.awaitServed(t)
	for _, c := range served[8:] {
		c.hello(t)
		c.close()
	}
	s.settled(t, files)
}
