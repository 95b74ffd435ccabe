package hostile

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/suite"
)

// step is one exchange of a client that behaves: what it sends and all that must come back.
type step struct {
	send    string
	answers []suite.Expected
}

var echoed = strings.Repeat("0123456789abcdef", 1<<12)

var steps = []step{
	{hello, []suite.Expected{suite.Hello()}},
	{strings.Repeat(hello, 16), repeat(suite.Hello(), 16)},
	{"GET /users/7 HTTP/1.1\r\nHost: a\r\n\r\n", []suite.Expected{{Status: 200, Type: "application/json", Body: `{"id":"7"}`}}},
	{"GET /bytes/65536 HTTP/1.1\r\nHost: a\r\n\r\n", []suite.Expected{someBytes(65536)}},
	{"HEAD /bytes/65536 HTTP/1.1\r\nHost: a\r\n\r\n" + hello, []suite.Expected{
		{Status: 200, Bodiless: true, Type: "application/octet-stream", Length: 65536}, suite.Hello()}},
	{"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", []suite.Expected{{Status: 404, Type: suite.PlainText, Body: "404 Not Found\n"}}},
	{fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(echoed), echoed),
		[]suite.Expected{{Status: 200, Type: "application/octet-stream", Body: echoed}}},
	{fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", 1000, echoed[:1000]) + hello,
		[]suite.Expected{{Status: 200, Type: "application/octet-stream", Body: echoed[:1000]}, suite.Hello()}},
}

func repeat(e suite.Expected, n int) (all []suite.Expected) {
	for range n {
		all = append(all, e)
	}
	return all
}

func (c *client) take(s step) error {
	if err := c.send(s.send); err != nil {
		return err
	}
	for _, want := range s.answers {
		if err := c.expect(want); err != nil {
			return err
		}
	}
	return nil
}

// visit opens a connection, makes up to that many exchanges, and ends it in one of the ways that are in order.
func visit(s *suite.Server, random *rand.Rand, exchanges int) error {
	c, err := connect(s.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for range 1 + random.IntN(exchanges) {
		if err := c.take(steps[random.IntN(len(steps))]); err != nil {
			return err
		}
	}
	switch random.IntN(3) {
	case 0:
		if err := c.take(step{lastHello, []suite.Expected{closing(suite.Hello())}}); err != nil {
			return err
		}
		return c.end()
	case 1:
		if err := c.CloseWrite(); err != nil {
			return err
		}
		return c.end()
	}
	return nil
}

// Full load, connections that come and go: every answer is right, and memory stays as it is.
func soak(t *testing.T) {
	s := suite.Start(t)
	before := levelAtRest(t, s)
	seed := seedOf(t)
	end := time.Now().Add(*soakTime)
	var first atomic.Pointer[error]
	var visits atomic.Int64
	var worker uint64 // counted over all parts
	run := func(until time.Time) {
		var group sync.WaitGroup
		for range 8 {
			worker++
			random := rand.New(rand.NewPCG(seed, worker))
			group.Go(func() {
				for time.Now().Before(until) && first.Load() == nil {
					if err := visit(s, random, 30); err != nil {
						first.CompareAndSwap(nil, &err)
					}
					visits.Add(1)
				}
			})
		}
		group.Wait()
		if err := first.Load(); err != nil {
			require.NoError(t, *err)
		}
		nothingLeft(t, s, before)
	}
	// The level after the first part is what all later parts must come back to.
	run(time.Now().Add(*soakTime / 10))
	var err error
	before, err = levelNow(t, s)
	require.NoError(t, err)
	for part := max(*soakTime/5, time.Second/2); time.Now().Before(end); {
		run(time.Now().Add(part))
	}
	after, err := levelNow(t, s)
	require.NoError(t, err)
	reading := s.Counters(t)
	t.Logf("%d connections, %d requests; the heap held %d KiB and holds %d KiB", visits.Load(), reading.Total["requests"], before.heap>>10, after.heap>>10)
}

// As many connections as there may be at a time, each answered, twice.
func manyConnections(t *testing.T) {
	if *connections == 0 {
		t.Skip("without -connections")
	}
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	// A connection takes two descriptors of the server, the second one for its timer.
	n := min(*connections, int(min(limit.Max, 1<<20)-500)/2)
	t.Logf("%d connections (the limit of open files is %d)", n, limit.Max)
	s := suite.Start(t)
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
		open[i], err = connect(s.Addr)
		if err != nil {
			return err
		}
		open[i].SetDeadline(time.Time{})
		return open[i].hello()
	})
	reading := s.AwaitConnections(t, int64(n))
	all(func(i int) error { return open[i].hello() })
	t.Logf("at rest a connection holds %d bytes of buffers", s.Counters(t).Total["held_bytes"]/int64(n))
	require.EqualValues(t, n, reading.Total["connections"])
	all(func(i int) error { return open[i].Close() })
	before.heap += int64(n) * 1024 // tables that grow and do not shrink
	nothingLeft(t, s, before)
}
