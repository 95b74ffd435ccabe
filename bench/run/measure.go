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

	// Rate, when not 0, is the requests per second of this item alone, which stands as Name in the results.
	Rate float64
	Name string
}

// name is what the workload is called in the results.
func (i Item) name() string { return cmp.Or(i.Name, i.Workload.Name) }

// reading is the state of a server at one moment at which nothing is on its way to it.
type reading struct {
	counters harness.Reading // none without an admin listener
	resident int64
	user     int64
	system   int64
	cpus     cpuTicks                               // of all CPUs in use
	server   cpuTicks                               // of the server's
	load     cpuTicks                               // of the generator's
	line     struct{ server, client time.Duration } // stood in line for a CPU so far
	when     time.Time
	mhz      float64 // of the server's CPUs, 0 when unknown

	// Of the threads of both; the generator's is that of the embedded one, while it is there.
	serverSwitches, loadSwitches contextSwitches
}

// contextSwitches counts how often threads gave their CPU away.
type contextSwitches struct {
	waits       int64 // since they had nothing to do
	preemptions int64 // since another had to have it
}

func (a contextSwitches) less(b contextSwitches) contextSwitches {
	return contextSwitches{a.waits - b.waits, a.preemptions - b.preemptions}
}

// look reads a server, and of the generator's process, unless that is 0, how long it stood in line.
func (b *Bench) look(ctx context.Context, s *harness.Server, generator int) (r reading, err error) {
	if s.Ready.Admin != "" {
		if r.counters, err = s.Counters(ctx); err != nil {
			return r, err
		}
	}
	if r.resident, err = resident(s.PID()); err == nil {
		r.user, r.system, err = processTicks(s.PID())
	}
	if err == nil {
		r.serverSwitches, err = switches(s.PID())
	}
	if err == nil {
		r.cpus, err = readCPUs(b.place.inUse())
	}
	if err == nil {
		r.server, err = readCPUs(b.place.Server)
	}
	if err == nil {
		r.load, err = readCPUs(b.place.Load)
	}
	r.line.server, r.line.client = inLine(s.PID()), inLine(generator)
	r.when, r.mhz = time.Now(), megahertz(b.place.Server)
	if err != nil && !s.Alive() {
		return r, s.EndedError("")
	}
	return r, err
}

// lookIdle looks at a server that has nothing to do; where memory is measured, at what lives in it.
func (b *Bench) lookIdle(ctx context.Context, s *harness.Server, w workload.Workload, generator int) (r reading, err error) {
	if w.Idle > 0 && s.Ready.Admin != "" {
		if err := s.Collect(ctx); err != nil {
			return r, err
		}
	}
	return b.look(ctx, s, generator)
}

