package profile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// What takes a profile.
const (
	ProfilerAuto = "auto" // what is best of those that work
	ProfilerBoth = "both" // Go's, and perf's where it works
	ProfilerGo   = "go"
	ProfilerPerf = "perf"
)

// goSource is what the CPU profile of Go is called in tables and pages.
const goSource = "Go CPU profile"

// goCPURate is what net/http/pprof samples at, in Hz of CPU time.
const goCPURate = 100

// goLength and perfLength are how long is recorded unless the user says
// otherwise: Go's profiler takes 20 times fewer samples.
const (
	goLength   = 5 * time.Second
	perfLength = 3 * time.Second
)

// sampler takes profiles of servers, one after the other, with the sources that
// were found to work.
type sampler struct {
	lab     *lab
	useGo   bool
	perf    *perfRecorder // nil without
	seconds time.Duration // 0: as long as suits the source
	tell    func(string, ...any)
	told    bool // that the kernel's names are hidden
}

// newSampler finds out which sources there are, and tells which will be used and
// what it takes to have the other.
func newSampler(ctx context.Context, l *lab, source string, seconds time.Duration, tell func(string, ...any)) (*sampler, error) {
	s := &sampler{lab: l, seconds: seconds, tell: tell}
	switch source {
	case ProfilerAuto, ProfilerBoth, ProfilerGo, ProfilerPerf:
	default:
		return nil, fmt.Errorf("there is no profiler %q: choose %s, %s, %s or %s", source, ProfilerAuto, ProfilerBoth, ProfilerGo, ProfilerPerf)
	}
	if source == ProfilerGo {
		s.useGo = true
		tell("source: the CPU profile of Go (%d samples per second of CPU time)", goCPURate)
		return s, nil
	}
	perf, err := newPerfRecorder(ctx, l.place.Own)
	var no *perfUnavailable
	switch {
	case err == nil:
		s.perf = perf
		s.useGo = source == ProfilerBoth
		if s.useGo {
			tell("sources: the CPU profile of Go, and %s, which sees into the kernel", perf.describe())
		} else {
			tell("source: %s; --profiler go takes the CPU profile of Go, which needs no permission", perf.describe())
		}
	case errors.As(err, &no) && source != ProfilerPerf:
		s.useGo = true
		tell("source: the CPU profile of Go (%d samples per second of CPU time), which does not see into the kernel. %s", goCPURate, no.reason)
	default:
		return nil, err
	}
	return s, nil
}

func (p *perfRecorder) describe() string {
	if p.event == softwareEvent {
		return fmt.Sprintf("perf record -g with %s (no hardware counters here)", p.event)
	}
	return fmt.Sprintf("perf record -g with %s", p.event)
}

func (s *sampler) close() {
	if s.perf != nil {
		s.perf.remove()
	}
}

// take starts a server, records it under a workload with every source, one after
// the other, and ends it. Records of different times can be joined.
func (s *sampler) take(ctx context.Context, server run.Server, w workload.Workload) (records []*record, err error) {
	err = s.lab.session(ctx, server, func(running *session) error {
		for _, take := range []struct {
			wanted bool
			record func(context.Context, *session, workload.Workload) (*record, error)
		}{{s.useGo, s.takeGo}, {s.perf != nil, s.takePerf}} {
			if !take.wanted {
				continue
			}
			r, err := take.record(ctx, running, w)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", server.Name, w.Name, err)
			}
			records = append(records, r)
		}
		return nil
	})
	return records, err
}

