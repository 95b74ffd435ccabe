package grade

import (
	"fmt"
	"sync"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	behaviour("idle-many", "of many connections each is closed in its own time, and none before it", idleMany)
	behaviour("come-and-go", "connections that come and go leave nothing behind", comeAndGo)
	special["timer calls and wake-ups"] = specialFigure{"idle connection", timerCalls}
}

// idleMany uses every second of many connections again before its time is over.
func idleMany(s *Subject) error {
	const period = 1200 * time.Millisecond
	server, err := s.serve("-workers", "1", "-idle-timeout", period.String())
	if err != nil {
		return err
	}
	defer server.Kill()
	const n = 300
	all, err := server.resting(n)
	defer closeAll(all)
	if err != nil {
		return err
	}
	used := make([]time.Time, n)
	begin := time.Now()
	for i := range all {
		used[i] = begin // or a little before: then it may be closed a little earlier
	}
	time.Sleep(period / 2)
	again := map[int]bool{}
	for i := 0; i < n; i += 2 {
		now := time.Now()
		if err := all[i].hello(); err != nil {
			if time.Since(begin) > period*9/10 {
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
			early := used[i].Add(period).Sub(closed)
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
			return fmt.Errorf("with -idle-timeout %v, connection %d of %d: %w", period, i+1, n, err)
		}
	}
	if r, ok := server.await(func(r harness.Reading) bool { return r.Total.Connections == 0 }); !ok {
		return fmt.Errorf("all have been closed, but the counters show %d open", r.Total.Connections)
	}
	return server.Stop()
}

// comeAndGo opens and closes connections in an order that takes each place of a list: first, middle, last.
func comeAndGo(s *Subject) error {
	server, err := s.serve("-workers", "1", "-idle-timeout", "700ms", "-linger-timeout", "100ms")
	if err != nil {
		return err
	}
	defer server.Kill()
	var open []*connection
	defer func() { closeAll(open) }()
	for i := range 400 {
		c, err := dial(server.Ready.Address)
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
	c, err := dial(server.Ready.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.hello(); err != nil {
		return fmt.Errorf("a new client afterwards: %w", err)
	}
	return server.Stop()
}

// timerCalls lets idle connections run out of time, and counts what that took for each: by the counters
// with many of them, and from outside with some.
func timerCalls(s *Subject) (float64, error) {
	const many, some = 1000, 150
	flags := []string{"-workers", "1", "-idle-timeout", "1500ms"}
	server, err := s.serve(flags...)
	if err != nil {
		return 0, err
	}
	defer server.Kill()
	r, err := server.runOut(many)
	if err != nil {
		return 0, err
	}
	t := r.Total
	value := float64(t.TimerfdCreates+t.TimerfdSettimes+t.EventfdWrites) / many
	if err := server.Stop(); err != nil {
		return 0, err
	}
	if s.Blind() != nil {
		return value, nil
	}
	if server, err = s.serveWatched(flags...); err != nil {
		return 0, err
	}
	defer server.Kill()
	before := server.record.snapshot()
	if _, err := server.runOut(some); err != nil {
		return 0, err
	}
	after := server.record.snapshot()
	seen := 0
	for _, call := range []string{timerfdCreate, timerfdSettime, wakeUps} {
		seen += after[call] - before[call]
	}
	return max(value, float64(seen)/some), nil
}

func (s *Server) runOut(n int) (harness.Reading, error) {
	all, err := s.resting(n)
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
