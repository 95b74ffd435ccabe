package run

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Item is what is measured once in a round: a server under a workload.
type Item struct {
	Server    Server
	Workload  workload.Workload
	Generator string // "" for the one of the whole run
}

// reading is the state of a server at one moment at which nothing is on its way to it.
type reading struct {
	counters harness.Reading // none without an admin listener
	resident int64
	user     int64
	system   int64
	cpus     cpuTicks // of all CPUs in use
	server   cpuTicks // of the server's
	when     time.Time
	mhz      float64 // of the server's CPUs, 0 when unknown
}

func (b *Bench) look(ctx context.Context, s *harness.Server) (r reading, err error) {
	if s.Ready.Admin != "" {
		if r.counters, err = s.Counters(ctx); err != nil {
			return r, err
		}
	}
	if r.resident, err = resident(s.PID()); err == nil {
		r.user, r.system, err = processTicks(s.PID())
	}
	if err == nil {
		r.cpus, err = readCPUs(b.place.inUse())
	}
	if err == nil {
		r.server, err = readCPUs(b.place.Server)
	}
	r.when, r.mhz = time.Now(), megahertz(b.place.Server)
	if err != nil && !s.Alive() {
		return r, s.EndedError("")
	}
	return r, err
}

// lookIdle looks at a server that has nothing to do; where memory is measured, at what lives in it.
func (b *Bench) lookIdle(ctx context.Context, s *harness.Server, w workload.Workload) (r reading, err error) {
	if w.Idle > 0 && s.Ready.Admin != "" {
		if err := s.Collect(ctx); err != nil {
			return r, err
		}
	}
	return b.look(ctx, s)
}

// measure starts the server, drives it once, and ends it. Whatever happens, no
// process is left when it returns.
func (b *Bench) measure(ctx context.Context, item Item) (m results.Measurement, err error) {
	m = results.Measurement{Server: item.Server.Name, Workload: item.Workload.Name}
	server, remove, err := WithFile(item.Server, item.Workload)
	defer remove()
	if err != nil {
		return m, err
	}
	s, err := Start(ctx, server, b.place.Server, cmp.Or(item.Server.Workers, b.Workers))
	if err != nil {
		return m, err
	}
	defer s.Close()
	var result load.Result
	var empty, before, after reading
	if empty, err = b.lookIdle(ctx, s, item.Workload); err != nil {
		return m, err
	}
	if cmp.Or(item.Generator, b.Generator) == Wrk {
		result, before, after, err = b.wrk(ctx, s, item.Workload)
	} else {
		result, before, after, err = b.embedded(ctx, s, item.Workload)
	}
	if err != nil {
		return m, b.blame(ctx, s, err)
	}
	fill(&m, result, empty, before, after)
	if stopErr := s.Stop(); stopErr != nil {
		return m, stopErr
	}
	return m, nil
}

// blame finds the better error: a generator that lost its server can only say that it did.
func (b *Bench) blame(ctx context.Context, s *harness.Server, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_ = s.Wait(time.Second)
	if !s.Alive() {
		return s.EndedError("while it was being measured")
	}
	return err
}

// embedded drives s with the generator of this project, a process of its own.
// The server is read while all connections are open and at rest.
func (b *Bench) embedded(ctx context.Context, s *harness.Server, w workload.Workload) (result load.Result, before, after reading, err error) {
	more := []string{"--server-pid", strconv.Itoa(s.PID())}
	if b.Rate > 0 {
		more = append(more, "--rate", strconv.FormatFloat(b.Rate, 'f', -1, 64))
	}
	g, err := OpenGenerator(ctx, Drive{
		Command: b.Command, CPUs: b.place.Load, Address: s.Ready.Address, Workload: w, Threads: b.loadThreads(w),
		Warmup: b.Warmup, Duration: b.duration(w), More: more,
	})
	if err != nil {
		return result, before, after, err
	}
	defer g.Close()
	if before, err = b.lookIdle(ctx, s, w); err != nil {
		return result, before, after, err
	}
	if err = g.Send(ctx); err != nil {
		return result, before, after, err
	}
	if after, err = b.look(ctx, s); err != nil {
		return result, before, after, err
	}
	result, err = g.Result(ctx)
	return result, before, after, err
}

// fill makes a measurement of what the generator and the server say.
func fill(m *results.Measurement, r load.Result, empty, before, after reading) {
	m.RequestsPerSecond, m.Requests, m.Seconds = r.RequestsPerSecond, r.Requests, r.Seconds
	m.Established, m.ConnectErrors, m.Errors = r.Established, r.ConnectErrors, r.Errors
	m.Latency, m.Histogram, m.Unsent = r.Latency, r.Histogram, r.Unsent
	m.Reconnects, m.StaleDates, m.MHz = r.Reconnects, r.StaleDates, after.mhz
	m.ServerCPUNanos, m.ClientCPUNanos = r.ServerCPUNanosPerRequest, r.ClientCPUNanosPerRequest
	if user, system := after.user-before.user, after.system-before.system; user+system > 0 {
		m.ServerUserShare = float64(user) / float64(user+system)
	}
	m.Resident = after.resident
	connections := float64(max(r.Established, 1))
	m.ResidentPerConnection = float64(before.resident-empty.resident) / connections

	server, all := after.server.less(before.server), after.cpus.less(before.cpus)
	// What other processes took of the CPUs was neither the server's nor idle.
	if own := float64(r.ServerCPUNanos) / float64(tick); own > 0 {
		m.ServerBusy = own / (own + float64(server.idle))
	}
	if total := all.busy + all.idle + all.steal; total > 0 {
		m.StealShare = float64(all.steal) / float64(total)
		ours := float64(r.ServerCPUNanos+r.ClientCPUNanos) / float64(tick)
		m.OthersShare = max(0, (float64(all.busy)-ours)/float64(total))
	}

	if after.counters.Number == 0 {
		return
	}
	if m.Counters = after.counters.PerRequest(before.counters); m.Counters == nil {
		m.Counters = map[string]float64{}
	}
	delete(m.Counters, "gc_cycles") // m has it, for the whole time
	delete(m.Counters, "cpu_ns")    // the generator has read it
	spent := after.counters.Sub(before.counters)
	m.GCCycles = spent.Process.GCCycles
	for i, loop := range spent.Loops {
		m.LoopRequests = append(m.LoopRequests, int64(loop.Requests))
		m.LoopConnections = append(m.LoopConnections, int64(before.counters.Loops[i].Connections))
	}
	if r.Idle > 0 {
		m.HeapPerConnection = float64(before.counters.Process.HeapBytes-empty.counters.Process.HeapBytes) / connections
	}
	m.HeldPerConnection = float64(int64(before.counters.Total.HeldBytes)) / connections
}

// Ended tells whether err only means that somebody stopped the run.
func Ended(err error) bool { return errors.Is(err, context.Canceled) }

// firstLine keeps an error in one line.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
