package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

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
			b, err := h.bench(cmd)
			if err != nil {
				return err
			}
			b.Duration = wrkSeconds(b.Duration, cmd.Flags().Changed("duration")) // alike for both
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
