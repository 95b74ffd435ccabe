package grade

import (
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

func init() {
	behaviour("idle-many", "of many connections each is closed in its own time, and none before it", serving(idleMany, "-idle-timeout", manyPeriod.String()))
	behaviour("short-scans", "a scan does nothing for connections whose time cannot be over yet", shortScans)
	behaviour("come-and-go", "connections that come and go leave nothing behind", serving(comeAndGo, "-idle-timeout", "700ms", "-linger-timeout", "100ms"))
	special["timer calls and wake-ups"] = specialFigure{"idle connection", timerCalls}
}

// manyPeriod is the idle timeout of idleMany: long enough to open as many and use half of them again.
const manyPeriod = 1200 * time.Millisecond

// idleMany uses every second of many connections again before its time is over.
func idleMany(server *Server) error {
	const n = 300
	opening := time.Now()
	all, err := server.resting(n)
	if err != nil {
		return err
	}
	used := make([]time.Time, n)
	begin := time.Now()
	for i := range all {
		used[i] = begin // or a little before: then it may be closed a little earlier
	}
	time.Sleep(manyPeriod / 2)
	again := map[int]bool{}
	for i := 0; i < n; i += 2 {
		now := time.Now()
		if err := all[i].hello(); err != nil {
			if time.Since(opening) > manyPeriod*9/10 {
				continue // this machine is so busy that its time was over
			}
			return fmt.Errorf("connection %d, used again %v after its last request: %w", i, now.Sub(begin).Round(10*time.Millisecond), err)
		}
		used[i], again[i] = now, true
	}
	failures := make([]error, n)
	var group sync.WaitGroup
	for i, c := range all {
		if i%2 == 0 && !again[i] {
			continue
		}
		group.Go(func() {
			closed, err := c.until(answerLimit)
			early := used[i].Add(manyPeriod).Sub(closed)
			switch {
			case err != nil:
				failures[i] = err
			case again[i] && early > clockSlack:
				failures[i] = fmt.Errorf("it was closed %v after its last request", closed.Sub(used[i]).Round(10*time.Millisecond))
			}
		})
	}
	group.Wait()
	for i, err := range failures {
		if err != nil {
			return fmt.Errorf("with -idle-timeout %v, connection %d of %d: %w", manyPeriod, i+1, n, err)
		}
	}
	if r, ok := server.await(func(r harness.Reading) bool { return r.Total.Connections == 0 }); !ok {
		return fmt.Errorf("all have been closed, but the counters show %d open", r.Total.Connections)
	}
	return nil
}

// comeAndGo opens and closes connections in an order that takes each place of a list: first, middle, last.
func comeAndGo(server *Server) error {
	var open []*connection
	for i := range 400 {
		c, err := server.dial()
		if err != nil {
			return err
		}
		open = append(open, c)
		if err := c.hello(); err != nil {
			return err
		}
		if len(open) < 5 {
			continue
		}
		place := []int{0, len(open) / 2, len(open) - 1}[i%3]
		if i%4 == 0 {
			open[place].TCP.SetLinger(0) // by a reset
		}
		open[place].Close()
		open = append(open[:place], open[place+1:]...)
	}
	if r, ok := server.await(func(r harness.Reading) bool { return r.Total.Connections == 0 }); !ok {
		return fmt.Errorf("%d connections are still open, long after their time", r.Total.Connections)
	}
	c, err := server.dial()
	if err != nil {
		return err
	}
	if err := c.hello(); err != nil {
		return fmt.Errorf("a new client afterwards: %w", err)
	}
	return nil
}

// shortScans counts what is executed while many connections rest, over some scans.
func shortScans(s *Subject) error {
	const n, scans = 400, 2
	const most = 1.5 // statements for a connection and scan: less than a look at it
	binary, err := s.Build("-cover", "-covermode=atomic")
	if err != nil {
		return fmt.Errorf("cannot build it to count what is executed: %w", err)
	}
	var statements [2]int
	for i := range statements {
		executed, err := s.executedBy(binary, func(server *Server) error {
			// They come all at once, so that taking them needs as many turns of the loop each time.
			if err := server.Pause(); err != nil {
				return err
			}
			for range n {
				if _, err := server.dial(); err != nil {
					return err
				}
			}
			if err := server.Resume(); err != nil {
				return err
			}
			if r, ok := server.await(func(r harness.Reading) bool { return r.Total.Connections >= n }); !ok {
				return fmt.Errorf("%d of %d connections are open", r.Total.Connections, n)
			}
			// That each has room to write is an event of its own.
			if _, err := server.Settle(s.Context); err != nil {
				return err
			}
			if i > 0 {
				time.Sleep(scans*time.Second + 300*time.Millisecond) // a scan comes once a second, or sooner
			}
			return nil
		}, "-idle-timeout", "20s", "-head-timeout", "20s", "-body-timeout", "20s", "-body-total-timeout", "20s", "-linger-timeout", "20s",
			"-write-timeout", "80s", "-write-total-timeout", "80s")
		if err != nil {
			return err
		}
		statements[i] = s.countStatements(executed)
	}
	if each := float64(statements[1]-statements[0]) / n; each > most*scans {
		return fmt.Errorf("in %d scans, %s statements were executed for each of %d connections that have more than 10 s left", scans, number(each), n)
	}
	return nil
}

// timerCalls lets idle connections run out of time, and counts what that took for each: by the counters
// with many of them and several loops, and from outside with some and one loop. With the time limits by default, and one
// loop that accepts for all, it looks at how they begin, and at others that wait for something else.
func timerCalls(s *Subject) (float64, error) {
	const many, some, usual = 1000, 150, 2500
	const period = 1500 * time.Millisecond
	random := s.random("timer calls")
	l, err := s.load("any requests")
	if err != nil {
		return 0, err
	}
	// Not yet, once, or more often: what a connection costs may begin with any of them.
	use := func(c *connection) error {
		n := random.IntN(4)
		from := random.IntN(len(l.requests) - n)
		return drive([]*connection{c}, load{requests: l.requests[from : from+n], pipeline: 1, name: l.name}, n)
	}
	several := strconv.Itoa(2 + random.IntN(3))
	flags := []string{"-idle-timeout", period.String()}
	each := func(t netpoll.Counters, n int) float64 {
		return float64(t.TimerfdCreates+t.TimerfdSettimes+t.EventfdWrites) / float64(n)
	}
	value, err := leastUnhurried(2*period, func() (value float64, err error) {
		err = s.with(func(server *Server) error {
			r, err := server.runOut(many, use)
			value = each(r.Total, many)
			return err
		}, append([]string{"-workers", several}, flags...)...)
		return value, err
	})
	if err != nil {
		return value, err
	}
	err = s.with(func(server *Server) error {
		if _, err := server.restingAfter(usual, use); err != nil {
			return err
		}
		r, err := server.read()
		if err != nil {
			return err
		}
		// A connection that another loop gets may take one wake-up.
		before := r.Total
		r.Total.EventfdWrites -= min(r.Total.EventfdWrites, usual)
		value = max(value, each(r.Total, usual))
		n, after, err := server.unfinished(use)
		more := after.Total.Sub(before)
		more.EventfdWrites -= min(more.EventfdWrites, uint64(n))
		value = max(value, each(more, n))
		return err
	}, "-workers", "2", "-acceptor")
	if err != nil || s.Blind() != nil {
		return value, err
	}
	watched, err := leastUnhurried(2*period, func() (float64, error) {
		server, err := s.serveWatched(append([]string{"-workers", "1"}, flags...)...)
		if err != nil {
			return 0, err
		}
		defer server.Kill()
		before := server.record.snapshot()
		if err := server.runOutUnasked(some, use); err != nil {
			return 0, err
		}
		after := server.record.snapshot()
		if n := after[wokenLoops] - before[wokenLoops]; n > 0 {
			return 0, fmt.Errorf("while connections rest, another thread wakes the loop: %d times", n)
		}
		seen := 0
		for _, call := range []string{timerfdCreate, timerfdSettime, wakeUps} {
			seen += after[call] - before[call]
		}
		return float64(seen) / some, nil
	})
	return max(value, watched), err
}

// unfinished opens connections for which the server waits: for the rest of a head, for the rest of a body, for a
// client that does not read. It says how many they are, and returns when the server has seen all.
func (s *Server) unfinished(use func(*connection) error) (n int, r harness.Reading, err error) {
	for _, waits := range []struct {
		connections int
		sent        string
	}{
		{120, "GET / HT"},
		{120, "POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf"},
		{60, "GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n"},
	} {
		all, err := s.restingAfter(waits.connections, use)
		if err != nil {
			return n, r, err
		}
		if r, err = s.read(); err != nil {
			return n, r, err
		}
		sent := r.Total.ReadBytes + uint64(len(waits.sent)*len(all))
		for _, c := range all {
			if err := c.send(waits.sent); err != nil {
				return n, r, err
			}
		}
		n += len(all)
		var ok bool
		if r, ok = s.await(func(r harness.Reading) bool { return r.Total.ReadBytes >= sent }); !ok {
			return n, r, fmt.Errorf("%q over each of %d connections: the counters show that less was read", waits.sent, len(all))
		}
	}
	return n, r, nil
}

// leastUnhurried counts once, and up to twice more while it takes longer than it should: on a machine that is busy, the
// connections come over several periods, and a server wakes up in each.
func leastUnhurried(should time.Duration, count func() (float64, error)) (least float64, err error) {
	least = math.Inf(1)
	for range 3 {
		began := time.Now()
		value, err := count()
		if err != nil {
			return 0, err
		}
		if least = min(least, value); time.Since(began) <= should {
			break
		}
	}
	return least, nil
}

// runOutUnasked lets n idle connections run out of time as their clients see it: for a request to the admin listener
// Go's runtime wakes threads of its own, by the same calls.
func (s *Server) runOutUnasked(n int, use func(*connection) error) error {
	all := make([]*connection, 0, n)
	defer func() { closeAll(all) }()
	for range n {
		c, err := s.dial()
		if err != nil {
			return err
		}
		all = append(all, c)
		if err := use(c); err != nil {
			return err
		}
	}
	for i, c := range all {
		if _, err := c.until(answerLimit); err != nil {
			return fmt.Errorf("idle connection %d of %d: %w", i+1, n, err)
		}
	}
	return nil
}

func (s *Server) runOut(n int, use func(*connection) error) (harness.Reading, error) {
	all, err := s.restingAfter(n, use)
	defer closeAll(all)
	if err != nil {
		return harness.Reading{}, err
	}
	r, ok := s.await(func(r harness.Reading) bool { return r.Total.Connections == 0 })
	if !ok {
		return r, fmt.Errorf("%d of %d idle connections are still open, long after their time", r.Total.Connections, n)
	}
	return r, nil
}
