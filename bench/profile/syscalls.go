package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Syscalls counts the system calls per request of stages: their own counters, beside them what
// strace counts where it is installed, and for a single stage what perf saw where it is allowed. No
// stages means all.
func Syscalls(ctx context.Context, o Options, stages []string) (*CallTable, error) {
	l, servers, w, err := o.prepare(ctx, stages)
	if err != nil {
		return nil, err
	}
	strace, err := newStraceRecorder(l.place.Own)
	if err != nil {
		o.Tell("%v", err)
	} else {
		defer strace.remove()
	}
	var perf *perfRecorder
	if strace != nil && len(servers) == 1 {
		var no *perfUnavailable
		if perf, err = newPerfRecorder(ctx, l.place.Own); err == nil {
			defer perf.remove()
		} else if errors.As(err, &no) {
			o.Tell("perf's view is left out: %s", no.reason)
		} else {
			return nil, err
		}
	}
	if len(servers) == 1 {
		o.step("counting %s on %s", servers[0].Name, w.Name)
		v, err := l.countCalls(ctx, servers[0], w, cmp.Or(o.Duration, oneLength), strace, perf)
		if err != nil {
			return nil, err
		}
		o.step("")
		v.text(o.Out)
		return newCallTable(w.Name, v), nil
	}
	// At full speed, and then once more under strace, which is another pace.
	var free, traced []*callView
	for _, server := range servers {
		o.step("counting %s on %s", server.Name, w.Name)
		v, err := l.countCalls(ctx, server, w, cmp.Or(o.Duration, eachLength), nil, nil)
		if err != nil {
			return nil, err
		}
		free = append(free, v)
		if strace == nil {
			continue
		}
		if v, err = l.countCalls(ctx, server, w, cmp.Or(o.Duration, eachLength), strace, nil); err != nil {
			return nil, err
		}
		traced = append(traced, v)
	}
	o.step("")
	callTable(o.Out, free, traced)
	return newCallTable(w.Name, append(free, traced...)...), nil
}

// CallTable is how many system calls a request takes, as `ladder syscalls` writes it as JSON.
type CallTable struct {
	header
	Workload string    `json:"workload"`
	Runs     []CallRun `json:"runs"`
}

// CallRun is one run of one server. Calls are by name, and per request.
type CallRun struct {
	Server        string             `json:"server"`
	Requests      int64              `json:"requests"`
	Counters      map[string]float64 `json:"counters"`             // as the server counts them
	Strace        map[string]float64 `json:"strace,omitempty"`     // as strace does, whose presence slows the server down
	PerfShare     map[string]float64 `json:"perf_share,omitempty"` // of perf's samples in the calls that the server counts
	ReadsInVain   float64            `json:"reads_in_vain"`
	EventsPerWait float64            `json:"events_per_wait"`
	Handoffs      float64            `json:"handoffs"` // to another thread
}

func newCallTable(workload string, views ...*callView) *CallTable {
	t := &CallTable{header: newHeader("syscalls"), Workload: workload}
	for _, v := range views {
		run := CallRun{
			Server: v.server, Requests: v.outcome.requests, Counters: map[string]float64{},
			ReadsInVain: v.readsInVain(), EventsPerWait: v.eventsPerWait(), Handoffs: v.handoffs(),
		}
		for name, n := range v.own {
			run.Counters[name] = v.perRequest(n)
		}
		if v.strace != nil {
			run.Strace = map[string]float64{}
			for name, c := range v.strace {
				run.Strace[name] = v.perRequest(c.calls)
			}
		}
		if v.perf != nil {
			run.PerfShare = map[string]float64{}
			for _, c := range harness.SystemCalls {
				run.PerfShare[c.Name()] = v.perf.share(c.Name())
			}
		}
		t.Runs = append(t.Runs, run)
	}
	return t
}

// One stage is looked at for longer, so that perf's samples are enough to compare.
const (
	oneLength  = 3 * time.Second
	eachLength = 500 * time.Millisecond
)

// isOwn tells whether the server counts a system call.
func isOwn(name string) bool {
	return slices.ContainsFunc(harness.SystemCalls, func(c harness.SystemCall) bool { return c.Name() == name })
}

