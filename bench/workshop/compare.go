package workshop

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
)

// lengths are those of one of the two comparisons.
type lengths struct {
	rounds                 int // 0: as many as fit in time
	time, warmup, duration time.Duration
}

var usual = lengths{time: 40 * time.Second, warmup: 100 * time.Millisecond, duration: 400 * time.Millisecond}

// compare measures the learner's server against the start and against the reference, in the same rounds
// each. It is information: nothing is graded by how fast it is. command has the subcommand load, the generator; keep
// gets the requests per second against the start.
func compare(ctx context.Context, o *output, root string, e *Exercise, own files, name, command string, long lengths, keep func(workload string, m grade.Measured) error) error {
	if name == "" {
		name = e.Measure
	}
	if name == "" {
		name = workload.Hello
	}
	w, err := workload.ByName(name)
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "ladder-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	servers := map[string]run.Server{}
	for label, source := range map[string]func(string) (files, error){
		"start": e.start, "reference": e.reference,
		"yours": func(string) (files, error) { return own, nil },
	} {
		f, err := source(root)
		if err != nil {
			return err
		}
		o.working("building " + label)
		binary, err := f.buildIn(ctx, root, temporary, label)
		if err != nil {
			return err
		}
		servers[label] = run.Server{Name: label, Path: binary, Admin: true}
	}
	o.say("Measured with %s (%s), for information:", w.Name, w.Summary)
	for _, base := range []string{"start", "reference"} {
		b := &run.Bench{
			Rounds: long.rounds, Time: long.time, Warmup: long.warmup, Duration: long.duration,
			Generator: run.Embedded, Command: command, Seed: uint64(time.Now().UnixNano()),
		}
		b.Pair(servers[base], servers["yours"], w)
		b.Progress = func(p run.Progress) {
			o.working(fmt.Sprintf("measuring against the %s: round %d of %d", base, p.Round, p.Rounds))
		}
		d, err := b.Run(ctx)
		if err != nil {
			o.wipe()
			return err
		}
		o.say("")
		o.say("%-17s %-30s %s", fmt.Sprintf("%d rounds", d.Method.Rounds), "requests per second", "server CPU per request")
		for _, head := range []string{"yours", base + run.Again} {
			label := head + " / " + base
			if head != "yours" {
				label = "noise, by itself"
			}
			o.say("%-17s %-30s %s", label, interval(d.Ratios, head, results.RequestsPerSecond), interval(d.Ratios, head, results.ServerCPU))
		}
		if base == onStart {
			for _, r := range d.Ratios {
				if r.Head != "yours" || r.Metric != results.RequestsPerSecond {
					continue
				}
				m := grade.Measured{Rounds: d.Method.Rounds, Median: r.Ratio.Median, Low: r.Ratio.Low, High: r.Ratio.High}
				if err := keep(w.Name, m); err != nil {
					return err
				}
			}
		}
		for _, warning := range warnings(d.Notes) {
			o.line("--", yellow, warning)
		}
	}
	o.say("\nA difference is told when its interval excludes 1 and it is beyond the floor, what a server differs from itself.")
	return nil
}

// warnings are the notes of a run that make its figures doubtful, without their marks.
func warnings(notes []string) (doubtful []string) {
	for _, note := range notes {
		if results.Doubtful(note) {
			doubtful = append(doubtful, strings.TrimLeft(note, "*! "))
		}
	}
	return doubtful
}

// interval is the ratio of a server to the base of the comparison.
func interval(ratios []results.Ratio, head string, metric results.Metric) string {
	for _, r := range ratios {
		if r.Head == head && r.Metric == metric {
			return r.Ratio.Format() + " " + r.Marked()
		}
	}
	return "-"
}
