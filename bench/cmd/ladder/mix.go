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
	var h how
	var base, from, name string
	var files []string
	var buildOnly bool
	cmd := &cobra.Command{
		Use:   "mix --base N --from M --files request.go,head.go",
		Short: "Measure a stage with files of another: what a step brings somewhere else",
		Long: `Build a server of one stage with some files of another, in a temporary folder,
and measure it beside both. Where the files do not fit together it says which
methods they miss in each other.`,
		Example: "  ladder mix --base 0 --from 3 --files request.go,head.go --workload browser",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if base == "" || from == "" {
				return errors.New("mix needs two stages: --base for what is changed, --from for where files come from")
			}
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
			servers, err := pick(cmd.Context(), progress, c, []string{base, from})
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
			progress.say("building %s with %s of %s", servers[0].Name, strings.Join(files, ", "), servers[1].Name)
			mixed, err := run.Mix(cmd.Context(), c.root, temporary, servers[0].Name, servers[1].Name, files)
			if err != nil {
				return err
			}
			if buildOnly {
				fmt.Fprintln(cmd.OutOrStdout(), "it compiles")
				return nil
			}
			b.Remarks = append(b.Remarks, fmt.Sprintf("mix is %s with %s of %s.", servers[0].Name, strings.Join(files, ", "), servers[1].Name))
			b.Grid([]run.Server{servers[0], mixed, servers[1]}, []workload.Workload{w}, []run.Server{mixed}, servers)
			return finish(cmd.Context(), cmd.OutOrStdout(), progress, b, c, "mix")
		},
	}
	h.flags(cmd, 30*time.Second)
	f := cmd.Flags()
	f.StringVar(&base, "base", "", "the stage that is changed")
	f.StringVar(&from, "from", "", "the stage that files are taken from")
	f.StringSliceVar(&files, "files", nil, "those files")
	f.StringVar(&name, "workload", workload.Hello, "what to send: see ladder workloads")
	f.BoolVar(&buildOnly, "build-only", false, "only tell whether it compiles")
	return cmd
}