// callView is one run of one server as its counters, strace and perf saw it.
type callView struct {
	server   string
	workload string
	outcome  outcome
	queued   int64 // calls for connections that wait to be accepted at both ends of the counting
	own      map[string]int64
	strace   map[string]straceCount // nil without
	perf     *perfCalls             // nil without
}

func (v *callView) perRequest(calls int64) float64 {
	return float64(calls) / float64(v.outcome.requests)
}

// all is the number of all calls that the server counts.
func (v *callView) all() (sum int64) {
	for _, n := range v.own {
		sum += n
	}
	return sum
}

// allTraced is how often strace saw those calls.
func (v *callView) allTraced() (sum int64) {
	for _, c := range harness.SystemCalls {
		sum += v.strace[c.Name()].calls
	}
	return sum
}

func (v *callView) readsInVain() float64 { return v.outcome.perRequest("read_agains") }
func (v *callView) handoffs() float64    { return v.outcome.perRequest("handoffs") }

func (v *callView) eventsPerWait() float64 {
	total := v.outcome.counters.Total
	return float64(total.Events) / math.Max(1, float64(total.EpollWaits))
}

// countCalls drives a server once while all look on. strace and perf may be nil.
func (l *lab) countCalls(ctx context.Context, server run.Server, w workload.Workload, length time.Duration, strace *straceRecorder, perf *perfRecorder) (v *callView, err error) {
	var recorders []recorder
	if strace != nil {
		recorders = append(recorders, strace)
	}
	if perf != nil {
		recorders = append(recorders, perf)
	}
	o, err := l.drive(ctx, server, w, length, recorders...)
	if err != nil {
		return nil, err
	}
	v = &callView{server: server.Name, workload: w.Name, outcome: o, own: map[string]int64{}}
	counts := o.counters.Counts()
	for _, c := range harness.SystemCalls {
		v.own[c.Name()] = harness.CallsOf(c, counts)
	}
	if w.Reconnect {
		v.queued = 2 * int64(w.Connections) // two epoll_ctl each, one for its timer
	}
	if strace != nil {
		v.strace = strace.calls
	}
	if perf != nil {
		p, err := perf.profile(ctx)
		if err != nil {
			return nil, err
		}
		r, err := newRecord(p, server.Name, w.Name, "perf", o)
		if err != nil {
			return nil, err
		}
		v.perf = callsOf(r)
	}
	return v, nil
}

// perfCalls is what samples say of system calls.
type perfCalls struct {
	samples map[string]int64 // in each call, strace's own work left out
	tracing int64            // of all, those that are strace's own work
	all     int64
}

// callsOf counts samples by the system call that they lie in.
func callsOf(r *record) *perfCalls {
	p := &perfCalls{samples: map[string]int64{}}
	for i, s := range r.stacks {
		n := r.profile.Sample[i].Value[0]
		p.all += n
		switch {
		case isTracing(s.frames):
			p.tracing += n
		default:
			if call := callOf(s.frames); call != "" {
				p.samples[call] += n
			}
		}
	}
	return p
}

// isTracing tells whether a stack is there because the process is traced: the
// kernel reports each call to strace, before and after, and waits for it.
func isTracing(frames []frame) bool {
	for _, f := range frames {
		if f.kind != kernelCode {
			return false
		}
		if strings.Contains(f.name, "ptrace") || strings.HasPrefix(f.name, "syscall_trace_") || strings.HasPrefix(f.name, "trace_syscall_") ||
			strings.HasPrefix(f.name, "syscall_exit_work") {
			return true
		}
	}
	return false
}

// callOf is the name of the system call that a stack lies in, "" if in none.
func callOf(frames []frame) string {
	if frames[0].kind != kernelCode {
		return ""
	}
	for _, f := range frames {
		if f.kind == kernelCode {
			if call, ok := strings.CutPrefix(f.name, kernelPrefix); ok {
				return call
			}
			for _, prefix := range []string{"__x64_sys_", "__arm64_sys_"} {
				if call, ok := strings.CutPrefix(f.name, prefix); ok {
					return call
				}
			}
			continue
		}
		if call, ok := wrapperCalls[f.name]; ok {
			return call
		}
		if call, ok := runtimeCalls[f.name]; ok {
			return call
		}
	}
	return ""
}

