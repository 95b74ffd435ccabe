package grade

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// General are checks that every exercise has beside its own, for when those hold: cost that has not
// gone, but is where the exercise does not look. They end with the one that takes longest.
var General = []Check{
	{Behaviour: "never-waits"}, {Behaviour: "rests"}, {Behaviour: "needed-events"}, {Behaviour: "counted"}, {Behaviour: "bounded-memory"}, {Behaviour: "no-races"}, DefaultDeadlines,
}

// DefaultDeadlines takes a minute, in which it only waits.
var DefaultDeadlines = Check{Behaviour: "default-deadlines"}

func init() {
	behaviour("never-waits", "a loop waits for events alone, and serves all clients meanwhile", neverWaits)
	behaviour("rests", "with nothing to do, a server does nothing", rests)
	behaviour("counted", "what shared/netpoll does is in the server's counters", counted)
	behaviour("needed-events", "an answer that the socket has room for is not waited with", neededEvents)
	behaviour("no-races", "the race detector finds nothing, with two loops and clients that come and go", noRaces)
	behaviour("bounded-memory", "what clients make up is not kept, and a request costs the same later on", serving(boundedMemory))
	behaviour(DefaultDeadlines.Behaviour, "the time limits hold with the flags that they have by default", defaultDeadlines)
}

const (
	// mostWaits is how often a loop's thread may sleep for each request of a client that sends one
	// after the other. It is once, for the next event, and now and then once more for a processor
	// of Go's.
	mostWaits = 1.3
	// mostCPU is what a loop may compute for each: some 10 times what it takes on an old machine.
	// What takes more spins.
	mostCPU = 500 * time.Microsecond
)

// neverWaits finds a loop that stands still, or turns in a circle, for anything but an event: to
// gather requests, or for another goroutine.
func neverWaits(s *Subject) error {
	m, err := s.measure("hello")
	switch {
	case err != nil:
		return err
	case m.loops.waits > mostWaits:
		return fmt.Errorf("for each request a loop's thread sleeps %s times; once is for the next event", number(m.loops.waits))
	case m.loops.cpu > mostCPU:
		return fmt.Errorf("each request takes %v of a CPU", m.loops.cpu.Round(10*time.Microsecond))
	}
	return nil
}

const (
	// restFor is for how long a server is looked at that has nothing to do.
	restFor = time.Second
	// mostRest is what it may compute in that time.
	mostRest = restFor / 10
)

// rests finds a loop that looks again and again whether there is something to do.
func rests(s *Subject) error {
	return s.with(func(server *Server) error {
		if err := server.used(20, s.random("rests")); err != nil {
			return err
		}
		var found error
		for range 3 { // a collection, or what the runtime does now and then, is no habit
			before := habits(server.PID())
			select {
			case <-time.After(restFor):
			case <-s.Context.Done():
				return s.Context.Err()
			}
			after := habits(server.PID())
			var cpu time.Duration
			for thread := range after {
				cpu += after[thread].cpu - before[thread].cpu
			}
			if cpu <= mostRest {
				return nil
			}
			found = fmt.Errorf("with 20 idle connections it computes for %v in %v", cpu.Round(time.Millisecond), restFor)
		}
		return found
	})
}

// mostEvents is how many events of sockets there may be for each request: the one that it has come.
const mostEvents = 1.25

func neededEvents(s *Subject) error {
	for _, name := range []string{"hello", "body8k"} {
		m, err := s.measure(name)
		if err != nil {
			return err
		}
		if n := m.counters["events"] - m.counters["eventfd_writes"]; n > mostEvents {
			return fmt.Errorf("on %s a request takes %s epoll events; one says that it has come", name, number(n))
		}
	}
	return nil
}

const (
	someKeys  = 2_000  // as many as a cache may have that keeps the latest
	manyKeys  = 12_000 // more than that
	mostGrown = 256 << 10
)

