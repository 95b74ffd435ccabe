package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/report"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

func newScale() *cobra.Command {
	var h how
	var stages, names string
	var workers []int
	cmd := &cobra.Command{
		Use:   "scale --stage 1 --workers 1,2,4,8",
		Short: "Measure stages with several numbers of workers",
		Long: `Measure stages with several numbers of workers (event loops), each against the
same stage with the first number, and show how many connections each loop got:
the kernel spreads them over SO_REUSEPORT listeners by a hash, which is uneven.

On fewer than four CPUs server and generator both use all of them: two loops on
one CPU would tell nothing.`,
		Example: "  ladder scale --stage 0,1 --workers 1,2,4 --workload hello,churn",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cpus, err := netpoll.CPUs(); err == nil && h.layout == "" && len(cpus) < 4 {
				h.layout = report.Shared
			}
			b, err := h.bench(cmd)
			if err != nil {
				return err
			}
			workloads, err := workload.List(names)
			if err != nil {
				return err
			}
			for i, n := range workers {
				if n < 1 {
					return fmt.Errorf("--workers %d: at least 1", n)
				}
				if slices.Contains(workers[:i], n) {
					return fmt.Errorf("--workers %d is there twice", n)
				}
			}
			c, err := h.checkout()
			if err != nil {
				return err
			}
			if err := check(b); err != nil {
				return err
			}
			progress := newProgress(cmd.ErrOrStderr())
			picked, err := pick(cmd.Context(), progress, c, strings.Split(stages, ","))
			if err != nil {
				return err
			}
			b.Scale(picked, workers, workloads)
			return finish(cmd.Context(), cmd.OutOrStdout(), progress, b, c, "scale")
		},
	}
	h.flagsWithoutWorkers(cmd, 60*time.Second)
	f := cmd.Flags()
	f.StringVar(&stages, "stage", "1", "stages, separated by commas")
	f.IntSliceVar(&workers, "workers", []int{1, 2, 4, 8}, "numbers of workers, separated by commas")
	f.StringVar(&names, "workload", workload.Hello, "what to send, separated by commas: see ladder workloads")
	return cmd
}
