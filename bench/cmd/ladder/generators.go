package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func newGenerators() *cobra.Command {
	var h measuring
	cmd := &cobra.Command{
		Use:   "generators [stage]",
		Short: "Measure the embedded load generator against wrk",
		Long: `Drive one stage, stage5 unless another is named, with the embedded generator and
with wrk, in turns, and compare the CPU time that each needs for a request.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeStages(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"5"}
			}
			j, err := h.begin(cmd, workload.Hello+",pipelined")
			if err != nil {
				return err
			}
			j.Duration = run.WholeSeconds(j.Duration) // alike for both
			if err := run.FindWrk(); err != nil {
				return err
			}
			servers, err := j.build(args...)
			if err != nil {
				return err
			}
			j.Generators(servers[0], j.workloads)
			return j.finish("generators")
		},
	}
	h.flags(cmd, 40*time.Second)
	return cmd
}
