package grade

import (
	"errors"
	"fmt"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	behaviour("successor", "a new connection does not die of its predecessor's timer", successor)
	behaviour("request-beats-timer", "a request that arrives just before the idle timer fires keeps the connection", requestBeatsTimer)
	behaviour("stray-events", "an event for a connection that is gone reaches nobody", strayEvents)
}

// standstill brings a server to a point that is otherwise a matter of luck: it is paused, things happen to
// its sockets and timers one after the other, and when it goes on it finds all of that in one turn of its
// loop, in that order (epoll(7) reports what became ready first before what came later).
type standstill struct {
	server *Server
	old    *connection // whose timer is set to fire after wait
	wait   time.Duration
}

// newStandstill pauses a server that has one connection, before that connection's timer fires. With half,
// it is the timer of a head that has not come to its end, else that of an idle connection.
func newStandstill(s *Subject, half bool) (*standstill, error) {
	// On a busy machine the timer may fire before the server is paused; then it is tried again.
	for wait := 300 * time.Millisecond; wait < 5*time.Second; wait *= 2 {
		flag := "-idle-timeout"
		if half {
			flag = "-head-timeout"
		}
		server, err := s.serve("-workers", "1", flag, wait.String(), "-linger-timeout", "50ms")
		if err != nil {
			return nil, err
		}
		still := &standstill{server: server, wait: wait}
		ready, err := still.prepare(half)
		if err != nil {
			still.end()
			return nil, err
		}
		if ready {
			return still, nil
		}
		still.end()
	}
	return nil, errors.New("this machine is too busy to bring the server to a standstill in time")
}

func (s *standstill) prepare(half bool) (ready bool, err error) {
	// The connection that the counters are read over is there before: else it might get the descriptor that
	// the next client is to get.
	if _, err := s.server.read(); err != nil {
		return false, err
	}
	if s.old, err = dial(s.server.Ready.Address); err != nil {
		return false, err
	}
	begin := time.Now()
	if err := s.old.hello(); err != nil {
		return false, err
	}
	if half {
		if err := s.old.send("GET / HT"); err != nil {
			return false, err
		}
		want := uint64(len(helloRequest) + 8)
		if _, ok := s.server.await(func(r harness.Reading) bool { return r.Total.ReadBytes >= want }); !ok {
			return false, errors.New("half a head is not read")
		}
	}
	// The loop is back in epoll_wait(2) after that.
	time.Sleep(20 * time.Millisecond)
	if err := s.server.Pause(); err != nil {
		return false, err
	}
	time.Sleep(20 * time.Millisecond)
	return time.Since(begin) < s.wait-50*time.Millisecond, nil
}

// expire waits until the old connection's timer has fired.
func (s *standstill) expire() { time.Sleep(s.wait + 100*time.Millisecond) }

func (s *standstill) end() {
	if s.old != nil {
		s.old.Close()
	}
	s.server.Resume()
	s.server.Kill()
}

// successor: a connection ends, a new one gets its descriptors, and then its timer's event comes.
func successor(s *Subject) error {
	for _, half := range []bool{false, true} {
		still, err := newStandstill(s, half)
		if err != nil {
			return err
		}
		defer still.end()
		still.old.Reset() // which ends it at once, whatever state it is in
		young, err := dial(still.server.Ready.Address)
		if err != nil {
			return err
		}
		defer young.Close()
		still.expire()
		if err := still.server.Resume(); err != nil {
			return err
		}
		if _, ok := still.server.await(func(r harness.Reading) bool { return r.Total.Connections == 1 }); !ok {
			return errors.New("a connection that was opened while another was reset is not there")
		}
		if err := young.hello(); err != nil {
			which := "an idle connection"
			if half {
				which = "a connection that waited for the rest of a head"
			}
			return fmt.Errorf("%s is reset, another client connects, then the timer of the first fires: the other gets no answer, %w", which, err)
		}
		if err := still.server.Stop(); err != nil {
			return err
		}
	}
	return nil
}

func requestBeatsTimer(s *Subject) error {
	still, err := newStandstill(s, false)
	if err != nil {
		return err
	}
	defer still.end()
	if err := still.old.send(helloRequest); err != nil {
		return err
	}
	still.expire()
	if err := still.server.Resume(); err != nil {
		return err
	}
	if err := still.old.expect(200, greeting); err != nil {
		return err
	}
	if err := still.old.hello(); err != nil {
		return fmt.Errorf("it is answered, but the connection does not live on: %w", err)
	}
	return still.server.Stop()
}

// strayEvents: a timer ends a connection, a new one gets its descriptor, and then its socket's event comes.
func strayEvents(s *Subject) error {
	still, err := newStandstill(s, false)
	if err != nil {
		return err
	}
	defer still.end()
	still.expire()
	young, err := dial(still.server.Ready.Address)
	if err != nil {
		return err
	}
	defer young.Close()
	if err := still.old.send("X"); err != nil {
		return err
	}
	if err := still.server.Resume(); err != nil {
		return err
	}
	if _, ok := still.server.await(func(r harness.Reading) bool { return r.Total.Accepts-r.Total.AcceptAgains >= 2 }); !ok {
		return errors.New("a new connection is not accepted")
	}
	time.Sleep(30 * time.Millisecond) // the rest of that turn
	r, err := still.server.read()
	if err != nil {
		return err
	}
	if n := r.Total.ReadAgains; n > 0 {
		return fmt.Errorf("a timer ends a connection, another takes its descriptor, then bytes for the first arrive: the other was read %d %s for nothing", n, plural(int(n), "time"))
	}
	if err := young.hello(); err != nil {
		return err
	}
	return still.server.Stop()
}
