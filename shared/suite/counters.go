package suite

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Expectation is what a stage promises of one counter: a number per request, or per whatever the row counts by.
type Expectation struct {
	least, most float64
	given       bool
}

// Exactly is the number n and no other.
func Exactly(n float64) Expectation { return Expectation{least: n, most: n, given: true} }

// AtLeast is n or more.
func AtLeast(n float64) Expectation { return Expectation{least: n, most: math.Inf(1), given: true} }

// AtMost is n or less.
func AtMost(n float64) Expectation { return Expectation{most: n, given: true} }

func (e Expectation) String() string {
	switch {
	case e.least == e.most:
		return fmt.Sprintf("exactly %g", e.least)
	case math.IsInf(e.most, 1):
		return fmt.Sprintf("at least %g", e.least)
	}
	return fmt.Sprintf("at most %g", e.most)
}

// Promises is what a stage says that it costs, in the steady state of a connection that lives on. Every
// field must be given.
type Promises struct {
	// Handoffs, TimerSettimes, EpollCtls and Reads hold for GET /, with a bare head and with one of
	// 800 bytes, for GET /api/status and for an echo. Handoffs is how often a request crosses from one thread to another.
	Handoffs Expectation
	// TimerSettimes is timerfd_settime(2) calls per request.
	TimerSettimes Expectation
	// EpollCtls is epoll_ctl(2) calls per request.
	EpollCtls Expectation
	// Reads is reads of the socket per request.
	Reads Expectation
	// HeapObjects is heap objects allocated per request, for the same requests and for pipelined ones;
	// HeapObjectsForBody that for GET /bytes/65536.
	HeapObjects, HeapObjectsForBody Expectation
	// WritesFor16 is writes to the socket for 16 pipelined requests.
	WritesFor16 Expectation
	// BodyBytesCopied is bytes of body copied in user space for GET /bytes/65536.
	BodyBytesCopied Expectation
	// IdleBytes is bytes of buffer that a connection holds between requests.
	IdleBytes Expectation
}

// countedRequests is how many requests each row is measured over; fewer under the race detector, which
// does not change any of them.
func countedRequests() int {
	if raceEnabled {
		return 1600
	}
	return thorough(10_000, 1600)
}

const (
	// countedConnections is how many connections share them.
	countedConnections = 4
	// idleConnections is over how many connections at rest their buffers are measured.
	idleConnections = 100
	// heapNoise is how many objects per request the runtime and the reading itself may allocate where
	// a stage promises none: one in a hundred requests.
	heapNoise = 0.01
)

// browserRequest is what a browser sends: 14 fields, 800 bytes.
var browserRequest = func() string {
	head := "GET / HTTP/1.1\r\n" +
		"Host: www.example.com\r\n" +
		"Connection: keep-alive\r\n" +
		"Cache-Control: max-age=0\r\n" +
		"sec-ch-ua: \"Chromium\";v=\"126\", \"Not/A)Brand\";v=\"8\"\r\n" +
		"sec-ch-ua-mobile: ?0\r\n" +
		"sec-ch-ua-platform: \"Linux\"\r\n" +
		"Upgrade-Insecure-Requests: 1\r\n" +
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36\r\n" +
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n" +
		"Sec-Fetch-Site: same-origin\r\n" +
		"Sec-Fetch-Mode: navigate\r\n" +
		"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
		"Accept-Language: en-GB,en;q=0.9,de;q=0.8,fr;q=0.7\r\n" +
		"Cookie: session=3f9a7c5e1b2d4f6a8c0e; theme=dark; consent="
	const end = "\r\n\r\n"
	return head + strings.Repeat("y", 800-len(head)-len(end)) + end
}()

// workload is requests that are sent in one segment, and answered before the next are sent.
type workload struct {
	name    string
	request string
	batch   int // requests in it
	answer  Expected
}

