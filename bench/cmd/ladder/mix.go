package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func newMix() *cobra.Command {
	var h measuring
	var name string
	var files []string
	var buildOnly bool
	cmd := &cobra.Command{
		Use:   "mix stage stage --files request.go,head.go",
		Short: "Measure a stage with files of another: what a step brings somewhere else",
		Long: `Build a server of the first stage with some files of the second, in a temporary
folder, and measure it beside both. Where the files do not fit together it says
which methods they miss in each other.`,
		Example:           "  ladder mix 0 3 --files request.go,head.go --workload browser",
		ValidArgsFunction: completeStages(2),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || len(files) == 0 {
				return errors.New("mix needs two stages, what is changed and where --files come from: for example ladder mix 0 3 --files request.go,head.go")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := h.begin(cmd, name)
			if err != nil {
				return err
			}
			servers, err := j.build(args...)
			if err != nil {
				return err
			}
			temporary, err := os.MkdirTemp("", "ladder-mix-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(temporary)
			for i := range files {
				files[i] = strings.TrimSpace(files[i])
			}
			what := fmt.Sprintf("%s with %s of %s", servers[0].Name, strings.Join(files, ", "), servers[1].Name)
			j.progress.say("building %s", what)
			mixed, err := run.Mix(j.ctx, j.root, temporary, servers[0].Name, servers[1].Name, files)
			if err != nil {
				return err
			}
			if buildOnly {
				fmt.Fprintln(cmd.OutOrStdout(), "it compiles")
				return nil
			}
			j.Remarks = append(j.Remarks, "mix is "+what+".")
			j.Grid([]run.Server{servers[0], mixed, servers[1]}, j.workloads, []run.Server{mixed}, servers)
			return j.finish("mix")
		},
	}
	h.flags(cmd, 30*time.Second)
	workloadFlag(cmd, &name, workload.Hello, "what to send, one or several separated by commas")
	cmd.Flags().StringSliceVar(&files, "files", nil, "those of the second stage that it gets")
	cmd.Flags().BoolVar(&buildOnly, "build-only", false, "only tell whether it compiles")
	return cmd
}
