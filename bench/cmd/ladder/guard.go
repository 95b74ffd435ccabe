package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/guard"
	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/stats"
)

func newGuard() *cobra.Command {
	var h how
	var base, stages string
	var strict, micro, endToEnd bool
	cmd := &cobra.Command{
		Use:   "guard --base revision",
		Short: "Find out whether the checkout is slower than a commit",
		Long: `Build the stages at a commit, in a temporary worktree, and as they are, and run
both in turns on this machine: micro-benchmarks of the judge, the system call
wrappers and each stage's hot paths, then whole servers under load.

It warns of changes for the worse past 5% (micro) and 10% (end to end) whose
interval excludes no change. With --strict a warning is exit code 1: for machines
that nobody shares.`,
		Example: "  ladder guard --base HEAD~1 --stage 5 --strict",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if base == "" {
				return errors.New("no commit given to compare with: use --base, for example --base HEAD~1")
			}
			if !micro && !endToEnd {
				return errors.New("--micro=false and --end-to-end=false leave nothing to do")
			}
			if h.rounds == 0 {
				h.rounds = 8
			}
			if h.rounds < stats.MinimumRounds {
				return fmt.Errorf("--rounds must be at least %d: fewer give no interval", stats.MinimumRounds)
			}
			b, err := h.bench(cmd)
			if err != nil {
				return err
			}
			c, err := h.checkout()
			if err != nil {
				return err
			}
			if err := check(b); err != nil {
				return err
			}
			ctx := cmd.Context()
			progress := newProgress(cmd.ErrOrStderr())
			all, err := run.Stages(c.root)
			if err != nil {
				return err
			}
			names := all
			if stages != "" {
				names = nil
				for text := range strings.SplitSeq(stages, ",") {
					s, err := run.PickStage(all, strings.TrimSpace(text))
					if err != nil {
						return err
					}
					names = append(names, s)
				}
			}
			root, revision, remove, err := run.Worktree(ctx, c.root, base)
			defer remove()
			if err != nil {
				return err
			}
			found := &guard.Report{Schema: guard.Schema, Version: 1, Base: revision, Head: run.Revision(c.root)}
			before, err := run.Stages(root)
			if err != nil {
				return err
			}
			names, found.Skipped = both(names, before)
			defer b.Begin(ctx)()
			for _, line := range b.Remarks {
				progress.note(line)
			}
			if micro {
				changes, skipped, err := guard.Micro(ctx, guard.Tree{Name: "base", Root: root, Stages: names}, guard.Tree{Name: "head", Root: c.root, Stages: names},
					b.CPUs(), h.rounds, 10*time.Millisecond, h.seed, progress.step)
				progress.clear()
				if err != nil {
					return err
				}
				found.Changes, found.Skipped = append(found.Changes, changes...), append(found.Skipped, skipped...)
			}
			var failure error
			if endToEnd && len(names) > 0 {
				progress.say("building %d stages at both commits", len(names))
				old, err := run.BuildStagesIn(ctx, root, names)
				if err != nil {
					return err
				}
				now, err := run.BuildStages(ctx, c.root, c.bin, names)
				if err != nil {
					return err
				}
				if err := b.Fit(load.ReadLimits()); err != nil {
					return err
				}
				b.Progress = progress.show
				changes, d, err := guard.EndToEnd(ctx, b, old, now)
				progress.clear()
				if d == nil || d.Ended != "complete" {
					return err
				}
				failure = err
				found.EndToEnd = d
				found.Changes = append(found.Changes, changes...)
			}
			found.Text(cmd.OutOrStdout())
			paths, err := found.Write(c.out)
			if err != nil {
				return err
			}
			for _, path := range paths {
				progress.say("written: %s", path)
			}
			if failure != nil {
				return failure
			}
			if n := len(found.Worse()); n > 0 && strict {
				return fmt.Errorf("%d changes for the worse, see above", n)
			}
			return nil
		},
	}
	h.flags(cmd, time.Minute)
	f := cmd.Flags()
	f.Lookup("duration").DefValue = "200ms"
	h.duration, h.warmup = 200*time.Millisecond, 80*time.Millisecond
	f.Lookup("warmup").DefValue = "80ms"
	f.StringVar(&base, "base", "", "commit to compare with")
	f.StringVar(&stages, "stage", "", "stages, separated by commas (default: all)")
	f.BoolVar(&strict, "strict", false, "exit code 1 when anything is worse")
	f.BoolVar(&micro, "micro", true, "run the micro-benchmarks")
	f.BoolVar(&endToEnd, "end-to-end", true, "run whole servers")
	return cmd
}

// both keeps the stages that the base has too.
func both(names, before []string) (kept, skipped []string) {
	for _, name := range names {
		if _, err := run.PickStage(before, name); err != nil {
			skipped = append(skipped, name+" is not there at base")
			continue
		}
		kept = append(kept, name)
	}
	return kept, skipped
}
