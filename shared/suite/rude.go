package suite

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Many clients that keep a request alive byte by byte, or leave it unfinished, while others are served.
func dribblers(t T, p Program) {
	const limit = time.Second
	s := p.Start(t, "-head-timeout", limit.String(), "-body-total-timeout", limit.String(), "-body-timeout", limit.String())
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
			c, err := connect(s.Ready.Address)
			if err != nil {
				failures[i] = err
				return
			}
			defer c.Close()
			started := time.Now()
			if failures[i] = c.Send(kind.begin); failures[i] != nil {
				return
			}
			if kind.every > 0 {
				c.drip(strings.Repeat("a", 1000), kind.every)
			}
			if err = c.read(Refusal(408)); err == nil {
				err = c.ReadEnd()
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
			other.hello(t)
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

// keptByLoops is how many bytes a server of one worker may hold for the next answer, whatever the one before was.
const keptByLoops = 72 << 10

// awaitHeap waits until the heap, after a collection, holds no more than that.
func awaitHeap(t T, s *Server, most int64) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s.Collect(t)
		holds := s.Counters(t).Process.HeapBytes
		if holds <= most {
			return
		}
		require.True(t, time.Now().Before(end), "the heap holds %d bytes, %d at most are expected", holds, most)
	}
}

// heldForStuck is how many bytes a connection may hold whose client does not take a body that nobody changes: buffers, and none
// of the body.
const heldForStuck = 128 << 10

// Clients that ask for 256 MiB each and read nothing: the server keeps no copy of an answer for them, and lets go at the deadline.
func neverRead(t T, p Program) {
	const limit, clients, answer = time.Second, 4, 16 << 20
	s := p.Start(t, "-write-timeout", limit.String())
	before := levelAtRest(t, s)
	asked := time.Now()
	var open []*client
	for range clients {
		c := dial(t, s)
		c.send(t, strings.Repeat(largest, 16))
		open = append(open, c)
	}
	for _, c := range open {
		require.NoError(t, c.AwaitFirst())
	}
	s.expectServed(t)
	reading := s.Counters(t)
	require.LessOrEqual(t, reading.Total.HeldBytes, uint64(clients*heldForStuck))
	s.Collect(t)
	now := s.Counters(t)
	require.LessOrEqual(t, now.Process.HeapBytes, before.heap+clients*heldForStuck+heapSlack)
	s.AwaitConnections(t, 0)
	require.GreaterOrEqual(t, time.Since(asked), limit)
	for _, c := range open {
		n, _ := io.Copy(io.Discard, c.Reader)
		require.Less(t, n, int64(16*answer))
	}
	nothingLeft(t, s, before)
}

// sendAgain sends text so many times, or until the connection ends. One string of all of it would
// cost more than to send it.
func (c *client) sendAgain(text string, times int) {
	for range times {
		if c.Send(text) != nil {
			return
		}
	}
}

// awaitStuck waits until so many requests have been answered and nothing moves any more.
func awaitStuck(t T, s *Server, requests uint64) harness.Reading {
	t.Helper()
	// First the requests: a slow machine may need all its patience for them alone.
	s.Await(t, fmt.Sprintf("%d requests", requests), func(r harness.Reading) bool { return r.Total.Requests >= requests })
	var last [3]uint64
	alike := 0
	reading := s.Await(t, "the server to be stuck", func(r harness.Reading) bool {
		// A server looks at a client that is stuck now and then, which is no movement.
		now := [3]uint64{r.Total.Requests, r.Total.WrittenBytes, r.Total.ReadBytes}
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
func heldForStuckClients(t T, p Program) {
	s := p.Start(t, "-workers", "1", "-write-timeout", "1h")
	before := levelAtRest(t, s)
	atRest := s.Counters(t)

	c := dial(t, s)
	c.send(t, largest)
	now := awaitStuck(t, s, atRest.Total.Requests+1)
	require.LessOrEqual(t, now.Total.HeldBytes, atRest.Total.HeldBytes+heldForStuck)
	c.Reset()
	now = s.AwaitConnections(t, 0)
	require.LessOrEqual(t, now.Total.HeldBytes, atRest.Total.HeldBytes+keptByLoops)
	awaitHeap(t, s, before.heap+heapSlack)

	// More than sockets hold, of which one waits in part.
	const clients, size = 4, 1 << 20
	upload := fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("e", size))
	var sending sync.WaitGroup
	var open []*client
	for range clients {
		c := dial(t, s)
		open = append(open, c)
		sending.Go(func() { c.sendAgain(upload, 12) })
	}
	empty := now.Total
	now = awaitStuck(t, s, empty.Requests+clients)
	answered := now.Total.Requests - empty.Requests
	require.Less(t, now.Total.WrittenBytes-empty.WrittenBytes, answered*size, "no answer has to wait")
	require.LessOrEqual(t, now.Total.HeldBytes, atRest.Total.HeldBytes+clients*(size+size/2))
	s.Collect(t)
	require.LessOrEqual(t, s.Counters(t).Process.HeapBytes, before.heap+clients*(size+size/2)+heapSlack)
	for _, c := range open {
		c.Reset()
	}
	sending.Wait()
	now = s.AwaitConnections(t, 0)
	require.LessOrEqual(t, now.Total.HeldBytes, atRest.Total.HeldBytes+keptByLoops)
	nothingLeft(t, s, before)
}

// A large upload is the collector's once it has been answered, though its connection stays open and no other request takes its
// place in what a loop uses again and again.
func largeUploadLetGo(t T, p Program) {
	const size = 3 * heapSlack / 2
	s := p.Start(t, "-workers", "1", "-max-body", fmt.Sprint(size), "-body-timeout", "1h", "-write-timeout", "1h")
	before := levelAtRest(t, s)
	held := s.Counters(t).Total.HeldBytes
	c := dial(t, s)
	c.Timeout = 3 * patience // for a lot of bytes
	body := strings.Repeat("0123456789abcdef", size/16)
	require.NoError(t, exchangeOn(c, append(fmt.Appendf(nil, "POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", size), body...), echoed(body)))
	s.Await(t, "the buffers to be given back", func(r harness.Reading) bool { return r.Total.HeldBytes <= held+keptByLoops })
	awaitHeap(t, s, before.heap+heapSlack)
	c.hello(t)
	c.Close()
	nothingLeft(t, s, before)
}

// A hundred clients that ask for a large answer and do not read cost the server little, and nobody else his service.
func manyNeverRead(t T, p Program) {
	const clients = 100
	s := p.Start(t, "-grace", "500ms", "-write-timeout", "1h")
	s.expectServed(t)
	start := s.Counters(t)
	for range clients {
		require.NoError(t, dial(t, s).Send(largest))
	}
	now := awaitStuck(t, s, start.Total.Requests+clients)
	s.expectServed(t)
	require.LessOrEqual(t, now.Total.HeldBytes, start.Total.HeldBytes+clients*heldForStuck)
	require.Less(t, memory(t, s), 400<<20)
	s.Stop(t)
}

// memory is how many bytes of the process are in memory, see proc_pid_status(5).
func memory(t T, s *Server) (bytes int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Ready.PID))
	require.NoError(t, err)
	_, line, found := strings.Cut(string(status), "\nVmRSS:")
	require.True(t, found)
	_, err = fmt.Sscanf(line, "%d kB", &bytes)
	require.NoError(t, err)
	return bytes << 10
}

