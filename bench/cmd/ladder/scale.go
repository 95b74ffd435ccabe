package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

func newScale() *cobra.Command {
	var h measuring
	var names string
	var workers []int
	cmd := &cobra.Command{
		Use:   "scale [stage...] --workers 1,2,4,8",
		Short: "Measure stages with several numbers of workers",
		Long: `Measure stages, stage1 unless others are named, with several numbers of workers
(event loops), each against the same stage with the first number, and show how
many connections each loop got: the kernel spreads them over SO_REUSEPORT
listeners by a hash, which is uneven.

On fewer than four CPUs server and generator both use all of them: two loops on
one CPU would tell nothing.`,
		Example:           "  ladder scale 0 1 --workers 1,2,4 --workload hello,churn",
		ValidArgsFunction: completeStages(unlimited),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"1"}
			}
			for i, n := range workers {
				if n < 1 {
					return usage(fmt.Errorf("--workers %d: at least 1", n))
				}
				if slices.Contains(workers[:i], n) {
					return usage(fmt.Errorf("--workers %d is there twice", n))
				}
			}
			if cpus, err := netpoll.CPUs(); err == nil && h.layout == "" && len(cpus) < 4 {
				h.layout = results.Shared
			}
			j, err := h.begin(cmd, names)
			if err != nil {
				return err
			}
			servers, err := j.build(args...)
			if err != nil {
				return err
			}
			j.Scale(servers, workers, j.workloads)
			return j.finish("scale")
		},
	}
	h.flagsWithoutWorkers(cmd, 60*time.Second)
	workloadFlag(cmd, &names, workload.Hello, "what to send, separated by commas")
	cmd.Flags().IntSliceVar(&workers, "workers", []int{1, 2, 4, 8}, "numbers of workers, separated by commas")
	return cmd
}
