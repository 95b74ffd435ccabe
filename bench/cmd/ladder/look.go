package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/profile"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// looking holds the flags that every subcommand has that looks into a server.
type looking struct {
	profile.Options
	json jsonFile
}

func (l *looking) flags(cmd *cobra.Command, duration string) {
	workloadFlag(cmd, &l.Workload, "", "what to send (default: hello)")
	l.flagsWithoutWorkload(cmd, duration)
}

func (l *looking) flagsWithoutWorkload(cmd *cobra.Command, duration string) {
	f := cmd.Flags()
	f.DurationVar(&l.Duration, "duration", 0, "how long to record, such as 3s (default: "+duration+")")
	f.StringVar(&l.Layout, "layout", "", "co-located, split or shared (default: split from two cores on)")
	f.IntVar(&l.Workers, "workers", 0, "workers of each server (default: one for each of its CPUs)")
	f.StringVar(&l.Folder, "out", "", "folder for what is written (default: bench/out)")
	l.json.flag(cmd, "what came of it (schemas in bench/profile/README.md)")
	completeFlag(cmd, "layout", layouts...)
}

// profilerFlag gives a command --profiler.
func profilerFlag(cmd *cobra.Command, profiler *string, normally, help string, choices ...string) {
	cmd.Flags().StringVar(profiler, "profiler", normally, help)
	completeFlag(cmd, "profiler", choices...)
}

// look checks the flags and the stages that the arguments name, looks, and writes what came of it.
func (l *looking) look(cmd *cobra.Command, args []string, look func(stages []string) (result any, err error)) error {
	l.Out = l.json.text(cmd)
	p := newProgress(cmd.ErrOrStderr())
	l.Tell, l.Step = p.say, p.step
	defer p.clear()
	switch {
	case l.Duration < 0:
		return usage(errors.New("--duration must be positive"))
	case l.Workers < 0:
		return usage(errors.New("--workers must be at least 1"))
	}
	if err := oneOf("layout", l.Layout, results.CoLocated, results.Split, results.Shared); err != nil {
		return usage(err)
	}
	if l.Workload != "" {
		if _, err := workload.ByName(l.Workload); err != nil {
			return usage(err)
		}
	}
	root, err := harness.FindRoot()
	if err != nil {
		return err
	}
	stages, err := stageNames(root, args)
	if err != nil {
		return err
	}
	result, err := look(stages)
	switch {
	case err != nil && cmd.Context().Err() != nil:
		return errors.New("stopped: nothing was written")
	case err != nil:
		return err
	}
	return l.json.write(cmd, result)
}

// newLook is a command that looks into stages in one way.
func newLook[T any](name, short, long, examples, duration string, look func(context.Context, profile.Options, []string) (T, error)) *cobra.Command {
	var l looking
	cmd := &cobra.Command{
		Use: name + " [stage...]", Short: short, Long: long, Example: examples,
		ValidArgsFunction: completeStages(unlimited),
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.look(cmd, args, func(stages []string) (any, error) { return look(cmd.Context(), l.Options, stages) })
		},
	}
	l.flags(cmd, duration)
	return cmd
}

func newFlame() *cobra.Command {
	var l looking
	var profiler, running string
	cmd := &cobra.Command{
		Use:   "flame stage [stage]",
		Short: "Draw a flame graph of a stage, or of two and what differs (make flame)",
		Long: `Record a stage under load and write a flame graph: one HTML file that needs
nothing else. Times are per request, so that stages can be compared although the
faster one does more in the same time. The same data is kept as a pprof profile
for go tool pprof.

With two stages it holds a graph of each and one of the difference, and the table
says by how much each part differs.

With --admin and no stage it records a server that runs already, and that somebody
else sends requests to.

There are two profilers. The one of Go works everywhere; perf sees into the kernel
as well, where it is installed and allowed.`,
		Example:           "  ladder flame 3 --workload browser\n  ladder flame 2 3\n  ladder flame --admin 127.0.0.1:9090",
		ValidArgsFunction: completeStages(2),
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case running != "" && len(args) > 0:
				return errors.New("--admin names a server that runs: leave the stage away")
			case running != "" && profiler != profile.ProfilerBoth && profiler != profile.ProfilerGo:
				return errors.New("--admin records with the profiler in the server: --profiler perf and auto are for a stage that this command starts")
			case running == "" && (len(args) < 1 || len(args) > 2):
				return errors.New("flame needs one stage, or two to compare: for example ladder flame 3, or ladder flame 2 3")
			}
			return oneOf("profiler", profiler, profile.ProfilerAuto, profile.ProfilerBoth, profile.ProfilerGo, profile.ProfilerPerf)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.look(cmd, args, func(stages []string) (any, error) {
				if running != "" {
					return profile.FlameOfRunning(cmd.Context(), l.Options, running)
				}
				return profile.Flame(cmd.Context(), l.Options, stages, profiler)
			})
		},
	}
	l.flags(cmd, "3s with perf, 5s with Go")
	profilerFlag(cmd, &profiler, profile.ProfilerBoth, "go, perf, auto (the better one), or both",
		profile.ProfilerAuto, profile.ProfilerBoth, profile.ProfilerGo, profile.ProfilerPerf)
	cmd.Flags().StringVar(&running, "admin", "", "admin listener of a server that runs already")
	return cmd
}

