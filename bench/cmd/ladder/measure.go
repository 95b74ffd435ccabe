package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/report"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// measuring holds the flags that every measuring subcommand has.
type measuring struct {
	rounds    int
	time      time.Duration
	warmup    time.Duration
	duration  time.Duration
	layout    string
	workers   int
	generator string
	seed      uint64
	rate      float64
	out       string
	quick     bool
	json      jsonFile
}

func (h *measuring) flags(cmd *cobra.Command, limit time.Duration) {
	h.flagsWithoutWorkers(cmd, limit)
	cmd.Flags().IntVar(&h.workers, "workers", 0, "workers of each server (default: one for each of its CPUs)")
}

func (h *measuring) flagsWithoutWorkers(cmd *cobra.Command, limit time.Duration) {
	f := cmd.Flags()
	f.IntVar(&h.rounds, "rounds", 0, "how many rounds (default: as many as fit in --time, at least 6)")
	f.DurationVar(&h.time, "time", limit, "time for all rounds together")
	f.DurationVar(&h.duration, "duration", 500*time.Millisecond, "of one measurement")
	f.DurationVar(&h.warmup, "warmup", 150*time.Millisecond, "before each measurement")
	f.Float64Var(&h.rate, "rate", 0, "an open loop with so many requests per second, latency from when each was due (default: a closed loop)")
	f.StringVar(&h.layout, "layout", "", "co-located, split or shared (default: split from two cores on)")
	f.StringVar(&h.generator, "load", run.Embedded, "load generator: embedded or wrk")
	f.Uint64Var(&h.seed, "seed", 0, "of the order within the rounds (default: another one each time)")
	f.StringVar(&h.out, "out", "", "folder for the reports (default: bench/out)")
	f.BoolVar(&h.quick, "quick", false, "short measurements: a first table")
	h.json.flag(cmd, "the run (schema in bench/README.md)")
	completeFlag(cmd, "layout", layouts...)
	completeFlag(cmd, "load", run.Embedded, run.Wrk)
}

var layouts = []string{results.CoLocated, results.Split, results.Shared}

const (
	quickTime     = 40 * time.Second
	quickDuration = 200 * time.Millisecond
	quickWarmup   = 60 * time.Millisecond
)

// bench makes a bench of the flags.
func (h *measuring) bench(cmd *cobra.Command) (*run.Bench, error) {
	if h.generator == "" { // LOAD= of make
		h.generator = run.Embedded
	}
	changed := cmd.Flags().Changed
	if h.quick {
		if !changed("time") {
			h.time = min(h.time, quickTime)
		}
		if !changed("duration") {
			h.duration = quickDuration
		}
		if !changed("warmup") {
			h.warmup = quickWarmup
		}
	}
	if err := cmp.Or(oneOf("layout", h.layout, layouts...), oneOf("generator", h.generator, run.Embedded, run.Wrk)); err != nil {
		return nil, err
	}
	switch {
	case h.rounds < 0:
		return nil, errors.New("--rounds must be at least 1")
	case h.duration <= 0 || h.warmup < 0:
		return nil, errors.New("--duration must be positive, --warmup must not be negative")
	case h.workers < 0:
		return nil, errors.New("--workers must be at least 1")
	case h.rate < 0:
		return nil, errors.New("--rate must be positive")
	case h.rate > 0 && h.generator == run.Wrk:
		return nil, errors.New("wrk has no --rate: use the embedded generator")
	case h.generator == run.Wrk:
		h.duration = run.WholeSeconds(h.duration)
	}
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this command's own file: %w", err)
	}
	if !changed("seed") {
		h.seed = uint64(time.Now().UnixNano())
	}
	b := &run.Bench{
		Rounds: h.rounds, Time: h.time, Warmup: h.warmup, Duration: h.duration, Layout: h.layout,
		Workers: h.workers, Generator: h.generator, Command: own, Seed: h.seed, Rate: h.rate, NoRepeat: h.quick,
	}
	return b, nil
}

// checkout is where the sources are and where to put things.
type checkout struct{ root, bin, out string }

func (h *measuring) checkout() (c checkout, err error) {
	if c.root, err = harness.FindRoot(); err != nil {
		return c, err
	}
	if c.out, err = run.Out(c.root); err != nil {
		return c, fmt.Errorf("cannot make the folder for reports: %w", err)
	}
	c.bin = filepath.Join(c.out, "bin")
	if h.out != "" {
		c.out = h.out
		err = os.MkdirAll(h.out, 0o755)
	}
	return c, err
}

