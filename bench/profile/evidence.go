package profile

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// evidence is one thing that can be seen before a change is measured. One kind
// of field is filled in.
type evidence struct {
	Categories []string `yaml:"categories"`
	Saves      float64  `yaml:"saves"` // the share of them that the change can save; below 0 what it adds
	Of         string   `yaml:"of"`    // "changed": of the server after the change

	Outside []string `yaml:"outside"`
	Within  []string `yaml:"within"`

	Counters []string `yaml:"counters"`

	Noise bool `yaml:"noise"`
}

const ofChanged = "changed"

// look shows the evidence, on the first workload.
func (x *experiment) look(ctx context.Context) error {
	workloads, err := x.turn.workloads()
	if err != nil {
		return err
	}
	w := workloads[0]
	records := map[string]*record{}
	var s *sampler
	record := func(server run.Server) (*record, error) {
		if s == nil {
			if s, err = newSampler(ctx, x.lab, ProfilerAuto, x.seconds, x.tell); err != nil {
				return nil, err
			}
		}
		if r := records[server.Name]; r != nil {
			return r, nil
		}
		all, err := s.takeAll(ctx, []run.Server{server}, w, x.step)
		if err != nil {
			return nil, err
		}
		records[server.Name] = all[0][0]
		return all[0][0], nil
	}
	defer func() {
		if s != nil {
			s.close()
		}
	}()
	for _, e := range x.turn.Evidence {
		server := x.base
		if e.Of == ofChanged {
			server = x.changed
		}
		switch {
		case len(e.Categories) > 0:
			r, err := record(server)
			if err != nil {
				return err
			}
			x.showCategories(r, e)
		case len(e.Outside) > 0:
			before, err := record(x.base)
			if err != nil {
				return err
			}
			after, err := record(x.changed)
			if err != nil {
				return err
			}
			x.showOutside(before, after, e)
		case len(e.Counters) > 0:
			if err := x.showCounters(ctx, workloads, e); err != nil {
				return err
			}
		case e.Noise:
			if err := x.showNoise(ctx, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// say prints a sentence, and row a line of a table.
func (x *experiment) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	x.said = append(x.said, text)
	say(x.out, "  ", "    ", text)
}

func (x *experiment) row(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	x.said = append(x.said, text)
	fmt.Fprintln(x.out, "  "+text)
}

// showCategories gives the share of some categories and Amdahl's ceiling.
func (x *experiment) showCategories(r *record, e evidence) {
	parts := r.split()
	var sum float64
	var rows []string
	for _, name := range e.Categories {
		i := slices.Index(categoryNames[:], name)
		sum += parts[i]
		rows = append(rows, fmt.Sprintf("%s %.2f µs", name, parts[i]/1e3))
	}
	share := sum / r.outcome.cpuNanos()
	text := fmt.Sprintf("A request on %s costs %s %.2f µs of CPU time, by %s in %s samples. Of that, %s: %s.",
		r.workload, x.called(r.server), r.outcome.cpuMicros(), r.source, console.Thousands(r.samples), percent(share), strings.Join(rows, ", "))
	switch {
	case e.Saves < 0:
		text += fmt.Sprintf(" With %.0f%% more of it, the server would lose up to %s.", -100*e.Saves, percent(1-1/(1-share*e.Saves)))
	case e.Saves < 1:
		text += fmt.Sprintf(" If %.0f%% of that were saved, the server could gain %s at most.", 100*e.Saves, percent(ceiling(share*e.Saves)))
	default:
		text += fmt.Sprintf(" If none of it were left, the server could gain %s at most.", percent(ceiling(share)))
	}
	x.say("%s", text)
}

// showOutside gives the time in some functions that is not in those below them,
// before and after the change.
func (x *experiment) showOutside(before, after *record, e evidence) {
	x.say("CPU time of a request on %s, by %s:", before.workload, before.source)
	for _, r := range []*record{before, after} {
		within, around := r.outside(e)
		if within+around == 0 {
			x.say("This source does not see into the kernel, where the two calls differ.")
			return
		}
		x.say("%s: %.2f µs (%s) in %s, %.2f µs (%s) in the call around it; %s samples.", x.called(r.server),
			r.perRequest(within)/1e3, percent(float64(within)/float64(r.weight)), strings.Join(e.Within, ", "),
			r.perRequest(around)/1e3, percent(float64(around)/float64(r.weight)), console.Thousands(r.samples))
	}
	x.say("Only the call around it is another one.")
}

// outside weighs the stacks that have one of the inner functions, and those that
// have an outer one alone.
func (r *record) outside(e evidence) (within, around int64) {
	for _, s := range r.stacks {
		has := func(names []string) bool {
			return slices.ContainsFunc(s.frames, func(f frame) bool { return f.kind == kernelCode && slices.Contains(names, f.name) })
		}
		switch {
		case has(e.Within):
			within += s.weight
		case has(e.Outside):
			around += s.weight
		}
	}
	return within, around
}

// showCounters drives the server before and after the change for a moment.
func (x *experiment) showCounters(ctx context.Context, workloads []workload.Workload, e evidence) error {
	const moment = 200 * time.Millisecond
	x.row("%-36s %8s  %16s", "counters, per request", x.base.Name, x.changed.Name)
	for _, w := range workloads {
		var both []outcome
		for _, server := range []run.Server{x.base, x.changed} {
			o, err := x.lab.drive(ctx, server, w, moment)
			if err != nil {
				return err
			}
			both = append(both, o)
		}
		for _, name := range e.Counters {
			x.row("%-36s %8s  %16s", w.Name+": "+strings.ReplaceAll(name, "_", " "), count(both[0].perRequest(name)), count(both[1].perRequest(name)))
		}
	}
	return nil
}

// showNoise measures one server against itself, a few times and briefly.
func (x *experiment) showNoise(ctx context.Context, w workload.Workload) error {
	const times, moment = 8, 300 * time.Millisecond
	var speeds []float64
	for range times {
		o, err := x.lab.drive(ctx, x.base, w, moment)
		if err != nil {
			return err
		}
		speeds = append(speeds, o.result.RequestsPerSecond)
	}
	least, most := slices.Min(speeds), slices.Max(speeds)
	x.say("%s measured %d times, each on its own: from %s to %s requests per second. So any one of these against another is a \"difference\" of up to %s, and nothing has changed.", x.base.Name, times, console.Thousands(int64(least)), console.Thousands(int64(most)), percent(most/least-1))
	return nil
}

var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark(\w+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op`)

// bench runs the turn's benchmarks before and after the change.
func (x *experiment) bench(ctx context.Context) error {
	t := x.turn
	what := t.Benchmark
	var results [2]map[string]float64
	for i, edits := range [][]harness.Edit{nil, t.Edits} {
		source, err := harness.Variant{Stage: t.Stage, Change: harness.Change{Edits: edits}}.Source(ctx, x.lab.root)
		if err != nil {
			return err
		}
		source.Others[what.Folder+"/wrong_turn_test.go"] = []byte(what.Text)
		text, err := source.Go(ctx, "test", "-run", "^$", "-bench", "^Benchmark("+what.Whole+"|"+what.Less+")$", "-benchtime", "200ms", "./"+what.Folder)
		if err != nil {
			return fmt.Errorf("the benchmark of %s fails: %w", t.Name, err)
		}
		results[i] = map[string]float64{}
		for _, m := range benchmarkLine.FindAllStringSubmatch(text, -1) {
			if results[i][m[1]], err = strconv.ParseFloat(m[2], 64); err != nil {
				return err
			}
		}
		if len(results[i]) != 2 {
			return fmt.Errorf("the benchmark of %s printed what is not understood: %s", t.Name, oneLine(text))
		}
	}
	x.say("go test -bench says of %s: %.1f ns before, %.1f ns after (with what it leads to, %.1f and %.1f ns).", what.What,
		results[0][what.Whole]-results[0][what.Less], results[1][what.Whole]-results[1][what.Less], results[0][what.Whole], results[1][what.Whole])
	return nil
}