func newWhere() *cobra.Command {
	var l looking
	var profiler string
	var guess bool
	cmd := &cobra.Command{
		Use:   "where [stage...]",
		Short: "Tell on what each stage spends its CPU time, per request (make where)",
		Long: `Record each stage under load, and say on what it spends its CPU time: in µs per
request, in percent, and by how much the server would get faster if that part
cost nothing at all (Amdahl's law). The categories do not overlap and add up to
the whole. Without a stage, all six.

With --guess it asks first what will be the largest part.`,
		Example:           "  ladder where\n  ladder where 2 3 --workload browser",
		ValidArgsFunction: completeStages(unlimited),
		Args: func(*cobra.Command, []string) error {
			if profiler == profile.ProfilerBoth {
				return fmt.Errorf("one table has one profiler: choose %s or %s", profile.ProfilerGo, profile.ProfilerPerf)
			}
			return oneOf("profiler", profiler, profile.ProfilerAuto, profile.ProfilerGo, profile.ProfilerPerf)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.look(cmd, args, func(stages []string) (any, error) {
				return profile.Where(cmd.Context(), l.Options, stages, profiler, guess, cmd.InOrStdin())
			})
		},
	}
	l.flags(cmd, "3s with perf, 5s without")
	profilerFlag(cmd, &profiler, profile.ProfilerAuto, "go, perf, or auto: perf where it is allowed",
		profile.ProfilerAuto, profile.ProfilerGo, profile.ProfilerPerf)
	cmd.Flags().BoolVar(&guess, "guess", false, "ask for a prediction first")
	return cmd
}

func newSyscalls() *cobra.Command {
	return newLook("syscalls", "Count each stage's system calls per request (make syscalls)",
		`Count system calls per request. The server counts its own; with strace installed
its count stands beside it, of the same run, and so does what perf saw of it where
it is allowed. Without a stage, all six side by side.

strace counts every call and finds all of them about equally slow, as what it
measures is mostly itself. perf weighs: it samples, and a call that is short but
frequent hides in a thin bar.`,
		"  ladder syscalls\n  ladder syscalls 2", "3s for one stage, 500ms each for several", profile.Syscalls)
}

func newAllocs() *cobra.Command {
	return newLook("allocs", "List each stage's heap allocations per request, by site (make allocs)",
		`Run the server with a heap profile that misses nothing (rate 1), and list what it
allocates for a request: how many objects and bytes, where, and for whom. Without
a stage, all six side by side, and after that each of the workloads that the
ladder promises to serve without an allocation from stage3 on.`,
		"  ladder allocs\n  ladder allocs 1 --workload browser", "500ms", profile.Allocs)
}

func newStat() *cobra.Command {
	var pin bool
	cmd := newLook("stat", "Count with perf stat what the CPU does for a request (make stat)",
		`Count what the CPU does for a request, with perf stat: context switches and page
faults, which the kernel counts everywhere, and instructions, cycles, cache and
branch misses where the machine shows its hardware counters, as most virtual
machines do not. Without a stage, all six side by side.

With --pin each stands there twice, the second time with its loops bound to CPUs: look
at the migrations. Where a server has a single CPU there are none; --layout shared
gives it all of them.`,
		"  ladder stat\n  ladder stat 4 5 --workload body64k\n  ladder stat 5 --pin --layout shared", "1s",
		func(ctx context.Context, o profile.Options, stages []string) (*profile.StatTable, error) {
			return profile.Stat(ctx, o, stages, pin)
		})
	cmd.Flags().BoolVar(&pin, "pin", false, "count each server with -pin too")
	return cmd
}

func newWrongTurn() *cobra.Command {
	var l looking
	var rounds int
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "wrong-turn [name]",
		Short: "Walk into one of the documents' wrong turns, with the profile that would have warned (make wrong-turn)",
		Long: `Build a stage with a change that looks right and is not, show what a profile says
beforehand, and measure it against the original: in the same rounds, with the
original against itself beside it. Without a name, list them.`,
		Example:           "  ladder wrong-turn\n  ladder wrong-turn router",
		ValidArgsFunction: complete(1, func(*cobra.Command) []string { return profile.WrongTurns() }),
		Args: func(cmd *cobra.Command, args []string) error {
			if rounds < 0 {
				return errors.New("--rounds must be at least 1")
			}
			if err := cobra.MaximumNArgs(1)(cmd, args); err != nil || len(args) == 0 {
				return err
			}
			return oneOf("wrong turn", args[0], profile.WrongTurns()...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.look(cmd, nil, func([]string) (any, error) {
				if len(args) == 0 {
					return profile.ListWrongTurns(l.Out)
				}
				return profile.WrongTurn(cmd.Context(), l.Options, args[0], rounds, limit)
			})
		},
	}
	l.flagsWithoutWorkload(cmd, "3s with perf, 5s without")
	cmd.Flags().IntVar(&rounds, "rounds", 0, "how many rounds (default: as many as fit in --time, at least 6)")
	cmd.Flags().DurationVar(&limit, "time", 40*time.Second, "time for all rounds together")
	return cmd
}
