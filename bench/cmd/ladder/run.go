package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/page"
	"github.com/qps-ladder/qps-ladder/bench/report"
	"github.com/qps-ladder/qps-ladder/bench/run"
)

// how holds the flags that every measuring subcommand has.
type how struct {
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
}

func (h *how) flags(cmd *cobra.Command, limit time.Duration) {
	h.flagsWithoutWorkers(cmd, limit)
	cmd.Flags().IntVar(&h.workers, "workers", 0, "workers of each server (default: one for each of its CPUs)")
}

func (h *how) flagsWithoutWorkers(cmd *cobra.Command, limit time.Duration) {
	f := cmd.Flags()
	f.IntVar(&h.rounds, "rounds", 0, "how many rounds (default: as many as fit in --time, at least 6)")
	f.DurationVar(&h.time, "time", limit, "time for all rounds together")
	f.DurationVar(&h.duration, "duration", 500*time.Millisecond, "of one measurement")
	f.DurationVar(&h.warmup, "warmup", 150*time.Millisecond, "before each measurement")
	f.Float64Var(&h.rate, "rate", 0, "an open loop with so many requests per second, latency from when each was due (default: a closed loop)")
	f.StringVar(&h.layout, "layout", "", "co-located, split or shared (default: split from 4 CPUs on)")
	f.StringVar(&h.generator, "load", run.Embedded, "load generator: embedded or wrk")
	f.Uint64Var(&h.seed, "seed", 0, "of the order within the rounds (default: another one each time)")
	f.StringVar(&h.out, "out", "", "folder for the reports (default: bench/out)")
	f.BoolVar(&h.quick, "quick", false, "short measurements: a first table")
}

const (
	quickTime     = 34 * time.Second
	quickDuration = 220 * time.Millisecond
	quickWarmup   = 60 * time.Millisecond
)

// bench makes a bench of the flags.
func (h *how) bench(cmd *cobra.Command) (*run.Bench, error) {
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
		h.duration = wrkSeconds(h.duration, changed("duration"))
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
		Workers: h.workers, Generator: h.generator, Command: own, Seed: h.seed, Rate: h.rate,
	}
	return b, nil
}

// wrkSeconds is a duration that wrk can do, which knows whole seconds only.
func wrkSeconds(d time.Duration, wanted bool) time.Duration {
	if !wanted {
		return time.Second
	}
	return max(time.Second, d.Round(time.Second))
}

// checkout is where the sources are and where to put things.
type checkout struct{ root, bin, out string }

func (h *how) checkout() (c checkout, err error) {
	if c.root, err = run.Root(); err != nil {
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

func newRun() *cobra.Command {
	var h how
	var ceiling bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Measure all stages: the ladder itself (make ladder)",
		Long: `Build all six stages, drive each on hello and on the workload where its step
must show, and print the progression. Reports go to bench/out: ladder.html to look
at, ladder.json, ladder.md and ladder.csv with all columns, and copies of the JSON
and the Markdown with the date in their names.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := h.bench(cmd)
			if err != nil {
				return err
			}
			c, err := h.checkout()
			if err != nil {
				return err
			}
			ctx, out := cmd.Context(), cmd.OutOrStdout()
			names, err := run.Stages(c.root)
			if err != nil {
				return err
			}
			if err := check(b); err != nil {
				return err
			}
			progress := newProgress(cmd.ErrOrStderr())
			progress.say("building %d stages", len(names))
			stages, err := run.BuildStages(ctx, c.root, c.bin, names)
			if err != nil {
				return err
			}
			var top *run.Server
			if ceiling {
				if s, ok, err := run.BuildBareC(ctx, c.root, c.bin); err != nil {
					return err
				} else if ok {
					top = &s
				} else {
					progress.say("no C compiler: the bare C loop, the ceiling, is left out")
				}
			}
			if h.quick && h.generator == run.Wrk {
				b.Brief = true
				b.Remarks = append(b.Remarks, "wrk measures whole seconds, so a quick run has hello alone; without --quick the targets are there too.")
			}
			if err := b.Ladder(stages, top); err != nil {
				return err
			}
			return finish(ctx, out, progress, b, c, "ladder")
		},
	}
	h.flags(cmd, 165*time.Second)
	cmd.Flags().BoolVar(&ceiling, "ceiling", true, "measure the bare C loop too when there is a C compiler")
	return cmd
}

// check finds what would go wrong later, before anything is built.
func check(b *run.Bench) error {
	if err := b.CheckGenerator(); err != nil {
		return err
	}
	return b.Prepare()
}

// measure says what is ahead, and does it.
func measure(ctx context.Context, progress *progress, b *run.Bench) (*report.Document, error) {
	defer b.Begin(ctx)()
	for _, line := range b.Remarks {
		progress.note(line)
	}
	progress.plan(b)
	b.Progress = progress.show
	d, err := b.Run(ctx)
	progress.clear()
	return d, err
}

// against compares with the run before, when that says something about this one.
func against(d, old *report.Document) {
	if err := d.Comparable(old); err != nil {
		d.Notes = append(d.Notes, fmt.Sprintf("The run before, of %s, is no measure for this one (%v).", old.Created.Format("2006-01-02 15:04 UTC"), err))
		return
	}
	d.Against(old)
}

// finish measures, prints, and writes the reports: all that was measured, also
// when the run ends early.
func finish(ctx context.Context, out io.Writer, progress *progress, b *run.Bench, c checkout, name string) error {
	if err := b.CheckGenerator(); err != nil {
		return err
	}
	if err := b.Fit(load.ReadLimits()); err != nil {
		return err
	}
	d, err := measure(ctx, progress, b)
	d.Command = strings.Join(append([]string{"ladder"}, os.Args[1:]...), " ")
	d.Method.Revision = run.Revision(c.root)
	if len(d.Measurements) > 0 {
		if old, readErr := report.Read(filepath.Join(c.out, name+".json")); readErr == nil {
			against(d, old)
		}
		d.Text(out)
		paths, writeErr := d.Write(c.out, name)
		if writeErr == nil {
			var more []string
			more, writeErr = page.Write(d, c.out, name)
			paths = append(paths, more...)
		}
		for _, path := range paths {
			progress.say("written: %s", path)
		}
		err = cmp.Or(err, writeErr)
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
