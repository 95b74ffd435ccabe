package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Stat counts with perf stat what the CPU does for a request: instructions, cycles and misses where
// there are hardware counters, and what the kernel counts everywhere. No stages means all.
func Stat(ctx context.Context, o Options, stages []string) error {
	if _, err := exec.LookPath("perf"); err != nil {
		return errors.New("perf is not installed: your distribution has it as linux-perf, linux-tools or perf")
	}
	l, servers, w, err := o.prepare(ctx, stages)
	if err != nil {
		return err
	}
	var views []*statView
	for _, server := range servers {
		o.Tell("counting %s on %s", server.Name, w.Name)
		v, err := l.stat(ctx, server, w, cmp.Or(o.Duration, statLength))
		if err != nil {
			return err
		}
		views = append(views, v)
	}
	statTable(o.Out, views)
	return nil
}

const statLength = time.Second

// statEvents are what is counted, and how it is called in the table.
var statEvents = []struct {
	event, name string
	hardware    bool
	inKernel    bool // it happens in the kernel only: where that may not be looked into, perf counts none
}{
	{"instructions", "instructions", true, false},
	{"cycles", "cycles", true, false},
	{"cache-references", "cache references", true, false},
	{"cache-misses", "cache misses", true, false},
	{"branches", "branches", true, false},
	{"branch-misses", "branch misses", true, false},
	{"context-switches", "context switches", false, true},
	{"cpu-migrations", "CPU migrations", false, true},
	{"page-faults", "page faults", false, false},
}

// statView is what perf stat counted of one server.
type statView struct {
	server   string
	workload string
	requests int64
	counts   statCounts
}

// statCounts is what perf stat printed.
type statCounts struct {
	of       map[string]float64 // by event; what could not be counted is missing
	userOnly bool               // the kernel's part was not counted: perf may not look into it
}

func (l *lab) stat(ctx context.Context, server run.Server, w workload.Workload, length time.Duration) (v *statView, err error) {
	recorder := &statRecorder{tool: tool{cpus: l.place.Own}}
	o, err := l.drive(ctx, server, w, length, recorder)
	if err != nil {
		return nil, err
	}
	return &statView{server: server.Name, workload: w.Name, requests: o.requests, counts: recorder.counts}, nil
}

// statRecorder runs perf stat beside a server.
type statRecorder struct {
	tool
	counts statCounts
}

func (r *statRecorder) start(ctx context.Context, s *session) error {
	var events []string
	for _, e := range statEvents {
		events = append(events, e.event)
	}
	return r.startPerf(ctx, s, "stat", "-x", ",", "-e", strings.Join(events, ","))
}

func (r *statRecorder) finish(context.Context) error {
	err := r.stop()
	if err == nil {
		r.counts, err = parseStat(r.process.Stderr())
	}
	return err
}

// parseStat reads what perf stat -x, prints: value, unit, event, and more. What
// cannot be counted has a value in angle brackets; an event that ends in :u was
// counted outside the kernel only.
func parseStat(text string) (counts statCounts, err error) {
	counts.of = map[string]float64{}
	known := false
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if len(f) < 3 {
			continue
		}
		event, modifier, _ := strings.Cut(f[2], ":")
		for _, e := range statEvents {
			if e.event != event {
				continue
			}
			known = true
			counts.userOnly = counts.userOnly || modifier == "u"
			if v, err := strconv.ParseFloat(f[0], 64); err == nil && !(e.inKernel && modifier == "u") {
				counts.of[event] = v
			}
		}
	}
	if !known {
		return counts, fmt.Errorf("what perf stat printed is not understood: %s", oneLine(text))
	}
	return counts, nil
}

func statTable(out io.Writer, views []*statView) {
	fmt.Fprintf(out, "Per request on %s, by perf stat\n\n%-18s", views[0].workload, "")
	for _, v := range views {
		fmt.Fprintf(out, " %9s", harness.ShortName(v.server))
	}
	fmt.Fprintln(out)
	var missing []string
	hardware := false
	for _, e := range statEvents {
		if _, ok := views[0].counts.of[e.event]; !ok {
			missing = append(missing, e.name)
			continue
		}
		hardware = hardware || e.hardware
		fmt.Fprintf(out, "%-18s", e.name)
		for _, v := range views {
			n := v.counts.of[e.event] / float64(v.requests)
			format := " %9.4f"
			if n >= 10 {
				format = " %9.0f"
			}
			fmt.Fprintf(out, format, n)
		}
		fmt.Fprintln(out)
	}
	if _, ok := views[0].counts.of["cycles"]; ok {
		fmt.Fprintf(out, "%-18s", "instr. per cycle")
		for _, v := range views {
			fmt.Fprintf(out, " %9.2f", v.counts.of["instructions"]/v.counts.of["cycles"])
		}
		fmt.Fprintln(out)
	}
	if len(missing) == 0 {
		return
	}
	fmt.Fprintln(out)
	if views[0].counts.userOnly {
		say(out, "", "  ", "What happens in the kernel is not counted, as perf may not look into it. All of it is after:")
		fmt.Fprintln(out, "  sudo sysctl kernel.perf_event_paranoid=1")
	}
	say(out, "", "  ", "Not counted here: "+strings.Join(missing, ", ")+".")
	if !hardware {
		say(out, "", "  ", "There are no hardware counters: most virtual machines have none. On real hardware this table has them.")
	}
}