// job is a measuring subcommand under way.
type job struct {
	*run.Bench
	checkout
	cmd       *cobra.Command
	ctx       context.Context
	progress  *progress
	workloads []workload.Workload
	json      jsonFile
	network   string   // of compare
	atEnd     []func() // takes away what the servers that are measured were built from
}

// begin makes a job of the flags and a list of workloads, which may be empty, and finds what would
// go wrong later, before anything is built.
func (h *measuring) begin(cmd *cobra.Command, workloads string) (*job, error) {
	j := &job{cmd: cmd, ctx: cmd.Context(), progress: newProgress(cmd.ErrOrStderr()), json: h.json}
	var err error
	if j.Bench, err = h.bench(cmd); err != nil {
		return nil, usage(err)
	}
	if workloads != "" {
		if j.workloads, err = workload.List(workloads); err != nil {
			return nil, usage(err)
		}
	}
	if j.checkout, err = h.checkout(); err != nil {
		return nil, err
	}
	if j.Published, err = results.ReadPublished(j.root); err != nil {
		return nil, err
	}
	if err := j.CheckGenerator(); err != nil {
		return nil, err
	}
	return j, j.Prepare()
}

// measures is what a subcommand runs that measures once: plan puts what is to be measured into the
// job. workloads is a list of them, name what the reports are called.
func (h *measuring) measures(name string, workloads *string, plan func(j *job, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		j, err := h.begin(cmd, *workloads)
		if err != nil {
			return err
		}
		defer func() {
			for _, f := range j.atEnd {
				f()
			}
		}()
		if err := plan(j, args); err != nil {
			return err
		}
		return j.finish(name)
	}
}

// build builds the stages that the arguments name, or all.
func (j *job) build(args ...string) ([]run.Server, error) {
	names, err := stageNames(j.root, args)
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		j.progress.say("building %d stages", len(names))
	} else {
		j.progress.say("building %s", strings.Join(names, " and "))
	}
	return run.BuildStages(j.ctx, j.root, j.bin, names)
}

// buildBareC builds the bare C loop, the ceiling; nil without a C compiler.
func (j *job) buildBareC() (*run.Server, error) {
	s, ok, err := run.BuildBareC(j.ctx, j.root, j.bin)
	if err != nil {
		return nil, err
	}
	if !ok {
		j.progress.say("no C compiler: the bare C loop, the ceiling, is left out")
		return nil, nil
	}
	return &s, nil
}

// measure says what is ahead, and does it.
func (j *job) measure() (*results.Document, error) {
	defer j.Begin(j.ctx)()
	for _, line := range j.Remarks {
		j.progress.note(line)
	}
	j.progress.plan(j.Bench)
	j.Progress = j.progress.show
	d, err := j.Run(j.ctx)
	j.progress.clear()
	return d, err
}

// against compares with the run before, when that says something about this one.
func against(d, old *results.Document) {
	if err := d.Comparable(old); err != nil {
		d.Notes = append(d.Notes, fmt.Sprintf("The run before, of %s, is no measure for this one (%v).", old.Created.Format("2006-01-02 15:04 UTC"), err))
		return
	}
	d.Against(old)
}

// finish measures, prints, and writes the reports: all that was measured, also
// when the run ends early.
func (j *job) finish(name string) error {
	if err := j.CheckGenerator(); err != nil {
		return err
	}
	if err := j.Fit(load.ReadLimits()); err != nil {
		return err
	}
	d, err := j.measure()
	d.Command = strings.Join(append([]string{"ladder"}, os.Args[1:]...), " ")
	d.Method.Revision = run.Revision(j.root)
	if len(d.Measurements) > 0 {
		if old, readErr := results.Read(filepath.Join(j.out, name+".json")); readErr == nil {
			against(d, old)
		}
		report.Text(j.json.text(j.cmd), d)
		paths, writeErr := report.Write(d, j.out, name)
		if writeErr == nil {
			var more []string
			more, writeErr = report.WritePage(d, j.out, name)
			paths = append(paths, more...)
		}
		for _, path := range paths {
			j.progress.say("written: %s", path)
		}
		err = cmp.Or(err, writeErr, j.json.write(j.cmd, d))
	}
	switch {
	case run.Ended(err):
		return fmt.Errorf("stopped after %d full rounds; what was measured is above", d.Method.Rounds)
	case err != nil && len(d.Measurements) > 0:
		return fmt.Errorf("%w; what was measured before is above", err)
	case err != nil:
		return err
	}
	return d.Failure()
}