// inCalls is the number of samples in system calls that the server counts.
func (p *perfCalls) inCalls() (sum int64) {
	for name, n := range p.samples {
		if isOwn(name) {
			sum += n
		}
	}
	return sum
}

// share is the part of those samples that lie in one of them.
func (p *perfCalls) share(name string) float64 {
	return float64(p.samples[name]) / math.Max(1, float64(p.inCalls()))
}

// waitCall is the one that may wait: time in it is not time lost.
const waitCall = "epoll_pwait"

// straceShare writes the part of the time in the server's own calls that strace
// gives to one of them.
func (v *callView) straceShare(name string) string {
	var sum float64
	for _, c := range harness.SystemCalls {
		if c.Name() != waitCall {
			sum += v.strace[c.Name()].share
		}
	}
	if sum == 0 || name == waitCall {
		return "(it waits)"
	}
	return percent(v.strace[name].share / sum)
}

// text shows one run from all sides.
func (v *callView) text(out io.Writer) {
	fmt.Fprintf(out, "System calls of %s on %s, per request; %s requests\n\n", harness.ShortName(v.server), v.workload, console.Thousands(v.outcome.requests))
	rows := [][]string{{"", "its counters"}}
	add := func(i int, cells ...string) { rows[i] = append(rows[i], cells...) }
	if v.strace != nil {
		add(0, "strace", "strace: time")
	}
	if v.perf != nil {
		add(0, "perf: time", "perf: samples")
	}
	var traced int64
	for _, c := range harness.SystemCalls {
		name := c.Name()
		if v.own[name] == 0 {
			continue // strace may have seen the runtime make some
		}
		traced += v.strace[name].calls
		rows = append(rows, []string{name, fmt.Sprintf("%.3f", v.perRequest(v.own[name]))})
		if v.strace != nil {
			add(len(rows)-1, fmt.Sprintf("%.3f", v.perRequest(v.strace[name].calls)), v.straceShare(name))
		}
		if v.perf != nil {
			add(len(rows)-1, percent(v.perf.share(name)), console.Thousands(v.perf.samples[name]))
		}
	}
	rows = append(rows, []string{"all of these", fmt.Sprintf("%.3f", v.perRequest(v.all()))})
	if v.strace != nil {
		add(len(rows)-1, fmt.Sprintf("%.3f", v.perRequest(traced)))
	}
	console.Table(out, rows)
	notes := v.notes()
	if len(notes) > 0 {
		fmt.Fprintln(out)
	}
	for _, line := range notes {
		say(out, "", "  ", line)
	}
}

// notes say whether the views agree, and what to think of them.
func (v *callView) notes() (out []string) {
	if v.strace == nil {
		return nil
	}
	worst, name := v.disagreement()
	more := v.surplus()
	switch {
	case name != "":
		out = append(out, fmt.Sprintf("The two counts differ by %s calls of %s, and should not.", console.Thousands(worst), name))
	case v.outcome.requests < 10*slack:
		out = append(out, "These are too few requests to compare the counts by: --duration 10s makes more.")
	case len(more) == 0:
		out = append(out, "The two counts agree.")
	default:
		whose := "the Go runtime's own"
		if v.queued > 0 {
			whose += ", and those of connections that came while strace began or ended"
		}
		out = append(out, "The two counts agree. What strace has more is "+whose+": "+strings.Join(more, ", ")+".")
	}
	var others []string
	for _, name := range slices.Sorted(maps.Keys(v.strace)) {
		if v.own[name] == 0 {
			others = append(others, fmt.Sprintf("%s %s", name, console.Thousands(v.strace[name].calls)))
		}
	}
	if len(others) > 0 {
		out = append(out, "Beside these strace saw calls of the Go runtime and of the admin listener: "+strings.Join(others, ", ")+".")
	}
	out = append(out, "strace: time is mostly strace's own, about the same for every call: it finds what is called often.")
	if v.perf != nil {
		out = append(out,
			fmt.Sprintf("perf: time is what the samples say once the tracing itself is left out (%s of all %s samples): it finds what takes long.", percent(float64(v.perf.tracing)/float64(v.perf.all)), console.Thousands(v.perf.all)),
			"A call that strace puts high and perf low is short and frequent. Count it with strace, weigh it with perf.")
	}
	return out
}

