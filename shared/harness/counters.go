package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// Reading is what a server has counted up to one moment. Each loop publishes its counters once per
// turn: what the last turn did may be missing; see [Server.Settle].
type Reading struct {
	Number  int64              // of this server's readings, from 1 on: each allocates a little in it
	Stage   string             // the server's name
	Loops   []netpoll.Counters // of each loop; a gauge may have wrapped round below zero
	Total   netpoll.Counters   // of all loops
	Process ProcessFigures
}

// ProcessFigures are of the process as a whole. The field names in JSON are those of package serve.
type ProcessFigures struct {
	HeapObjectsAllocated int64 `json:"heap_objects_allocated"`
	HeapBytesAllocated   int64 `json:"heap_bytes_allocated"`
	GCCycles             int64 `json:"gc_cycles"`
	CPUNanos             int64 `json:"cpu_ns"` // of all threads, user and system

	Goroutines int64 `json:"goroutines"` // gauge
	HeapBytes  int64 `json:"heap_bytes"` // gauge: in use, garbage not yet collected included
}

// Sub is what has happened since before was read. Gauges stay as they are in p.
func (p ProcessFigures) Sub(before ProcessFigures) ProcessFigures {
	p.HeapObjectsAllocated -= before.HeapObjectsAllocated
	p.HeapBytesAllocated -= before.HeapBytesAllocated
	p.GCCycles -= before.GCCycles
	p.CPUNanos -= before.CPUNanos
	return p
}

// Add adds the counts of another server or another time; gauges stay as they are in p.
func (p *ProcessFigures) Add(o ProcessFigures) {
	p.HeapObjectsAllocated += o.HeapObjectsAllocated
	p.HeapBytesAllocated += o.HeapBytesAllocated
	p.GCCycles += o.GCCycles
	p.CPUNanos += o.CPUNanos
}

// processCounts are the names of those of ProcessFigures that are no gauges, as in JSON.
var processCounts = []struct {
	name string
	of   func(*ProcessFigures) int64
}{
	{"heap_objects_allocated", func(p *ProcessFigures) int64 { return p.HeapObjectsAllocated }},
	{"heap_bytes_allocated", func(p *ProcessFigures) int64 { return p.HeapBytesAllocated }},
	{"gc_cycles", func(p *ProcessFigures) int64 { return p.GCCycles }},
	{"cpu_ns", func(p *ProcessFigures) int64 { return p.CPUNanos }},
}

// ParseReading reads what /debug/counters answers. A counter that is missing is 0 and one that is not
// known is passed over: the server may be that of another commit. Its requests must be there.
func ParseReading(body []byte) (r Reading, err error) {
	var raw struct {
		Stage   string                   `json:"stage"`
		Loops   []map[string]json.Number `json:"loops"`
		Total   map[string]json.Number   `json:"total"`
		Runtime ProcessFigures           `json:"runtime"`
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return r, fmt.Errorf("the counters are not understood: %w in %s", err, Clip(body))
	}
	if _, ok := raw.Total["requests"]; !ok {
		return r, fmt.Errorf("there are no counters in %s", Clip(body))
	}
	r = Reading{Stage: raw.Stage, Process: raw.Runtime, Loops: make([]netpoll.Counters, len(raw.Loops))}
	for i, loop := range raw.Loops {
		if err := setCounters(&r.Loops[i], loop); err != nil {
			return r, err
		}
	}
	return r, setCounters(&r.Total, raw.Total)
}

func setCounters(c *netpoll.Counters, values map[string]json.Number) error {
	for name, number := range values {
		value, err := number.Int64()
		if err != nil {
			return fmt.Errorf("counter %s is %s", name, number)
		}
		c.Set(name, uint64(value)) // one below zero wraps round, as it did in the server
	}
	return nil
}

// Sub is what has happened since before was read, loop by loop. Gauges stay as they are in r.
func (r Reading) Sub(before Reading) Reading {
	loops := make([]netpoll.Counters, len(r.Loops))
	for i, loop := range r.Loops {
		if i < len(before.Loops) {
			loop = loop.Sub(before.Loops[i])
		}
		loops[i] = loop
	}
	r.Loops = loops
	r.Total = r.Total.Sub(before.Total)
	r.Process = r.Process.Sub(before.Process)
	r.Number -= before.Number
	return r
}

// Counts are all counts by name, of the loops and of the process, without gauges: what may be
// divided by requests after a Sub.
func (r Reading) Counts() map[string]int64 {
	counts := map[string]int64{}
	r.Total.Each(func(name string, value uint64) {
		if !netpoll.IsGauge(name) {
			counts[name] = int64(value)
		}
	})
	for _, c := range processCounts {
		counts[c.name] = c.of(&r.Process)
	}
	return counts
}

// PerRequest are the Counts of what happened since before, divided by the requests of that time; nil
// if there were none.
func (r Reading) PerRequest(before Reading) map[string]float64 {
	counts := r.Sub(before).Counts()
	requests := counts["requests"]
	if requests == 0 {
		return nil
	}
	costs := make(map[string]float64, len(counts))
	for name, n := range counts {
		costs[name] = float64(n) / float64(requests)
	}
	return costs
}