// measure starts the server, drives it once, and ends it. Whatever happens, no
// process is left when it returns.
func (b *Bench) measure(ctx context.Context, item Item) (m results.Measurement, err error) {
	m = results.Measurement{Server: item.Server.Name, Workload: item.name()}
	server, remove, err := WithFile(item.Server, item.Workload)
	defer remove()
	if err != nil {
		return m, err
	}
	reach := func(address string) string { return address }
	if n := b.networks[server.Network]; n != nil {
		server, reach = n.inside(server), n.reach
	}
	s, err := Start(ctx, server, b.place.Server, cmp.Or(item.Server.Workers, b.Workers))
	if err != nil {
		return m, err
	}
	defer s.Close()
	var result load.Result
	var empty, before, after reading
	if empty, err = b.lookIdle(ctx, s, item.Workload, 0); err != nil {
		return m, err
	}
	if cmp.Or(item.Generator, b.Generator) == Wrk {
		result, before, after, err = b.wrk(ctx, s, item.Workload)
	} else {
		result, before, after, err = b.embedded(ctx, s, reach(s.Ready.Address), item.Workload, cmp.Or(item.Rate, b.Rate))
	}
	if err != nil {
		return m, b.blame(ctx, s, err)
	}
	fill(&m, result, empty, before, after)
	b.fillBusy(&m, result, before, after, cmp.Or(item.Server.Workers, b.Workers))
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
func (b *Bench) embedded(ctx context.Context, s *harness.Server, address string, w workload.Workload, rate float64) (result load.Result, before, after reading, err error) {
	more := []string{"--server-pid", strconv.Itoa(s.PID())}
	if rate > 0 {
		more = append(more, "--rate", strconv.FormatFloat(rate, 'f', -1, 64))
	}
	g, err := OpenGenerator(ctx, Drive{
		Command: b.Command, CPUs: b.place.Load, Address: address, Workload: w, Threads: b.loadThreads(w),
		Warmup: b.Warmup, Duration: b.duration(w), More: more,
	})
	if err != nil {
		return result, before, after, err
	}
	defer g.Close()
	if before, err = b.lookIdle(ctx, s, w, g.PID()); err != nil {
		return result, before, after, err
	}
	if before.loadSwitches, err = switches(g.PID()); err != nil {
		return result, before, after, err
	}
	if err = g.Send(ctx); err != nil {
		return result, before, after, err
	}
	if after, err = b.look(ctx, s, g.PID()); err != nil {
		return result, before, after, err
	}
	if after.loadSwitches, err = switches(g.PID()); err != nil {
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
	m.Late, m.SentLate, m.WokeLate = r.Late, r.SentLate, r.WokeLate
	m.Reconnects, m.StaleDates, m.Undated, m.MHz = r.Reconnects, r.StaleDates, r.Undated, after.mhz
	m.ServerCPUNanos, m.ClientCPUNanos = r.ServerCPUNanosPerRequest, r.ClientCPUNanosPerRequest
	if user, system := after.user-before.user, after.system-before.system; user+system > 0 {
		m.ServerUserShare = float64(user) / float64(user+system)
	}
	m.Resident = after.resident
	connections := float64(max(r.Established, 1))
	m.ResidentPerConnection = float64(before.resident-empty.resident) / connections

	all := after.cpus.less(before.cpus)
	m.OthersShare = all.others(r.ServerCPUNanos + r.ClientCPUNanos)
	if total := all.total(); total > 0 {
		m.StealShare = float64(all.steal) / float64(total)
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
	if n := float64(spent.Total.Requests); n > 0 {
		server, load := after.serverSwitches.less(before.serverSwitches), after.loadSwitches.less(before.loadSwitches)
		m.Counters["server_waits"], m.Counters["server_preemptions"] = float64(server.waits)/n, float64(server.preemptions)/n
		if load != (contextSwitches{}) {
			m.Counters["generator_waits"], m.Counters["generator_preemptions"] = float64(load.waits)/n, float64(load.preemptions)/n
		}
	}
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

// fillBusy says how busy either side was. What counts is the time that it ran, by its own clock, and
// that it stood in line for a CPU, as far as others had that: a server whose CPU is kept busy by
// somebody else is not at its limit for that, and one that others hold up is.
func (b *Bench) fillBusy(m *results.Measurement, r load.Result, before, after reading, workers int) {
	if r.Elapsed <= 0 {
		return
	}
	inLine := func(before, after time.Duration, others float64, cpus []int) float64 {
		return min(after-before, time.Duration(others*r.Elapsed*float64(len(cpus))*float64(time.Second))).Seconds()
	}
	share := func(ns int64, line float64, cpus int) float64 {
		return min(1, (float64(ns)/1e9+line)/(r.Elapsed*float64(max(1, cpus))))
	}
	if b.place.Layout != results.Split {
		pool := b.place.inUse()
		server := inLine(before.line.server, after.line.server, m.OthersShare, pool)
		client := inLine(before.line.client, after.line.client, m.OthersShare, pool)
		// Both may have stood in the same line at the same time.
		if most := m.OthersShare * r.Elapsed * float64(len(pool)); server+client > most {
			server, client = most*server/(server+client), most*client/(server+client)
		}
		m.ServerBusy, m.ClientBusy = share(r.ServerCPUNanos, server, len(pool)), share(r.ClientCPUNanos, client, len(pool))
		return
	}
	m.ServerOthers = after.server.less(before.server).others(r.ServerCPUNanos)
	m.ClientOthers = after.load.less(before.load).others(r.ClientCPUNanos)
	m.ServerBusy = share(r.ServerCPUNanos, inLine(before.line.server, after.line.server, m.ServerOthers, b.place.Server), min(workers, len(b.place.Server)))
	m.ClientBusy = share(r.ClientCPUNanos, inLine(before.line.client, after.line.client, m.ClientOthers, b.place.Load), min(r.Threads, len(b.place.Load)))
}

// total is all of the time.
func (a cpuTicks) total() int64 { return a.busy + a.idle + a.steal }

// others is the share that was neither idle nor own, which is in nanoseconds.
func (a cpuTicks) others(own int64) float64 {
	if a.total() == 0 {
		return 0
	}
	return max(0, float64(a.busy)-float64(own)/float64(tick)) / float64(a.total())
}

// Ended tells whether err only means that somebody stopped the run.
func Ended(err error) bool { return errors.Is(err, context.Canceled) }

// firstLine keeps an error in one line.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
