package site

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/run"
)

// Commands are the subcommands for the documentation, to be added to the command
// ladder.
func Commands() []*cobra.Command {
	docs := &cobra.Command{
		Use:   "docs",
		Short: "Build, read and check the documentation",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	docs.AddCommand(newBuild(), newServe(), newCheck(), newReadmes(), newRefresh())
	return []*cobra.Command{docs}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q is not understood by %q: see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())
}

// defaultFolder is where the site goes, from the root of the repository.
const defaultFolder = "docs/_site"

func build(out string) (root, folder string, err error) {
	if root, err = run.Root(); err != nil {
		return "", "", err
	}
	if folder = out; folder == "" {
		folder = filepath.Join(root, filepath.FromSlash(defaultFolder))
	}
	site, err := Build(root)
	if err != nil {
		return "", "", err
	}
	return root, folder, site.Write(folder)
}

func newBuild() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "build", Short: "Build the site into docs/_site", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, folder, err := build(out)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "built %s: open index.html in a browser\n", folder)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder for the site (default: "+defaultFolder+")")
	return cmd
}

func newServe() *cobra.Command {
	var out, address, stage string
	cmd := &cobra.Command{
		Use: "serve", Short: "Build the site and serve it on this machine", Args: noArguments,
		Long: `Build the site and serve it on this machine, with Go's file server or, with
--stage, with one of the project's own six servers.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, folder, err := build(out)
			if err != nil {
				return err
			}
			if stage != "" {
				return serveByStage(cmd.Context(), root, folder, stage, address, cmd.OutOrStdout())
			}
			return serveFolder(cmd.Context(), folder, address, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "folder for the site (default: "+defaultFolder+")")
	f.StringVar(&address, "addr", "127.0.0.1:8000", "where to listen, on loopback; port 0 takes a free one")
	f.StringVar(&stage, "stage", "", "serve it with this stage, 0 to 5")
	return cmd
}

func newCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Check links, figures, hunks and commands of the documentation", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := run.Root()
			if err != nil {
				return err
			}
			if _, err := Build(root); err != nil {
				return err
			}
			if err := Check(root); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "the documentation is sound")
			return nil
		},
	}
}

func newReadmes() *cobra.Command {
	return &cobra.Command{
		Use: "readmes", Short: "Write the figures in README.md and the stages' READMEs anew from docs/data", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := run.Root()
			if err != nil {
				return err
			}
			changed, err := UpdateReadmes(root)
			for _, name := range changed {
				fmt.Fprintf(cmd.OutOrStdout(), "new figures in %s\n", name)
			}
			return err
		},
	}
}

func newRefresh() *cobra.Command {
	r := refresh{}
	cmd := &cobra.Command{
		Use: "refresh", Short: "Measure anew every figure that the documentation quotes", Args: noArguments,
		Long: `Measure anew every figure that the documentation quotes, into docs/data:

  ladder     what make ladder measures
  split      stage1 beside stage0, the generator on a CPU of its own
  peers      stage5 beside the servers of other libraries
  ablation   the variants of bench/variants/ablation.yaml, beside their stages
  profiles   where the CPU time of each stage goes: the table and the flame graphs

The figures in README.md and in the stages' READMEs are written anew from them.

Let nothing else run meanwhile. It takes about a quarter of an hour.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := run.Root()
			if err != nil {
				return err
			}
			command, err := os.Executable()
			if err != nil {
				return err
			}
			r.out = cmd.OutOrStdout()
			return r.run(cmd.Context(), root, command)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&r.only, "only", nil, "measure these parts only: ladder, split, peers, ablation, profiles")
	f.IntVar(&r.rounds, "rounds", 0, "rounds of the ablation (default: as many as fit in --time, at least 6)")
	f.DurationVar(&r.time, "time", 5*time.Minute, "time for the ablation")
	f.BoolVar(&r.quick, "quick", false, "short and noisy: to see that all of it works")
	return cmd
}
