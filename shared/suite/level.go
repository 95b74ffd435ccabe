package suite

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// heapSlack is by how much the heap may differ between two moments at rest: pools, maps and caches of the runtime, and
// the pattern behind /bytes/ if that was asked for in between.
const heapSlack = 8 << 20

// level is what a server holds.
type level struct {
	files, goroutines, heap int64
}

// levelAtRest is the level without connections, once everything that is opened or made only once is there.
func levelAtRest(t T, s *Server) level {
	t.Helper()
	c := dial(t, s)
	lines := []string{"GET /", "HEAD /bytes/16777216", "GET /async-middleware/3", "GET /users/1", "GET /nowhere"}
	const rest = " HTTP/1.1\r\nHost: a\r\n\r\n"
	c.send(t, strings.Join(lines, rest)+rest)
	for _, line := range lines {
		_, err := c.answer(strings.HasPrefix(line, "HEAD"))
		require.NoError(t, err)
	}
	c.Close()
	s.AwaitConnections(t, 0)
	s.Counters(t) // from here on the admin connection is open
	return levelNow(t, s)
}

func levelNow(t T, s *Server) level {
	t.Helper()
	s.Collect(t)
	process := s.Counters(t).Process
	return level{int64(s.files(t)), process.Goroutines, process.HeapBytes}
}

// nothingLeft requires that the server serves, and comes back to the level that it had.
func nothingLeft(t T, s *Server, before level) {
	t.Helper()
	// A busy machine may keep the client waiting, between its connection and its request, for longer than a short idle timeout.
	err := s.tryServed()
	for again := 0; again < mostAttempts && ended(err); again++ {
		t.Logf("once more: %v", err)
		err = s.tryServed()
	}
	require.NoError(t, err)
	reading := s.AwaitConnections(t, 0)
	require.Zero(t, reading.Total.HeldBytes, "bytes are held, but there is no connection")
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		now := levelNow(t, s)
		if now.files <= before.files && now.goroutines <= before.goroutines && now.heap <= before.heap+heapSlack {
			return
		}
		require.True(t, time.Now().Before(end), "the server holds %+v, and before %+v", now, before)
	}
}
