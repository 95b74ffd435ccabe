package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/run"
)

func newRun() *cobra.Command {
	var h measuring
	var ceiling bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Measure all stages: the ladder itself (make ladder)",
		Long: `Build all six stages, drive each on hello and on the workload where its step
must show, and print the progression. Reports go to bench/out: ladder.html to look
at, ladder.json, ladder.md and ladder.csv with all columns, and copies of the JSON
and the Markdown with the date in their names.`,
		Args: noArguments,
		RunE: h.measures("ladder", new(string), func(j *job, _ []string) error {
			stages, err := j.build()
			if err != nil {
				return err
			}
			var top *run.Server
			if ceiling {
				if top, err = j.buildBareC(); err != nil {
					return err
				}
			}
			if h.quick && h.generator == run.Wrk {
				j.Brief = true
				j.Remarks = append(j.Remarks, "wrk measures whole seconds, so a quick run has hello alone; without --quick the targets are there too.")
			}
			if err := j.Ladder(stages, top); err != nil {
				return err
			}
			return nil
		}),
	}
	h.flags(cmd, 4*time.Minute)
	cmd.Flags().BoolVar(&ceiling, "ceiling", true, "measure the bare C loop too when there is a C compiler")
	return cmd
}
