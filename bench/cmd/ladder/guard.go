package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/guard"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func newGuard() *cobra.Command {
	var h measuring
	var base string
	var strict, micro, endToEnd bool
	cmd := &cobra.Command{
		Use:   "guard [stage...] --base commit",
		Short: "Find out whether the checkout is slower than a commit",
		Long: `Build the stages at a commit, in a temporary worktree, and as they are, and run
both in turns on this machine: micro-benchmarks of the judge, the system call
wrappers and each stage's hot paths, then whole servers under load.

It warns of changes for the worse past 5% (micro) and 10% (end to end) whose
interval excludes no change. With --strict a warning is exit code 1: for machines
that nobody shares.`,
		Example:           "  ladder guard 5 --base HEAD~1 --strict",
		ValidArgsFunction: completeStages(unlimited),
		Args: func(_ *cobra.Command, _ []string) error {
			if h.rounds == 0 {
				h.rounds = 8
			}
			switch {
			case base == "":
				return errors.New("no commit given to compare with: use --base, for example --base HEAD~1")
			case !micro && !endToEnd:
				return errors.New("--micro=false and --end-to-end=false leave nothing to do")
			case h.rounds < stats.MinimumRounds:
				return fmt.Errorf("--rounds must be at least %d: fewer give no interval", stats.MinimumRounds)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := h.begin(cmd, "")
			if err != nil {
				return err
			}
			names, err := stageNames(j.root, args)
			if err != nil {
				return err
			}
			root, revision, remove, err := run.Worktree(j.ctx, j.root, base)
			defer remove()
			if err != nil {
				return err
			}
			found := &guard.Report{Schema: guard.Schema, Version: 1, Base: revision, Head: run.Revision(j.root), Ended: results.Complete}
			before, err := harness.Stages(root)
			if err != nil {
				return err
			}
			names, found.Skipped = both(names, before)
			defer j.Begin(j.ctx)()
			for _, line := range j.Remarks {
				j.progress.note(line)
			}
			found.Remarks = j.Remarks
			if micro {
				var skipped []string
				found.Changes, skipped, err = guard.Micro(j.ctx, guard.Tree{Name: "base", Root: root, Stages: names}, guard.Tree{Name: "head", Root: j.root, Stages: names},
					j.CPUs(), h.rounds, 10*time.Millisecond, h.seed, j.progress.step)
				j.progress.clear()
				found.Skipped = append(found.Skipped, skipped...)
			}
			if err == nil && endToEnd && len(names) > 0 {
				err = j.guardServers(root, names, found)
			}
			if err != nil && len(found.Changes) == 0 {
				return err
			}
			if j.ctx.Err() != nil {
				found.Ended = "interrupted"
				err = fmt.Errorf("stopped; what was measured is above")
			} else if err != nil && found.EndToEnd == nil {
				found.Ended = oneLine(err)
			}
			found.Text(j.json.text(cmd))
			paths, writeErr := found.Write(j.out)
			for _, path := range paths {
				j.progress.say("written: %s", path)
			}
			if err = cmp.Or(err, writeErr, j.json.write(cmd, found)); err != nil {
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
	f.StringVar(&base, "base", "", "`commit` to compare with")
	f.BoolVar(&strict, "strict", false, "exit code 1 when anything is worse")
	f.BoolVar(&micro, "micro", true, "run the micro-benchmarks")
	f.BoolVar(&endToEnd, "end-to-end", true, "run whole servers")
	return cmd
}

// guardServers builds the stages at both commits, drives them, and adds what came of it to found.
func (j *job) guardServers(root string, names []string, found *guard.Report) error {
	j.progress.say("building %d stages at both commits", len(names))
	old, err := run.BuildStagesIn(j.ctx, root, names)
	if err != nil {
		return err
	}
	now, err := run.BuildStages(j.ctx, j.root, j.bin, names)
	if err != nil {
		return err
	}
	known := len(j.Remarks)
	if err := guard.Plan(j.Bench, old, now); err != nil {
		return err
	}
	for _, line := range j.Remarks[known:] {
		j.progress.note(line)
	}
	found.Remarks = j.Remarks
	j.progress.plan(j.Bench)
	j.Progress = j.progress.show
	changes, d, err := guard.EndToEnd(j.ctx, j.Bench)
	j.progress.clear()
	found.EndToEnd = d
	found.Changes = append(found.Changes, changes...)
	if d.Ended != results.Complete {
		found.Ended = d.Ended
	}
	return err
}

// both keeps the stages that the base has too.
func both(names, before []string) (kept, skipped []string) {
	for _, name := range names {
		if _, err := harness.PickStage(before, name); err != nil {
			skipped = append(skipped, name+" is not there at base")
			continue
		}
		kept = append(kept, name)
	}
	return kept, skipped
}
