package hostile

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/suite"
)

// dribble sends text a byte at a time until the connection ends.
func (c *client) dribble(text string, every time.Duration) {
	for i := range len(text) {
		if c.send(text[i:i+1]) != nil {
			return
		}
		time.Sleep(every)
	}
}

// Many clients that keep a request alive byte by byte, or leave it unfinished, while others are served.
func dribblers(t *testing.T) {
	const limit = time.Second
	s := suite.Start(t, "-head-timeout", limit.String(), "-body-total-timeout", limit.String(), "-body-timeout", limit.String())
	before := levelAtRest(t, s)
	const upload = "POST /api/echo HTTP/1.1\r\nHost: a\r\n"
	kinds := []struct {
		begin string
		every time.Duration // 0: and then nothing
	}{
		{"GET / HTTP/1.1\r\nHost: a\r\nX: ", 100 * time.Millisecond},
		{"GET /", 100 * time.Millisecond},
		{"\r\nG", 0},
		{upload + "Content-Length: 100000\r\n\r\n", 100 * time.Millisecond},
		{upload + "Transfer-Encoding: chunked\r\n\r\n10000\r\n", 100 * time.Millisecond},
		{upload + "Content-Length: 10\r\n\r\n123456789", 0},
		{upload + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y", 0},
	}
	failures := make([]error, 8*len(kinds))
	var group sync.WaitGroup
	for i := range failures {
		kind := kinds[i%len(kinds)]
		group.Go(func() {
			c, err := connect(s.Addr)
			if err != nil {
				failures[i] = err
				return
			}
			defer c.Close()
			started := time.Now()
			if failures[i] = c.send(kind.begin); failures[i] != nil {
				return
			}
			if kind.every > 0 {
				go c.dribble(strings.Repeat("a", 1000), kind.every)
			}
			if err = c.expect(suite.Refusal(408)); err == nil {
				err = c.end()
			}
			if passed := time.Since(started); err == nil && passed < limit {
				err = fmt.Errorf("closed after %v, and the limit is %v", passed, limit)
			}
			failures[i] = err
		})
	}
	all := make(chan struct{})
	go func() {
		group.Wait()
		close(all)
	}()
	other := dial(t, s)
	for requests := 0; ; requests++ {
		select {
		case <-all:
		default:
			require.NoError(t, other.hello())
			time.Sleep(time.Millisecond) // the machine is the others' too
			continue
		}
		require.Positive(t, requests)
		break
	}
	for i, err := range failures {
		require.NoError(t, err, "%q", kinds[i%len(kinds)].begin)
	}
	other.Close()
	nothingLeft(t, s, before)
}

// heldForStuck is how many bytes a connection may hold whose client does not take a body that nobody changes: buffers, and none
// of the body.
const heldForStuck = 128 << 10

// Clients that ask for 256 MiB each and read nothing: the server keeps no copy of an answer for them, and lets go at the deadline.
func neverRead(t *testing.T) {
	const limit, clients, answer = time.Second, 4, 16 << 20
	s := suite.Start(t, "-write-timeout", limit.String())
	before := levelAtRest(t, s)
	asked := time.Now()
	var open []*client
	for range clients {
		c := dial(t, s)
		require.NoError(t, c.send(strings.Repeat(largest, 16)))
		open = append(open, c)
	}
	for _, c := range open {
		_, err := c.reader.Peek(1)
		require.NoError(t, err)
	}
	served(t, s)
	reading := s.Counters(t)
	require.LessOrEqual(t, reading.Total["held_bytes"], int64(clients*heldForStuck))
	collect(t, s)
	now := s.Counters(t)
	require.LessOrEqual(t, now.Runtime["heap_bytes"], before.heap+clients*heldForStuck+heapSlack)
	s.AwaitConnections(t, 0)
	require.GreaterOrEqual(t, time.Since(asked), limit)
	for _, c := range open {
		n, _ := io.Copy(io.Discard, c.reader)
		require.Less(t, n, int64(16*answer))
	}
	nothingLeft(t, s, before)
}

// awaitStuck waits until so many requests have been answered and nothing moves any more.
func awaitStuck(t testing.TB, s *suite.Server, requests int64) suite.Reading {
	t.Helper()
	// First the requests: a slow machine may need all its patience for them alone.
	s.Await(t, fmt.Sprintf("%d requests", requests), func(r suite.Reading) bool { return r.Total["requests"] >= requests })
	var last [3]int64
	alike := 0
	reading, _ := s.Await(t, "the server to be stuck", func(r suite.Reading) bool {
		// A server looks at a client that is stuck now and then, which is no movement.
		now := [3]int64{r.Total["requests"], r.Total["written_bytes"], r.Total["read_bytes"]}
		alike++
		if now != last {
			last, alike = now, 0
		}
		return alike >= 20
	})
	return reading
}

// What is held for a client that does not read is one copy of a body that its request brought and none of one that stays; and
// what a loop holds for the next answer, when that client has gone, is little.
func heldForStuckClients(t *testing.T) {
	const kept = 72 << 10 // by the loops, at the most
	s := suite.Start(t, "-workers", "1")
	before := levelAtRest(t, s)
	atRest := s.Counters(t)

	c := dial(t, s)
	require.NoError(t, c.send(largest))
	now := awaitStuck(t, s, atRest.Total["requests"]+1)
	require.LessOrEqual(t, now.Total["held_bytes"], atRest.Total["held_bytes"]+heldForStuck)
	c.reset()
	now = s.AwaitConnections(t, 0)
	require.LessOrEqual(t, now.Total["held_bytes"], atRest.Total["held_bytes"]+kept)
	require.Eventually(t, func() bool {
		collect(t, s)
		return s.Counters(t).Runtime["heap_bytes"] <= before.heap+heapSlack
	}, patience, 10*time.Millisecond)

	// More than sockets hold, of which one waits in part.
	const clients, size = 4, 1 << 20
	upload := fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("e", size))
	var sending sync.WaitGroup
	var open []*client
	for range clients {
		c := dial(t, s)
		open = append(open, c)
		sending.Go(func() { c.send(strings.Repeat(upload, 12)) })
	}
	empty := now.Total
	now = awaitStuck(t, s, empty["requests"]+clients)
	answered := now.Total["requests"] - empty["requests"]
	require.Less(t, now.Total["written_bytes"]-empty["written_bytes"], answered*size, "no answer has to wait")
	require.LessOrEqual(t, now.Total["held_bytes"], atRest.Total["held_bytes"]+clients*(size+size/2))
	collect(t, s)
	require.LessOrEqual(t, s.Counters(t).Runtime["heap_bytes"], before.heap+clients*(size+size/2)+heapSlack)
	for _, c := range open {
		c.reset()
	}
	sending.Wait()
	now = s.AwaitConnections(t, 0)
	require.LessOrEqual(t, now.Total["held_bytes"], atRest.Total["held_bytes"]+kept)
	nothingLeft(t, s, before)
}

