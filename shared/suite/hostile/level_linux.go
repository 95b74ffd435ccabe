package hostile

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/suite"
)

// heapSlack is by how much the heap may differ between two moments at rest: pools, maps and caches of the runtime, and
// the pattern behind /bytes/ if that was asked for in between.
const heapSlack = 8 << 20

// level is what a server holds.
type level struct {
	files, goroutines, heap int64
}

// levelAtRest is the level without connections, once everything that is opened or made only once is there.
func levelAtRest(t testing.TB, s *suite.Server) level {
	t.Helper()
	c := dial(t, s)
	lines := []string{"GET /", "HEAD /bytes/16777216", "GET /async-middleware/3", "GET /users/1", "GET /nowhere"}
	const rest = " HTTP/1.1\r\nHost: a\r\n\r\n"
	require.NoError(t, c.send(strings.Join(lines, rest)+rest))
	for _, line := range lines {
		_, err := suite.ReadAnswer(c.reader, strings.HasPrefix(line, "HEAD"))
		require.NoError(t, err)
	}
	c.Close()
	s.AwaitConnections(t, 0)
	s.Counters(t) // from here on the admin connection is open
	l, err := levelNow(t, s)
	require.NoError(t, err)
	return l
}

func levelNow(t testing.TB, s *suite.Server) (level, error) {
	t.Helper()
	collect(t, s)
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID))
	runtime := s.Counters(t).Runtime
	return level{int64(len(entries)), runtime["goroutines"], runtime["heap_bytes"]}, err
}

// collect makes the server's garbage collector run.
func collect(t testing.TB, s *suite.Server) {
	t.Helper()
	c := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := c.Get("http://" + s.AdminAddr + "/debug/pprof/heap?gc=1")
	require.NoError(t, err)
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(t, err)
}

// nothingLeft requires that the server serves, and comes back to the level that it had.
func nothingLeft(t testing.TB, s *suite.Server, before level) {
	t.Helper()
	served(t, s)
	reading := s.AwaitConnections(t, 0)
	require.Zero(t, reading.Total["held_bytes"], "bytes are held, but there is no connection")
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		now, err := levelNow(t, s)
		require.NoError(t, err)
		if now.files <= before.files && now.goroutines <= before.goroutines && now.heap <= before.heap+heapSlack {
			return
		}
		require.True(t, time.Now().Before(end), "the server holds %+v, and before %+v", now, before)
	}
}
