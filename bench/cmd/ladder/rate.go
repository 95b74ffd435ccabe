package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func newRate() *cobra.Command {
	var h measuring
	var name string
	cmd := &cobra.Command{
		Use:   "rate [stage...]",
		Short: "Measure latency and CPU time of the stages at one and the same rate",
		Long: `Measure all stages, or those named, at one and the same rate: half of what the first
of them can serve, which is measured beforehand, or the one of --rate. In a closed loop
the latency is little more than connections divided by requests per second; here every
server has the same to do, and latency counts from when a request was due.`,
		ValidArgsFunction: completeStages(6),
		RunE: h.measures("rate", &name, func(j *job, args []string) error {
			servers, err := j.build(args...)
			if err != nil {
				return err
			}
			if j.Rate == 0 {
				j.progress.say("measuring what %s can serve", servers[0].Name)
				if j.Rate, err = j.HalfOfCapacity(j.ctx, servers[0], j.workloads[0]); err != nil {
					return err
				}
				j.Remarks = append(j.Remarks, fmt.Sprintf("The rate, %s a second, is half of what %s can serve.", console.Thousands(j.Rate), servers[0].Name))
			}
			j.Grid(servers, j.workloads[:1], servers, servers[:1])
			return nil
		}),
	}
	h.flags(cmd, 2*time.Minute)
	workloadFlag(cmd, &name, workload.Hello, "what to send")
	return cmd
}