// A hundred clients that ask for a large answer and do not read cost the server little, and nobody else his service.
func manyNeverRead(t *testing.T) {
	const clients = 100
	s := suite.Start(t, "-grace", "500ms")
	served(t, s)
	start := s.Counters(t)
	for range clients {
		require.NoError(t, dial(t, s).send(largest))
	}
	now := awaitStuck(t, s, start.Total["requests"]+clients)
	served(t, s)
	require.LessOrEqual(t, now.Total["held_bytes"], start.Total["held_bytes"]+clients*heldForStuck)
	require.Less(t, memory(t, s), 400<<20)
	s.Stop(t)
}

// memory is how many bytes of the process are in memory, see proc_pid_status(5).
func memory(t testing.TB, s *suite.Server) (bytes int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID))
	require.NoError(t, err)
	_, line, found := strings.Cut(string(status), "\nVmRSS:")
	require.True(t, found)
	_, err = fmt.Sscanf(line, "%d kB", &bytes)
	require.NoError(t, err)
	return bytes << 10
}

// Clients that read for longer than the deadline, and then no more: each byte that they took has put the end off, and still
// it comes.
func stalledReaders(t *testing.T) {
	const limit = 500 * time.Millisecond
	s := suite.Start(t, "-write-timeout", limit.String())
	before := levelAtRest(t, s)
	for range 2 {
		c := dial(t, s)
		for attempts := 1; ; attempts++ {
			paused, err := c.readSteadily(3*limit, limit/10)
			if err == nil {
				break
			}
			// Only a reader that was kept from running for as long as the deadline may be cut off, and not each time.
			require.GreaterOrEqual(t, paused, limit, "cut off while it was reading: %v", err)
			require.Less(t, attempts, 10, "no reader was left to run: %v", err)
			c = dial(t, s)
		}
	}
	s.AwaitConnections(t, 0)
	nothingLeft(t, s, before)
}

