package hostile

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/suite"
)

// refusedAtATime is how many connections that are too many an acceptor holds at most; then the oldest makes room.
const refusedAtATime = 64

// crowd is how many come: far more than may.
const crowd = 1000

// Many more clients come than may, and say nothing. They cost a bounded number of descriptors, and no timer; those that are
// admitted are served; and a client that is refused and speaks is told.
func crowded(t *testing.T) {
	for _, flags := range [][]string{{"-workers", "2"}, {"-workers", "2", "-acceptor"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) { crowdedWith(t, flags) })
	}
}

func crowdedWith(t *testing.T, flags []string) {
	const admitted, workers, slack = 10, 2, 8
	skipWithoutFiles(t, 3*crowd)
	s := suite.Start(t, append(flags, "-max-conns", fmt.Sprint(admitted), "-linger-timeout", "1h")...)
	before := levelAtRest(t, s)
	var inside []*client
	for range admitted {
		c := dial(t, s)
		require.NoError(t, c.hello())
		inside = append(inside, c)
	}
	full := s.Counters(t).Total
	// A connection takes a socket, and a timer; one that is refused a socket.
	most := int(before.files) + 2*admitted + workers*refusedAtATime + slack
	outside := make([]*client, crowd)
	for i := range outside {
		outside[i] = dial(t, s)
		if i%50 == 0 {
			require.LessOrEqual(t, files(t, s), most, "after %d more", i)
			require.NoError(t, inside[i/50%admitted].hello())
		}
	}
	s.Await(t, "all to be accepted", func(r suite.Reading) bool {
		return r.Total["accepts"]-r.Total["accept_agains"] >= full["accepts"]-full["accept_agains"]+crowd
	})
	require.LessOrEqual(t, files(t, s), most)
	require.LessOrEqual(t, s.Counters(t).Total["timerfd_creates"], full["timerfd_creates"]+workers, "timers for clients that are refused")
	for _, c := range inside {
		require.NoError(t, c.hello())
	}

	// Some had to go: the oldest. The newest are still listened to, and told when they speak.
	require.True(t, outside[0].hasEnded(), "the oldest is still there")
	for i, request := range []string{hello, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "G", "POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", hello + hello} {
		c := outside[crowd-1-i]
		require.NoError(t, c.send(request))
		want := suite.Refusal(503)
		want.Bodiless = i == 1
		require.NoError(t, c.expect(want), "%q", request)
		require.NoError(t, c.end(), "%q", request)
	}
	for _, c := range outside {
		c.Close()
	}
	s.AwaitConnections(t, admitted)
	for _, c := range inside {
		require.NoError(t, c.hello())
		c.Close()
	}
	s.AwaitConnections(t, 0)
	nothingLeft(t, s, before)
}

// hasEnded waits for what the client of a connection that made room sees: an answer or none, and the end, in order or not.
func (c *client) hasEnded() bool {
	answer, err := suite.ReadAnswer(c.reader, false)
	if err == nil {
		if suite.Refusal(503).Check(answer) != nil {
			return false
		}
		err = c.end()
	}
	return err == nil || gone(err)
}

// Refused clients that say nothing are told at last, and are gone soon after, all of them, though they stay; and the server then has
// as much room for others as before.
func refusedInSilence(t *testing.T) {
	const limit = 300 * time.Millisecond
	s := suite.Start(t, "-max-conns", "1", "-linger-timeout", limit.String())
	before := levelAtRest(t, s)
	inside := dial(t, s)
	require.NoError(t, inside.hello())
	for range 3 {
		started := time.Now()
		var outside []*client
		for range refusedAtATime / 4 {
			outside = append(outside, dial(t, s))
		}
		for _, c := range outside {
			require.NoError(t, c.expect(suite.Refusal(503)))
			require.NoError(t, c.end())
			require.GreaterOrEqual(t, time.Since(started), limit)
		}
		s.AwaitConnections(t, 1)
		for _, c := range outside {
			c.Close()
		}
		require.NoError(t, inside.hello())
	}
	inside.Close()
	s.AwaitConnections(t, 0)
	nothingLeft(t, s, before)
}

// net/http's client, whose connections come and go, is told each time while a crowd waits.
func refusedInACrowd(t *testing.T) {
	skipWithoutFiles(t, 3*crowd)
	s := suite.Start(t, "-max-conns", "1", "-workers", "1", "-linger-timeout", "1h")
	before := levelAtRest(t, s)
	inside := dial(t, s)
	require.NoError(t, inside.hello())
	for range 2 * refusedAtATime {
		dial(t, s)
	}
	c := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 50 {
		answer, err := c.Get("http://" + s.Addr + "/")
		require.NoError(t, err)
		answer.Body.Close()
		require.Equal(t, 503, answer.StatusCode)
		require.True(t, answer.Close)
	}
	require.NoError(t, inside.hello())
	require.LessOrEqual(t, files(t, s), int(before.files)+2+refusedAtATime+8)
}

// files is how many descriptors the server has open.
func files(t testing.TB, s *suite.Server) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID))
	require.NoError(t, err)
	return len(entries)
}

// skipWithoutFiles skips a test that needs more descriptors than this process may have.
func skipWithoutFiles(t testing.TB, n uint64) {
	t.Helper()
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if limit.Max < n {
		t.Skipf("%d open files are not enough (ulimit -Hn)", limit.Max)
	}
}
