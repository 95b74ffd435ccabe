package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func newCompare() *cobra.Command {
	var h measuring
	var name, base, head, network string
	cmd := &cobra.Command{
		Use:   "compare stage stage | compare stage --base commit",
		Short: "Measure one stage against another, or against itself at another commit",
		Long: `Measure the second stage against the first in the same rounds. With --base one
stage is measured against itself at that commit, which is built in a temporary
worktree that is removed again. The other side is the checkout as it is, or the
commit of --head.`,
		Example:           "  ladder compare 2 3 --workload browser\n  ladder compare 5 --base HEAD~3",
		ValidArgsFunction: completeStages(2),
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case base == "" && head != "":
				return errors.New("--head needs --base: the commit to compare with")
			case base == "" && len(args) != 2:
				return errors.New("compare needs two stages, the base and the head: for example ladder compare 2 3")
			case base != "" && len(args) != 1:
				return errors.New("--base compares one stage at two commits: name that stage, and no other")
			}
			return nil
		},
		RunE: h.measures("compare", &name, func(j *job, args []string) error {
			if err := usable(network, h.generator); err != nil {
				return err
			}
			j.network = network
			if base != "" {
				return j.compareCommits(args[0], base, head)
			}
			servers, err := j.build(args...)
			if err != nil {
				return err
			}
			j.pair(servers[0], servers[1])
			return nil
		}),
	}
	h.flags(cmd, 30*time.Second)
	workloadFlag(cmd, &name, workload.Hello, "what to send")
	networkFlag(cmd, &network)
	cmd.Flags().StringVar(&base, "base", "", "`commit` to compare with")
	cmd.Flags().StringVar(&head, "head", "", "`commit` that is compared (default: the files as they are)")
	return cmd
}

func (j *job) compareCommits(stage, base, head string) error {
	if _, err := stageNames(j.root, []string{stage}); err != nil {
		return err
	}
	build := func(revision string) (run.Server, error) {
		if revision == "" {
			return run.BuildStageAt(j.ctx, j.root, stage, "as it is")
		}
		j.progress.say("building stage %s at %s, in a worktree of its own", stage, revision)
		root, name, remove, err := run.Worktree(j.ctx, j.root, revision)
		j.atEnd = append(j.atEnd, remove) // every round starts it again
		if err != nil {
			return run.Server{}, err
		}
		return run.BuildStageAt(j.ctx, root, stage, name)
	}
	before, err := build(base)
	if err != nil {
		return err
	}
	after, err := build(head)
	if err != nil {
		return err
	}
	if before.Name == after.Name {
		return usage(fmt.Errorf("%s and %s are one commit: choose two", base, head))
	}
	j.pair(before, after)
	return nil
}

// pair compares two servers in the network that was asked for.
func (j *job) pair(base, head run.Server) {
	base.Network, head.Network = j.network, j.network
	if j.network != "" && j.network != run.Loopback {
		j.Remarks = append(j.Remarks, "Between generator and server: "+networkWords[j.network]+".")
	}
	j.Pair(base, head, j.workloads[0])
}