// readSteadily asks for more than it will read, and reads some of it at each interval for so long. It returns the longest
// time that passed without a byte being read.
func (c *client) readSteadily(long, interval time.Duration) (paused time.Duration, err error) {
	if err := c.send(strings.Repeat(largest, 16)); err != nil {
		return 0, err
	}
	part := make([]byte, 64<<10)
	start := time.Now()
	for last := start; last.Sub(start) < long; time.Sleep(interval) {
		for range 32 {
			_, err = io.ReadFull(c.reader, part)
			paused, last = max(paused, time.Since(last)), time.Now()
			if err != nil {
				return paused, err
			}
		}
	}
	return paused, nil
}

// large is a request with an answer of a little more than sockets hold.
const large = "GET /bytes/5000000 HTTP/1.1\r\nHost: a\r\n\r\n"

// requests are what the connections that come and go send, whole or in part.
var requests = []string{
	hello,
	strings.Repeat(hello, 20),
	lastHello,
	large,
	strings.Repeat(large, 3) + hello,
	"\r\n" + hello,
	"HEAD /bytes/70000 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /bytes/70000 HTTP/1.1\r\nHost: a\r\n\r\n" + hello,
	"GET /async-middleware/3 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 9000) + "\r\n\r\n",
	"GET /% HTTP/1.1\r\nHost: a\r\n\r\n" + hello,
	"POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("b", 100),
	"POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("b", 100_000) + hello,
	"POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nabcde",
	"POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n" + strings.Repeat("b", 100_000),
	"POST /api/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n" + hello,
	"POST /api/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n8000\r\n" + strings.Repeat("c", 0x8000) + "\r\n0\r\n\r\n",
}

// Connections that come and go, and end at any point of an exchange in each way there is. At any time some hundred are open.
func churn(t *testing.T) {
	clients, each := 8, 25
	if *churnTime >= 10*time.Second {
		each = 125 // a thousand at a time
	}
	s := suite.Start(t, "-linger-timeout", "200ms")
	before := levelAtRest(t, s)
	seed := seedOf(t)
	end := time.Now().Add(*churnTime)
	var opened, failed atomic.Int64
	var group sync.WaitGroup
	for worker := range clients {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(worker)))
			open := make([]*client, each)
			for time.Now().Before(end) {
				place := &open[random.IntN(each)]
				if *place != nil {
					(*place).drop(random)
				}
				var err error
				if *place, err = connect(s.Addr); err != nil {
					*place = nil
					failed.Add(1)
					continue
				}
				opened.Add(1)
				(*place).act(random)
			}
			for _, c := range open {
				if c != nil {
					c.drop(random)
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d connections, %d attempts that failed", opened.Load(), failed.Load())
	require.Positive(t, opened.Load())
	nothingLeft(t, s, before)
}

// act does something of what clients do, mostly without caring about the answer.
func (c *client) act(random *rand.Rand) {
	// One that neither side gets further with is left alone.
	c.SetDeadline(time.Now().Add(50 * time.Millisecond))
	text := requests[random.IntN(len(requests))]
	if random.IntN(2) == 0 {
		text = text[:random.IntN(len(text)+1)]
	}
	if cut := random.IntN(len(text) + 1); random.IntN(2) == 0 {
		c.send(text[:cut])
		text = text[cut:]
	}
	c.send(text)
	switch random.IntN(4) {
	case 0:
		c.reader.Peek(1)
	case 1:
		io.CopyN(io.Discard, c.reader, int64(random.IntN(1<<random.IntN(22))))
	}
}

// drop ends the connection.
func (c *client) drop(random *rand.Rand) {
	switch random.IntN(4) {
	case 0:
		c.reset()
	case 1:
		c.CloseWrite()
		c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		io.CopyN(io.Discard, c.reader, 100_000)
		c.Close()
	default:
		c.Close()
	}
}