// takeAll records servers twice, the second time in reverse order and each time
// for half as long, so that a machine that gets slower or faster meanwhile does
// so for all of them alike.
func (s *sampler) takeAll(ctx context.Context, servers []run.Server, w workload.Workload, step func(string, ...any)) ([][]*record, error) {
	defer step("")
	all := make([][]*record, len(servers))
	for pass := range 2 {
		for n := range servers {
			if pass == 1 {
				n = len(servers) - 1 - n
			}
			step("recording %s on %s, %d of 2", servers[n].Name, w.Name, pass+1)
			records, err := s.take(ctx, servers[n], w)
			if err != nil {
				return nil, err
			}
			for i, r := range records {
				if pass == 0 {
					all[n] = append(all[n], r)
				} else if err := all[n][i].join(r); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, records := range all {
		for _, r := range records {
			r.profile.Comments = r.about()
		}
	}
	return all, nil
}

// join adds a second recording of the same kind to r.
func (r *record) join(o *record) error {
	merged, err := profile.Merge([]*profile.Profile{r.profile, o.profile})
	if err != nil {
		return fmt.Errorf("two recordings of %s do not fit together: %w", r.server, err)
	}
	r.profile = merged
	r.stacks = append(r.stacks, o.stacks...)
	r.samples += o.samples
	r.weight += o.weight
	r.outcome.add(o.outcome)
	return nil
}

// length is that of one of the two recordings.
func (s *sampler) length(preset time.Duration) time.Duration {
	if s.seconds > 0 {
		preset = s.seconds
	}
	return preset / 2
}

func (s *sampler) takeGo(ctx context.Context, server *session, w workload.Workload) (*record, error) {
	length := s.length(goLength)
	recorder := &goRecorder{seconds: int(math.Ceil(length.Seconds())) + 1}
	o, err := server.drive(ctx, w, length, recorder)
	if err != nil {
		return nil, err
	}
	return newRecord(recorder.profile, server.Name, w.Name, goSource, o)
}

func (s *sampler) takePerf(ctx context.Context, server *session, w workload.Workload) (*record, error) {
	o, err := server.drive(ctx, w, s.length(perfLength), s.perf)
	if err != nil {
		return nil, err
	}
	p, err := s.perf.profile(ctx)
	if err != nil {
		return nil, err
	}
	r, err := newRecord(p, server.Name, w.Name, "perf ("+s.perf.event+")", o)
	if err == nil && r.kernelIsNameless() && !s.told {
		s.told = true
		s.tell("the kernel hides the names of its functions, so that its part is in whole system calls: sudo sysctl kernel.kptr_restrict=0 shows them")
	}
	return r, err
}

// takeRunning records a server that somebody else started and drives. Its
// requests go on at both ends, so that what comes to one is a little less exact.
func takeRunning(ctx context.Context, address string, length time.Duration) (*record, error) {
	address = strings.TrimSuffix(strings.TrimPrefix(address, "http://"), "/")
	if strings.HasPrefix(address, ":") {
		address = "127.0.0.1" + address
	}
	a := remoteAdmin(address)
	before, err := a.counters(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; is that the -admin address of a stage that runs?", err)
	}
	begin := time.Now()
	recording, err := recordCPU(ctx, a, int(math.Ceil(length.Seconds())))
	if err != nil {
		return nil, err
	}
	p, err := recording.result(ctx)
	if err != nil {
		return nil, err
	}
	after, err := a.counters(ctx)
	if err != nil {
		return nil, err
	}
	o, err := outcomeOf(before, after, time.Since(begin).Seconds())
	if err != nil {
		return nil, fmt.Errorf("%s at %s got no request in %.0f s: %w", after.Stage, address, o.seconds, err)
	}
	return newRecord(p, after.Stage, "running", goSource, o)
}

// goRecorder records with the profiler in the server, whole seconds.
type goRecorder struct {
	seconds   int
	recording *cpuRecording
	profile   *profile.Profile
}

func (r *goRecorder) start(ctx context.Context, s *session) (err error) {
	r.recording, err = recordCPU(ctx, s, r.seconds)
	return err
}

// finish awaits the end of the profile: until then no connection may be closed.
// On a busy machine the load may take longer than the profile, which then has
// the first part of it: what each part of the code takes is a share of the
// samples, so that fewer of them do no harm.
func (r *goRecorder) finish(ctx context.Context) (err error) {
	r.profile, err = r.recording.result(ctx)
	return err
}

func (r *goRecorder) abandon() {}

// about is what a profile says of itself.
func (r *record) about() []string {
	return []string{
		fmt.Sprintf("%s on %s, by %s", r.server, r.workload, r.source),
		fmt.Sprintf("%s samples of %s requests in %.1f s", console.Thousands(r.samples), console.Thousands(r.outcome.requests), r.outcome.seconds),
		fmt.Sprintf("%.2f µs of server CPU per request", r.outcome.cpuMicros()),
	}
}