// SystemCall is one that the servers count.
type SystemCall struct {
	Call netpoll.Call
	// Counter is the counter of it; Less, if it is not "", the one of what that counts beside it.
	Counter, Less string
}

// Name is its name as strace shows it; its manual page is that name in section 2.
func (c SystemCall) Name() string { return c.Call.String() }

// SystemCalls are those that a server counts itself, in the order in which a request meets them.
var SystemCalls = []SystemCall{
	{Call: netpoll.CallRecvfrom, Counter: "reads"},
	{Call: netpoll.CallSendto, Counter: "writes", Less: "vectored_writes"},
	{Call: netpoll.CallSendmsg, Counter: "vectored_writes"},
	{Call: netpoll.CallEpollPwait, Counter: "epoll_waits"},
	{Call: netpoll.CallIoUringEnter, Counter: "enters"},
	{Call: netpoll.CallEpollCtl, Counter: "epoll_ctls"},
	{Call: netpoll.CallTimerfdSettime, Counter: "timerfd_settimes"},
	{Call: netpoll.CallWrite, Counter: "eventfd_writes"},
	{Call: netpoll.CallAccept4, Counter: "accepts"},
	{Call: netpoll.CallTimerfdCreate, Counter: "timerfd_creates"},
	{Call: netpoll.CallShutdown, Counter: "shutdowns"},
	{Call: netpoll.CallIoctl, Counter: "ioctls"},
	{Call: netpoll.CallClose, Counter: "closes"},
}

// CallsOf is how often a call was made by counters given by name, in total or per request.
func CallsOf[N int64 | float64](c SystemCall, counts map[string]N) N {
	n := counts[c.Counter]
	if c.Less != "" {
		n -= counts[c.Less]
	}
	return n
}

// Counters reads the server's counters.
func (s *Server) Counters(ctx context.Context) (Reading, error) {
	body, err := s.Admin(ctx, "/debug/counters", 0)
	if err != nil {
		return Reading{}, err
	}
	r, err := ParseReading(body)
	if err != nil {
		return r, fmt.Errorf("%s: %w", s.Name, err)
	}
	r.Number = s.readings.Add(1)
	return r, nil
}

// The pause between two readings when something is waited for: an eighth of how long that has
// been, within these bounds. A reading costs both sides a tenth of a millisecond of CPU.
const leastPause, mostPause = 2 * time.Millisecond, 20 * time.Millisecond

// Await reads the counters until they are as wanted, and returns that reading. what is what is waited
// for, for the error of a server for which that never comes; the last reading is returned with it.
func (s *Server) Await(ctx context.Context, what string, wanted func(Reading) bool) (Reading, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for began := time.Now(); ; {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return Reading{}, ctx.Err()
		}
		r, err := s.Counters(ctx)
		if err != nil || wanted(r) {
			return r, err
		}
		waited := time.Since(began)
		if waited > s.patience {
			return r, fmt.Errorf("%s: waited for %s for %v; its counters: %s", s.Name, what, s.patience, counterText(r.Total))
		}
		timer.Reset(min(max(waited/8, leastPause), mostPause))
	}
}

func counterText(c netpoll.Counters) string {
	var words []string
	c.Each(func(name string, value uint64) {
		if value != 0 {
			words = append(words, fmt.Sprintf("%s=%d", name, int64(value)))
		}
	})
	return strings.Join(words, " ")
}

// readingsAlike is how many readings in a row must be alike before nothing is taken to move any more:
// a thread that has handed a request over may publish that after the thread that has answered it.
const readingsAlike = 4

// Settle reads the counters until no loop moves any more, and returns the last reading. It is for a
// time at which nothing is on its way to the server.
func (s *Server) Settle(ctx context.Context) (Reading, error) {
	return s.AwaitSettled(ctx, "rest (does somebody else use it?)", func(Reading) bool { return true })
}

// AwaitSettled is Settle for the first rest that is as wanted.
func (s *Server) AwaitSettled(ctx context.Context, what string, wanted func(Reading) bool) (Reading, error) {
	var last netpoll.Counters
	alike := 0
	return s.Await(ctx, what, func(r Reading) bool {
		if alike++; r.Total != last {
			last, alike = r.Total, 1
		}
		return alike >= readingsAlike && wanted(r)
	})
}

// AwaitRequests waits until so many requests have been answered since its start, and for rest.
func (s *Server) AwaitRequests(ctx context.Context, n uint64) (Reading, error) {
	return s.AwaitSettled(ctx, fmt.Sprintf("%d requests", n), func(r Reading) bool { return r.Total.Requests >= n })
}

// AwaitConnections waits until exactly n connections are open.
func (s *Server) AwaitConnections(ctx context.Context, n uint64) (Reading, error) {
	return s.Await(ctx, fmt.Sprintf("%d open connections", n), func(r Reading) bool { return r.Total.Connections == n })
}
