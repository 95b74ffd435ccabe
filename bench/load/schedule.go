package load

import (
	"fmt"
	"math"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// schedule is what an open loop goes by: requests have a time at which they are
// to be sent, whatever the answers do. One for which no connection is free
// waits, and its latency counts from that time on: so a stall of the server
// counts for every request that it held up, not only for those that were
// already on their way ("coordinated omission").
type schedule struct {
	every  float64 // nanoseconds between two sendings of this thread; 0: no schedule
	offset float64 // of the first: the threads take turns
	slot   uint64  // the next sending

	ring   []int // connections that are free, oldest first
	first  int
	length int

	// rested is how many of the free connections were free when the loop last went to wait: what is
	// sent late on one of those is late by the generator's own doing.
	rested int
	late   uint64        // requests of the measured part that were, by more than tolerance
	latest time.Duration // by which the loop woke behind its time, or sent one of these

	timer int // descriptor: the poller itself knows milliseconds only
	armed time.Duration
}

// tolerance is by how much a request may be sent late before it counts: a timer and a wake-up take
// some of it on any machine.
const tolerance = time.Millisecond

// heartbeat is the longest that the loop of an open loop waits: so it also finds out that it was kept
// from running while no connection was free.
const heartbeat = 5 * time.Millisecond

// woke notes by how much the loop was late.
func (s *schedule) woke(late time.Duration) {
	if late > tolerance {
		s.latest = max(s.latest, late)
	}
}

// timerEvent is the generation of the timer's events; there are never so many connections.
const timerEvent = math.MaxUint32

func (t *thread) newSchedule(number, threads int) error {
	t.plan.timer = -1
	o := t.all.o
	if o.Rate <= 0 {
		return nil
	}
	between := float64(time.Second) * float64(t.depth) / o.Rate
	t.plan.every, t.plan.offset = between*float64(threads), between*float64(number)
	t.plan.ring = make([]int, len(t.connections))
	fd, err := netpoll.NewTimer(&t.counters)
	if err != nil {
		return fmt.Errorf("cannot make a timer: %w", err)
	}
	t.plan.timer = fd
	return t.poller.Add(&t.counters, fd, timerEvent, netpoll.Readable|netpoll.EdgeTriggered)
}

func (s *schedule) on() bool { return s.every > 0 }

// due is when the next request is to be sent.
func (t *thread) due() time.Duration {
	return t.phase.begin + time.Duration(t.plan.offset+t.plan.every*float64(t.plan.slot))
}

// behind tells whether requests of this phase are still to be sent.
func (t *thread) behind() bool {
	return t.plan.on() && t.due() < t.phase.begin+t.phase.length
}

// release gives a connection to the next request.
func (t *thread) release(index int, c *connection) {
	if c.queued {
		return
	}
	c.queued = true
	s := &t.plan
	s.ring[(s.first+s.length)%len(s.ring)] = index
	s.length++
}

// dispatch sends what is due, as far as connections are free.
func (t *thread) dispatch(now time.Duration) {
	s := &t.plan
	for s.length > 0 && t.behind() {
		at := t.due()
		if at > now {
			return
		}
		index := s.ring[s.first]
		s.first, s.length = (s.first+1)%len(s.ring), s.length-1
		rested := s.rested > 0
		s.rested = max(0, s.rested-1)
		c := &t.connections[index]
		c.queued = false
		if c.state != open || c.outstanding > 0 {
			continue // it was lost since; connected() brings it back
		}
		s.slot++
		if late := now - at; rested && late > tolerance && t.phase.kind == measuring {
			s.late += uint64(t.depth)
			s.woke(late)
		}
		t.sendAt(index, c, at)
		now = t.all.now()
	}
}

// wakeAt arms the timer, unless it is armed for that moment already.
func (t *thread) wakeAt(at, now time.Duration) {
	if t.plan.armed == at {
		return
	}
	t.plan.armed = at
	_ = netpoll.SetTimer(&t.counters, t.plan.timer, max(1, at-now)) // the poller's own timeout is behind it
}

// abandon counts the requests that were never sent: they have waited until now at the least.
func (t *thread) abandon(now time.Duration) {
	for ; t.behind(); t.plan.slot++ {
		if t.phase.kind == measuring {
			t.unsent += uint64(t.depth)
			_ = t.latency.RecordValues(int64(now-t.due()), int64(t.depth))
		}
	}
}
