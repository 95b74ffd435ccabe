package main

import (
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/run"
)

func newServe() *cobra.Command {
	return &cobra.Command{
		Use:   "serve stage [-- flag...]",
		Short: "Build one stage and run it until Ctrl-C (make stage3)",
		Long: `Build one stage and run it until Ctrl-C. Behind two dashes stand flags of the
server: -h lists them.`,
		Example:           "  ladder serve 3 -- -addr 127.0.0.1:8081 -admin 127.0.0.1:9090",
		Args:              some("which stage? for example: ladder serve 3"),
		ValidArgsFunction: completeStages(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var h measuring
			c, err := h.checkout()
			if err != nil {
				return err
			}
			names, err := stageNames(c.root, args[:1])
			if err != nil {
				return err
			}
			servers, err := run.BuildStages(cmd.Context(), c.root, c.bin, names)
			if err != nil {
				return err
			}
			server := exec.CommandContext(cmd.Context(), servers[0].Path, append([]string{"-foreground"}, args[1:]...)...)
			server.Stdin, server.Stdout, server.Stderr = os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr()
			server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
			if err := server.Run(); err != nil && cmd.Context().Err() == nil {
				return err
			}
			return nil
		},
	}
}