// slack is by how many calls the counts may differ: the Go runtime and the
// admin listener make some of the same name, and the server counts none of those.
const slack = 60

// runtimePolls is how often the Go runtime may look at its own epoll meanwhile:
// it does when the admin listener is asked, some ten times for each reading.
const runtimePolls = 200

// explained is by how many calls of a name the counts may differ.
func (v *callView) explained(name string) int64 {
	most := int64(slack)
	if name == waitCall {
		most = runtimePolls
	}
	return max(most+v.queued, v.own[name]/100)
}

// disagreement finds the call whose counts differ by more than can be explained.
func (v *callView) disagreement() (worst int64, name string) {
	for _, c := range harness.SystemCalls {
		difference := v.strace[c.Name()].calls - v.own[c.Name()]
		if difference < 0 {
			difference = -difference
		}
		if difference > v.explained(c.Name()) && difference > worst {
			worst, name = difference, c.Name()
		}
	}
	return worst, name
}

// surplus lists by how many calls strace has more than the server counts.
func (v *callView) surplus() (out []string) {
	for _, c := range harness.SystemCalls {
		if n := v.strace[c.Name()].calls - v.own[c.Name()]; n > 0 && v.own[c.Name()] > 0 {
			out = append(out, fmt.Sprintf("%s %s", c.Name(), console.Thousands(n)))
		}
	}
	return out
}

// callTable shows several servers side by side, by their own counters.
// traced, where there is strace, are further runs of the same.
func callTable(out io.Writer, views, traced []*callView) {
	fmt.Fprintf(out, "System calls per request on %s, by the servers' own counters\n\n", views[0].workload)
	rows := [][]string{{""}}
	for _, v := range views {
		rows[0] = append(rows[0], harness.ShortName(v.server))
	}
	row := func(name string, views []*callView, value func(*callView) float64) {
		cells := []string{name}
		for _, v := range views {
			if n := value(v); n == 0 {
				cells = append(cells, "–")
			} else {
				cells = append(cells, fmt.Sprintf("%.3f", n))
			}
		}
		rows = append(rows, cells)
	}
	space := func() { rows = append(rows, nil) }
	for _, c := range harness.SystemCalls {
		if slices.ContainsFunc(views, func(v *callView) bool { return v.own[c.Name()] > 0 }) {
			row(c.Name(), views, func(v *callView) float64 { return v.perRequest(v.own[c.Name()]) })
		}
	}
	all := func(v *callView) float64 { return v.perRequest(v.all()) }
	row("all", views, all)
	space()
	row("reads in vain", views, (*callView).readsInVain)
	row("events per wait", views, (*callView).eventsPerWait)
	row("thread hand-offs", views, (*callView).handoffs)
	if len(traced) > 0 {
		space()
		row("traced: all, counters", traced, all)
		row("traced: all, strace", traced, func(v *callView) float64 { return v.perRequest(v.allTraced()) })
	}
	console.Table(out, rows)
	if len(traced) > 0 {
		fmt.Fprintln(out)
		agree := true
		for _, v := range traced {
			if worst, name := v.disagreement(); name != "" {
				agree = false
				say(out, "", "  ", fmt.Sprintf("%s: strace and the counters differ by %s calls of %s, and should not.", harness.ShortName(v.server), console.Thousands(worst), name))
			}
		}
		if agree {
			say(out, "", "  ", fmt.Sprintf("The two counts agree: at each stage strace has at most %d more of any call, which the Go runtime made or a connection that came while strace began or ended.", mostSurplus(traced)))
		}
		say(out, "", "  ", "Traced, a server is slower, so it finds another number of events at each epoll_pwait.")
	}
	say(out, "", "  ", "Name one stage to see what its counters, strace and perf make of each call.")
}

// mostSurplus is by how many calls strace has more of any call, at the most.
func mostSurplus(views []*callView) (most int64) {
	for _, v := range views {
		for _, c := range harness.SystemCalls {
			most = max(most, v.strace[c.Name()].calls-v.own[c.Name()])
		}
	}
	return most
}