// boundedMemory weighs the heap between requests of which no two are the same.
func boundedMemory(server *Server) error {
	c, err := server.dial()
	if err != nil {
		return err
	}
	made := 0
	// What is counted once must hold for all that come later.
	last, err := server.read()
	if err != nil {
		return err
	}
	var costs []map[string]float64
	different := func(n int) error {
		const atOnce = 8
		defer func() {
			if now, err := server.read(); err == nil {
				cost := map[string]float64{}
				for name, count := range now.Sub(last).Counts() {
					cost[name] = float64(count) / float64(2*n)
				}
				costs, last = append(costs, cost), now
			}
		}()
		for until := made + n; made < until; made += atOnce {
			var all strings.Builder
			for i := made; i < made+atOnce; i++ {
				fmt.Fprintf(&all, "GET /users/%d?%[1]d HTTP/1.1\r\nHost: host-%[1]d.example\r\nX-Name-%[1]d: value-%[1]d\r\n\r\n", i)
				all.WriteString(echoRequest(fmt.Sprintf("text/made-up-%d", i), "x"))
			}
			if err := c.send(all.String()); err != nil {
				return err
			}
			for i := made; i < made+atOnce; i++ {
				if err := c.expect(200, fmt.Sprintf(`{"id":"%d"}`, i)); err != nil {
					return err
				}
				if err := c.expect(200, "x"); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := different(someKeys); err != nil {
		return err
	}
	before, err := server.heap()
	if err != nil {
		return err
	}
	if err := different(manyKeys); err != nil {
		return err
	}
	after, err := server.heap()
	if err != nil {
		return err
	}
	if grown := after - before; grown > mostGrown {
		return fmt.Errorf("%d different requests have made the heap %d KiB larger", 2*manyKeys, grown>>10)
	}
	for _, name := range []string{"heap_objects_allocated", "reads", "writes", "timerfd_settimes", "epoll_ctls", "handoffs"} {
		if a, b := costs[0][name], costs[1][name]; math.Abs(a-b) > 1 {
			return fmt.Errorf("%s are %s per request at first, and %s later", name, number(a), number(b))
		}
	}
	return nil
}

// The time limits of shared/serve's flags.
const (
	usualIdle  = time.Minute
	usualOther = 10 * time.Second // for a head, between two bytes of a body, and for a client that takes none
)

// defaultDeadlines waits for them all at once, with clients that stop at each place where one can.
func defaultDeadlines(s *Subject) error {
	server, err := s.serve()
	return lend(server, err, func(server *Server) error {
		var group sync.WaitGroup
		clients := []func() error{
			func() error { return server.runsOut(helloRequest, 200, usualIdle) },
			func() error { return server.runsOut("GET / HT", 408, usualOther) },
			func() error {
				return server.runsOut("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf", 408, usualOther)
			},
			server.neverReads,
		}
		failures := make([]error, len(clients))
		for i, client := range clients {
			group.Go(func() { failures[i] = client() })
		}
		group.Wait()
		for _, err := range failures {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// runsOut sends something, and wants an answer with that status, and the end of the connection,
// when the time is over.
func (s *Server) runsOut(sent string, status int, limit time.Duration) error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	c.Timeout = limit + answerLimit
	began := time.Now()
	failed := func(err error) error {
		return fmt.Errorf("after %q, with a limit of %v: %w", firstLine(sent), limit, err)
	}
	if err := c.send(sent); err != nil {
		return failed(err)
	}
	a, err := c.answer()
	switch {
	case err != nil && time.Since(began) >= limit+answerLimit:
		return failed(fmt.Errorf("nothing has come %v later", time.Since(began).Round(time.Second)))
	case err != nil:
		return failed(err)
	case a.Status != status:
		return failed(fmt.Errorf("the answer was %d, not %d", a.Status, status))
	}
	closed, err := c.until(limit + answerLimit)
	if err == nil && closed.Sub(began) < limit-clockSlack {
		err = fmt.Errorf("it was closed after %v", closed.Sub(began).Round(10*time.Millisecond))
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

// neverReads asks for more than the sockets hold, and wants to be given up.
func (s *Server) neverReads() error {
	c, err := dialSlow(s.Ready.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.send("GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return err
	}
	// By then the idle one alone is there: the others have had their 408.
	time.Sleep(usualOther)
	if r, ok := s.await(func(r harness.Reading) bool { return r.Total.Connections <= 1 }); !ok {
		return fmt.Errorf("who takes no byte of an answer for %v is not given up: %d connections are open", usualOther, r.Total.Connections)
	}
	return nil
}

// sameWatched says what a server does otherwise while its system calls are watched. l is what it
// was driven with.
func (m perRequest) sameWatched(l load) error {
	if m.watched == nil {
		return nil
	}
	apart := func(a, b float64) bool { return math.Abs(a-b) > 0.3+max(a, b)/5 }
	// How often it is written for a large answer is a matter of time.
	small := !slices.ContainsFunc(l.requests, func(r request) bool { return len(r.body) > 16<<10 })
	for _, name := range []string{"reads", "writes", "timerfd_settimes", "epoll_ctls", "handoffs", "eventfd_writes"} {
		if a, b := m.counters[name], m.watched[name]; small && apart(a, b) {
			return fmt.Errorf("%s of %s are %s per request, and %s while its system calls are watched", name, l.name, number(a), number(b))
		}
	}
	// The reading costs some too, as it is not taken off there.
	if a, b := m.counters["heap_objects_allocated"], m.watched["heap_objects_allocated"]; math.Abs(a-b) > 2+max(a, b)/2 {
		return fmt.Errorf("for a request of %s %s objects are allocated, and %s while its system calls are watched", l.name, number(a), number(b))
	}
	if a, b := m.counters["body_bytes_copied"], m.watched["body_bytes_copied"]; math.Abs(a-b) > 64+max(a, b)/4 {
		return fmt.Errorf("of %s it copies %.0f bytes of a body per request, and %.0f while its system calls are watched", l.name, a, b)
	}
	if a, b := m.wrote, m.watchedWrote; a >= 0 && b >= 0 && math.Abs(a-b) > 64+max(a, b)/4 {
		return fmt.Errorf("of %s it writes %.0f bytes per request from files or to events, and %.0f while its system calls are watched", l.name, a, b)
	}
	return nil
}

// Deadlines is the check that takes longest, of the same server, for who has other things to do
// meanwhile. The answer comes over the channel; when ctx ends it says nothing.
func (s *Subject) Deadlines(ctx context.Context) <-chan []Finding {
	beside := &Subject{Binary: s.Binary, Context: ctx}
	found := make(chan []Finding, 1)
	go func() { found <- beside.Run(DefaultDeadlines) }()
	return found
}
