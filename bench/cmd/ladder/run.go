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

	"github.com/qps-ladder/qps-ladder/bench/report"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
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
	out       string
	quick     bool
}

func (h *how) flags(cmd *cobra.Command, limit time.Duration) {
	f := cmd.Flags()
	f.IntVar(&h.rounds, "rounds", 0, "how many rounds (default: as many as fit in --time, at least 6)")
	f.DurationVar(&h.time, "time", limit, "time for all rounds together")
	f.DurationVar(&h.duration, "duration", 500*time.Millisecond, "of one measurement")
	f.DurationVar(&h.warmup, "warmup", 150*time.Millisecond, "before each measurement")
	f.StringVar(&h.layout, "layout", "", "co-located or split (default: split from 4 CPUs on)")
	f.IntVar(&h.workers, "workers", 0, "workers of each server (default: one for each of its CPUs)")
	f.StringVar(&h.generator, "load", run.Embedded, "load generator: embedded or wrk")
	f.Uint64Var(&h.seed, "seed", 0, "of the order within the rounds (default: another one each time)")
	f.StringVar(&h.out, "out", "", "folder for the reports (default: bench/out)")
	f.BoolVar(&h.quick, "quick", false, "a first table in 40 seconds")
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
			h.time = quickTime
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
	case h.generator == run.Wrk && !changed("duration"):
		h.duration = time.Second // wrk knows whole seconds only
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
		Workers: h.workers, Generator: h.generator, Command: own, Seed: h.seed,
	}
	return b, nil
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
must show, and print the progression. Reports go to bench/out: ladder.json,
ladder.md, and copies with the date in their names.`,
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

func newCompare() *cobra.Command {
	var h how
	var name string
	cmd := &cobra.Command{
		Use:     "compare base head",
		Short:   "Measure one stage against another",
		Example: "  ladder compare 2 3 --workload browser",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("compare needs two stages, the base and the head: for example ladder compare 2 3")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := h.bench(cmd)
			if err != nil {
				return err
			}
			w, err := workload.ByName(name)
			if err != nil {
				return err
			}
			c, err := h.checkout()
			if err != nil {
				return err
			}
			all, err := run.Stages(c.root)
			if err != nil {
				return err
			}
			var names []string
			for _, text := range args {
				s, err := run.PickStage(all, text)
				if err != nil {
					return err
				}
				names = append(names, s)
			}
			if names[0] == names[1] {
				return fmt.Errorf("%s against itself is the noise floor, which every comparison shows: choose two", names[0])
			}
			if err := check(b); err != nil {
				return err
			}
			progress := newProgress(cmd.ErrOrStderr())
			progress.say("building %s", strings.Join(names, " and "))
			servers, err := run.BuildStages(cmd.Context(), c.root, c.bin, names)
			if err != nil {
				return err
			}
			b.Pair(servers[0], servers[1], w)
			return finish(cmd.Context(), cmd.OutOrStdout(), progress, b, c, "compare")
		},
	}
	h.flags(cmd, 30*time.Second)
	cmd.Flags().StringVar(&name, "workload", workload.Hello, "what to send: see ladder workloads")
	return cmd
}

func newGenerators() *cobra.Command {
	var h how
	var stage string
	cmd := &cobra.Command{
		Use:   "generators",
		Short: "Measure the embedded load generator against wrk",
		Long: `Drive one stage with the embedded generator and with wrk, in turns, and compare
the CPU time that each of the two needs for a request.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("duration") {
				h.duration = time.Second // wrk knows whole seconds only
			}
			b, err := h.bench(cmd)
			if err != nil {
				return err
			}
			if err := run.FindWrk(); err != nil {
				return err
			}
			c, err := h.checkout()
			if err != nil {
				return err
			}
			all, err := run.Stages(c.root)
			if err != nil {
				return err
			}
			name, err := run.PickStage(all, stage)
			if err != nil {
				return err
			}
			var workloads []workload.Workload
			for _, name := range []string{workload.Hello, "pipelined"} {
				w, err := workload.ByName(name)
				if err != nil {
					return err
				}
				workloads = append(workloads, w)
			}
			progress := newProgress(cmd.ErrOrStderr())
			progress.say("building %s", name)
			servers, err := run.BuildStages(cmd.Context(), c.root, c.bin, []string{name})
			if err != nil {
				return err
			}
			b.Generators(servers[0], workloads)
			return finish(cmd.Context(), cmd.OutOrStdout(), progress, b, c, "generators")
		},
	}
	h.flags(cmd, 40*time.Second)
	cmd.Flags().StringVar(&stage, "stage", "5", "the server that is driven")
	return cmd
}

// check finds what would go wrong later, before anything is built.
func check(b *run.Bench) error {
	if err := b.CheckGenerator(); err != nil {
		return err
	}
	return b.Prepare()
}

// finish measures, prints, and writes the reports: all that was measured, also
// when the run ends early.
func finish(ctx context.Context, out io.Writer, progress *progress, b *run.Bench, c checkout, name string) error {
	if err := b.CheckGenerator(); err != nil {
		return err
	}
	for _, item := range b.Items {
		if err := enoughDescriptors(item.Workload.Connections + item.Workload.Idle); err != nil {
			return fmt.Errorf("workload %s: %w", item.Workload.Name, err)
		}
	}
	b.Progress = progress.show
	d, err := b.Run(ctx)
	progress.clear()
	d.Command = strings.Join(append([]string{"ladder"}, os.Args[1:]...), " ")
	d.Method.Revision = run.Revision(c.root)
	if len(d.Measurements) > 0 {
		if old, readErr := report.Read(filepath.Join(c.out, name+".json")); readErr == nil {
			d.Against(old)
		}
		d.Text(out)
		paths, writeErr := d.Write(c.out, name)
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
