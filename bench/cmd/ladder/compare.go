package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func newCompare() *cobra.Command {
	var h how
	var name, base, head, stage string
	cmd := &cobra.Command{
		Use:   "compare base head | compare --base revision --stage N",
		Short: "Measure one stage against another, or against itself at another commit",
		Long: `Measure one stage against another in the same rounds. With --base one stage at
another commit is the base: it is built in a temporary worktree, which is removed
again. The head is the checkout as it is, or the commit of --head.`,
		Example: "  ladder compare 2 3 --workload browser\n  ladder compare --base HEAD~3 --stage 5",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case base == "" && head != "":
				return errors.New("--head needs --base: the commit to compare with")
			case base == "" && len(args) != 2:
				return errors.New("compare needs two stages, the base and the head: for example ladder compare 2 3")
			case base != "" && (len(args) != 0 || stage == ""):
				return errors.New("--base compares one stage at two commits: name it with --stage, and no other")
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
			if err := check(b); err != nil {
				return err
			}
			progress := newProgress(cmd.ErrOrStderr())
			if base != "" {
				return compareCommits(cmd, progress, b, c, base, head, stage, w)
			}
			servers, err := pick(cmd.Context(), progress, c, args)
			if err != nil {
				return err
			}
			b.Pair(servers[0], servers[1], w)
			return finish(cmd.Context(), cmd.OutOrStdout(), progress, b, c, "compare")
		},
	}
	h.flags(cmd, 30*time.Second)
	f := cmd.Flags()
	f.StringVar(&name, "workload", workload.Hello, "what to send: see ladder workloads")
	f.StringVar(&base, "base", "", "commit to compare with")
	f.StringVar(&head, "head", "", "commit that is compared (default: the files as they are)")
	f.StringVar(&stage, "stage", "", "the stage, with --base")
	return cmd
}

// pick builds the stages that the arguments name, each once.
func pick(ctx context.Context, progress *progress, c checkout, args []string) ([]run.Server, error) {
	all, err := run.Stages(c.root)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, text := range args {
		s, err := run.PickStage(all, strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		for _, other := range names {
			if other == s {
				return nil, fmt.Errorf("%s against itself is the noise floor, which every comparison shows: choose two", s)
			}
		}
		names = append(names, s)
	}
	progress.say("building %s", strings.Join(names, " and "))
	return run.BuildStages(ctx, c.root, c.bin, names)
}

func compareCommits(cmd *cobra.Command, progress *progress, b *run.Bench, c checkout, base, head, stage string, w workload.Workload) error {
	ctx := cmd.Context()
	build := func(revision string) (s run.Server, remove func(), err error) {
		root, remove, name := c.root, func() {}, "as it is"
		if revision != "" {
			progress.say("building stage %s at %s, in a worktree of its own", stage, revision)
			if root, name, remove, err = run.Worktree(ctx, c.root, revision); err != nil {
				return s, remove, err
			}
		}
		s, err = run.BuildStageAt(ctx, root, stage, name)
		return s, remove, err
	}
	before, remove, err := build(base)
	defer remove()
	if err != nil {
		return err
	}
	after, remove, err := build(head)
	defer remove()
	if err != nil {
		return err
	}
	if before.Name == after.Name {
		return fmt.Errorf("%s and %s are one commit: choose two", base, head)
	}
	b.Pair(before, after, w)
	return finish(ctx, cmd.OutOrStdout(), progress, b, c, "compare")
}
