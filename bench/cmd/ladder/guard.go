package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/guard"
	"github.com/qps-ladder/qps-ladder/bench/report"
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
			found := &guard.Report{Schema: guard.Schema, Version: 1, Base: revision, Head: run.Revision(c.root), Ended: report.Complete}
			before, err := run.Stages(root)
			if err != nil {
				return err
			}
			names, found.Skipped = both(names, before)
			defer b.Begin(ctx)()
			for _, line := range b.Remarks {
				progress.note(line)
			}
			found.Remarks = b.Remarks
			if micro {
				var skipped []string
				found.Changes, skipped, err = guard.Micro(ctx, guard.Tree{Name: "base", Root: root, Stages: names}, guard.Tree{Name: "head", Root: c.root, Stages: names},
					b.CPUs(), h.rounds, 10*time.Millisecond, h.seed, progress.step)
				progress.clear()
				found.Skipped = append(found.Skipped, skipped...)
			}
			if err == nil && endToEnd && len(names) > 0 {
				err = guardServers(ctx, progress, b, c, root, names, found)
			}
			if err != nil && len(found.Changes) == 0 {
				return err
			}
			if ctx.Err() != nil {
				found.Ended = "interrupted"
				err = fmt.Errorf("stopped; what was measured is above")
			} else if err != nil && found.EndToEnd == nil {
				found.Ended = oneLine(err)
			}
			found.Text(cmd.OutOrStdout())
			paths, writeErr := found.Write(c.out)
			for _, path := range paths {
				progress.say("written: %s", path)
			}
			if err = cmp.Or(err, writeErr); err != nil {
				return err
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

// guardServers builds the stages at both commits, drives them, and adds what came of it to found.
func guardServers(ctx context.Context, progress *progress, b *run.Bench, c checkout, root string, names []string, found *guard.Report) error {
	progress.say("building %d stages at both commits", len(names))
	old, err := run.BuildStagesIn(ctx, root, names)
	if err != nil {
		return err
	}
	now, err := run.BuildStages(ctx, c.root, c.bin, names)
	if err != nil {
		return err
	}
	known := len(b.Remarks)
	if err := guard.Plan(b, old, now); err != nil {
		return err
	}
	for _, line := range b.Remarks[known:] {
		progress.note(line)
	}
	found.Remarks = b.Remarks
	progress.plan(b)
	b.Progress = progress.show
	changes, d, err := guard.EndToEnd(ctx, b)
	progress.clear()
	found.EndToEnd = d
	found.Changes = append(found.Changes, changes...)
	if d.Ended != report.Complete {
		found.Ended = d.Ended
	}
	return err
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