// Clients that read for longer than the deadline, and then no more: each byte that they took has put the end off, and still
// it comes.
func stalledReaders(t T, p Program) {
	const limit = 500 * time.Millisecond
	s := p.Start(t, "-write-timeout", limit.String())
	before := levelAtRest(t, s)
	for range thorough(2, 1) {
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
	if err := c.Send(strings.Repeat(largest, 16)); err != nil {
		return 0, err
	}
	part := make([]byte, 64<<10)
	start := time.Now()
	for last := start; last.Sub(start) < long; time.Sleep(interval) {
		for range 32 {
			_, err = io.ReadFull(c.Reader, part)
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
var requests = sync.OnceValue(func() []string {
	return []string{
		helloRequest,
		strings.Repeat(helloRequest, 20),
		lastHello,
		large,
		strings.Repeat(large, 3) + helloRequest,
		"\r\n" + helloRequest,
		"HEAD /bytes/70000 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /bytes/70000 HTTP/1.1\r\nHost: a\r\n\r\n" + helloRequest,
		"GET /async-middleware/3 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 9000) + "\r\n\r\n",
		"GET /% HTTP/1.1\r\nHost: a\r\n\r\n" + helloRequest,
		"POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("b", 100),
		"POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("b", 100_000) + helloRequest,
		"POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nabcde",
		"POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n" + strings.Repeat("b", 100_000),
		"POST /api/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n" + helloRequest,
		"POST /api/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n8000\r\n" + strings.Repeat("c", 0x8000) + "\r\n0\r\n\r\n",
	}
})

// Connections that come and go, and end at any point of an exchange in each way there is. At any time some hundred are open.
func churn(t T, p Program) {
	clients, each := 8, 25
	if churnTime >= 10*time.Second {
		each = 125 // a thousand at a time
	}
	s := p.Start(t, "-linger-timeout", "200ms")
	before := levelAtRest(t, s)
	seed := drawSeed(t)
	end := time.Now().Add(churnTime)
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
				if *place, err = connect(s.Ready.Address); err != nil {
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
	c.Timeout = 50 * time.Millisecond
	c.TCP.SetDeadline(time.Now().Add(c.Timeout))
	text := oneOf(random, requests())
	if random.IntN(2) == 0 {
		text = text[:random.IntN(len(text)+1)]
	}
	if cut := random.IntN(len(text) + 1); random.IntN(2) == 0 {
		c.Send(text[:cut])
		text = text[cut:]
	}
	c.Send(text)
	switch random.IntN(4) {
	case 0:
		c.Reader.Peek(1)
	case 1:
		io.CopyN(io.Discard, c.Reader, int64(random.IntN(1<<random.IntN(22))))
	}
}

// drop ends the connection.
func (c *client) drop(random *rand.Rand) {
	switch random.IntN(4) {
	case 0:
		c.Reset()
	case 1:
		c.CloseWrite()
		c.TCP.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		io.CopyN(io.Discard, c.Reader, 100_000)
		c.Close()
	default:
		c.Close()
	}
}