var (
	hello     = workload{"GET /", helloRequest, 1, Hello()}
	browser   = workload{"GET / from a browser", browserRequest, 1, Hello()}
	pipelined = workload{"16 pipelined GET /", strings.Repeat(helloRequest, 16), 16, Hello()}
	status    = workload{"GET /api/status", "GET /api/status HTTP/1.1\r\nHost: a\r\n\r\n", 1,
		Expected{Status: 200, Type: "application/json", Body: `{"status":"ok"}`}}
	echo = workload{"POST /api/echo", "POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 1, echoed("abc")}
	body = workload{"GET /bytes/65536", "GET /bytes/65536 HTTP/1.1\r\nHost: a\r\n\r\n", 1, someBytes(65536)}
)

// steady keeps the timers of idle connections out of the count: the requests may take longer than a minute.
var steady = []string{"-idle-timeout", "1h"}

// Counters measures what the stage costs and holds it to its promises. The server is another process; a figure
// is the difference of two readings over thousands of requests, less that of two readings over none.
func Counters(test *testing.T, promised Promises) {
	test.Parallel()
	t, p := ofTest(test)
	s := p.Start(t, steady...)
	check := func(row string, promise Expectation, value, tolerance float64) {
		t.Helper()
		require.True(t, promise.given, "the stage promises nothing about %s", row)
		t.Logf("%-55s %10.4f, promised %s", row, value, promise)
		if value < promise.least-tolerance || value > promise.most+tolerance {
			t.Errorf("%s: %g, promised %s", row, value, promise)
		}
	}
	for _, w := range []workload{hello, browser, status, echo, body, pipelined} {
		cost, objects := s.measure(t, w, countedRequests()), promised.HeapObjects
		switch w.name {
		case pipelined.name:
			check(w.name+": writes", promised.WritesFor16, 16*cost["writes"], 0)
		case body.name:
			check(w.name+": body bytes copied", promised.BodyBytesCopied, cost["body_bytes_copied"], 0)
			objects = promised.HeapObjectsForBody
		default:
			check(w.name+": hand-offs", promised.Handoffs, cost["handoffs"], 0)
			check(w.name+": timerfd_settime", promised.TimerSettimes, cost["timerfd_settimes"], 0)
			check(w.name+": epoll_ctl", promised.EpollCtls, cost["epoll_ctls"], 0)
			check(w.name+": reads", promised.Reads, cost["reads"], 0)
		}
		if !raceEnabled {
			check(w.name+": heap objects", objects, cost["heap_objects_allocated"], heapNoise)
		}
	}
	check("idle connection: bytes of buffer", promised.IdleBytes, s.measureIdle(t), 0)
}

// measure runs the workload and returns its cost per request.
func (s *Server) measure(t T, w workload, requests int) map[string]float64 {
	t.Helper()
	var open []*client
	for range countedConnections {
		open = append(open, dial(t, s))
	}
	// The steady state: everything that is made once has been made.
	warmUp := min(requests, 1600)
	done := s.Counters(t).Total.Requests
	require.NoError(t, drive(open, w, warmUp))
	done += uint64(warmUp)
	s.AwaitRequests(t, done)
	perReading := s.heapObjectsPerReading(t)

	before := s.Counters(t)
	require.Equal(t, done, before.Total.Requests)
	require.NoError(t, drive(open, w, requests))
	done += uint64(requests)
	after := s.AwaitRequests(t, done)
	require.Equal(t, done, after.Total.Requests, "more requests were answered than sent")

	cost := after.PerRequest(before)
	cost["heap_objects_allocated"] -= float64(after.Number-before.Number) * perReading / float64(requests)
	for _, c := range open {
		c.Close()
	}
	s.AwaitConnections(t, 0)
	return cost
}

// heapObjectsPerReading is what one reading of the counters itself allocates in the server: the difference of two
// readings over no request.
func (s *Server) heapObjectsPerReading(t T) float64 {
	t.Helper()
	s.Counters(t) // the first ones open the connection and fill pools
	s.Counters(t)
	const readings = 10
	first := s.Counters(t)
	last := first
	for range readings {
		last = s.Counters(t)
	}
	return float64(last.Sub(first).Process.HeapObjectsAllocated) / readings
}

// drive sends so many requests, spread over the connections, each connection's one after the other.
func drive(open []*client, w workload, requests int) error {
	failures := make([]error, len(open))
	var group sync.WaitGroup
	batches := requests / w.batch
	for i, c := range open {
		share := batches / len(open)
		if i < batches%len(open) {
			share++
		}
		group.Go(func() { failures[i] = c.drive(w, share) })
	}
	group.Wait()
	for _, err := range failures {
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

func (c *client) drive(w workload, batches int) error {
	for range batches {
		if err := c.Send(w.request); err != nil {
			return err
		}
		for range w.batch {
			if err := c.read(w.answer); err != nil {
				return err
			}
		}
	}
	return nil
}

// measureIdle is how many bytes of buffer each of many connections holds that have had an answer and rest.
func (s *Server) measureIdle(t T) float64 {
	t.Helper()
	empty := s.AwaitConnections(t, 0).Total
	require.Zero(t, empty.HeldBytes, "buffers are held, but there is no connection")
	for range idleConnections {
		dial(t, s).hello(t)
	}
	s.AwaitRequests(t, empty.Requests+idleConnections)
	full := s.AwaitConnections(t, idleConnections).Total
	return float64(full.HeldBytes) / idleConnections
}
