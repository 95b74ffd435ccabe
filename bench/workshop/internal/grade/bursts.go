package grade

import (
	"fmt"
	"time"
)

func init() {
	behaviour("burst", "of six hundred requests that arrive at one moment every one is answered", serving(burst))
	behaviour("batches", "a worker takes at most 256 messages before it looks up", batches)
	special["wake-ups in a burst"] = specialFigure{"request", burstWakeUps}
}

const burstSize = 600

// burst lets all clients send while the server stands still.
func burst(server *Server) error {
	all, err := server.resting(burstSize)
	if err != nil {
		return err
	}
	return server.burst(all)
}

func (s *Server) burst(all []*connection) error {
	if err := s.Pause(); err != nil {
		return err
	}
	for _, c := range all {
		if err := c.send(helloRequest); err != nil {
			return err
		}
	}
	if err := s.Resume(); err != nil {
		return err
	}
	for i, c := range all {
		if err := c.expect(200, greeting); err != nil {
			return fmt.Errorf("request %d: %w", i+1, err)
		}
	}
	return nil
}

// burstUnderWatch is a burst with the server's threads held, and its system calls seen. It answers nil if they
// cannot be.
func (s *Subject) burstUnderWatch() (*Server, map[string]int, error) {
	if s.Blind() != nil {
		return nil, nil, nil
	}
	server, err := s.serveWatched("-workers", "1")
	if err != nil {
		return nil, nil, err
	}
	all, err := server.resting(burstSize)
	defer closeAll(all)
	if err != nil {
		server.Kill()
		return nil, nil, err
	}
	server.traced.Hold()
	before := server.record.snapshot()
	server.record.restart()
	for _, c := range all {
		if err = c.send(helloRequest); err != nil {
			break
		}
	}
	time.Sleep(10 * time.Millisecond)
	server.traced.Release()
	for i, c := range all {
		if err != nil {
			break
		}
		if err = c.expect(200, greeting); err != nil {
			err = fmt.Errorf("request %d of a burst: %w", i+1, err)
		}
	}
	if err != nil {
		server.Kill()
		return nil, nil, err
	}
	after := server.record.snapshot()
	for name, n := range before {
		after[name] -= n
	}
	return server, after, nil
}

func batches(s *Subject) error {
	server, _, err := s.burstUnderWatch()
	if server == nil || err != nil {
		return err
	}
	defer server.Kill()
	if most := server.record.most(); most > 256 {
		return fmt.Errorf("in a burst it read %d sockets without looking up once", most)
	}
	return server.Stop()
}

func burstWakeUps(s *Subject) (float64, error) {
	server, calls, err := s.burstUnderWatch()
	if err != nil {
		return 0, err
	}
	if server == nil {
		return s.countedWakeUps()
	}
	defer server.Kill()
	return float64(calls[wakeUps]) / burstSize, server.Stop()
}

// countedWakeUps is for where system calls cannot be watched.
func (s *Subject) countedWakeUps() (float64, error) {
	server, err := s.serve("-workers", "1")
	if err != nil {
		return 0, err
	}
	defer server.Kill()
	all, err := server.resting(burstSize)
	if err != nil {
		return 0, err
	}
	before, err := server.read()
	if err != nil {
		return 0, err
	}
	if err := server.burst(all); err != nil {
		return 0, err
	}
	after, err := server.read()
	return float64(after.Total.EventfdWrites-before.Total.EventfdWrites) / burstSize, err
}
