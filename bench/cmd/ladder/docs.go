package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/site"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func newDocs() *cobra.Command {
	docs := &cobra.Command{
		Use:   "docs",
		Short: "Build, read and check the documentation",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	docs.AddCommand(newDocsBuild(), newDocsServe(), newDocsCheck(), newDocsReadmes(), newDocsRefresh(), newDocsMachine())
	return docs
}

// siteFolder is where the site goes, from the root of the repository.
const siteFolder = "docs/_site"

// buildSite builds it into out, "" for siteFolder.
func buildSite(out string) (root, folder string, err error) {
	if root, err = harness.FindRoot(); err != nil {
		return "", "", err
	}
	if folder = out; folder == "" {
		folder = filepath.Join(root, filepath.FromSlash(siteFolder))
	}
	s, err := site.BuildBeside(root, filepath.Join(root, "bench", "out", "ladder.json"))
	if err != nil {
		return "", "", err
	}
	return root, folder, s.Write(folder)
}

func newDocsBuild() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "build", Short: "Build the site into " + siteFolder, Args: noArguments,
		Long: "Build the site into " + siteFolder + `. What make ladder, peers, where and lab have
measured on this machine stands beside the figures that were measured for the pages;
a button hides it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, folder, err := buildSite(out)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "built %s: open index.html in a browser\n", folder)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "folder for the site (default: "+siteFolder+")")
	return cmd
}

func newDocsServe() *cobra.Command {
	var out, address string
	cmd := &cobra.Command{
		Use: "serve [stage]", Short: "Build the site and serve it on this machine",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeStages(1),
		Long: `Build the site and serve it on this machine, with Go's file server or, when a
stage is named, with that one of the project's own six servers.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, folder, err := buildSite(out)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return site.Serve(cmd.Context(), folder, address, cmd.OutOrStdout())
			}
			stages, err := stageNames(root, args)
			if err != nil {
				return err
			}
			return site.ServeByStage(cmd.Context(), root, folder, stages[0], address, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "folder for the site (default: "+siteFolder+")")
	f.StringVar(&address, "addr", "127.0.0.1:8000", "where to listen, on loopback; port 0 takes a free one")
	return cmd
}

func newDocsCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Check links, figures, hunks and commands of the documentation", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := harness.FindRoot()
			if err != nil {
				return err
			}
			if _, err := site.Build(root); err != nil {
				return err
			}
			if err := site.Check(root); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "the documentation is sound")
			return nil
		},
	}
}

func newDocsReadmes() *cobra.Command {
	return &cobra.Command{
		Use: "readmes", Short: "Write figures, tables and links in chapters and READMEs", Args: noArguments,
		Long: `Write anew what stands between the marks of all chapters and READMEs, from
docs/data and the code, and the pictures that they show. What is written in short,
as {{figure "hello.stage1.qps"}}, becomes a mark; see docs/README.md.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := harness.FindRoot()
			if err != nil {
				return err
			}
			changed, err := site.WriteMarks(root)
			for _, name := range changed {
				fmt.Fprintf(cmd.OutOrStdout(), "written anew: %s\n", name)
			}
			return err
		},
	}
}

func newDocsMachine() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "machine name", Short: "Add this machine's run of the ladder to those that the pages compare",
		Long: `Add what make ladder has measured on this machine to docs/data/machines, with the
facts of the machine and without the rounds. The name says what machine it is, such
as xeon-gold-4: small letters, digits and hyphens.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := harness.FindRoot()
			if err != nil {
				return err
			}
			if file == "" {
				file = filepath.Join(root, "bench", "out", "ladder.json")
			}
			path, err := site.AddMachine(root, args[0], file)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "added %s\n", path)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&file, "run", "", "`file` of the run (default: bench/out/ladder.json)")
	return cmd
}

func newDocsRefresh() *cobra.Command {
	r := site.Refresh{}
	cmd := &cobra.Command{
		Use: "refresh", Short: "Measure anew every figure that the documentation quotes",
		Long: `Measure anew every figure that the documentation quotes, into docs/data:

  ladder     what make ladder measures
  shared     stage1 beside stage0, on one CPU together with the generator
  loops      the same with two loops each, where all share all CPUs
  peers      stage5 and the summit beside the servers of other libraries
  rate       every stage at one rate, half of what stage0 can serve
  network    stages 4 and 5 over loopback, veth pair and bridge (needs root)
  ablation   the variants of bench/variants/ablation.yaml, beside their stages
  elsewhere  rows beside the ladder: bench/variants/elsewhere.yaml
  uring      stage5 and the bare C loop beside their twins with io_uring: bench/variants/uring.yaml
  summit     what each part of bench/variants/summit.yaml brings to stage5, and all
  events     what an event costs with 1 and 1,000 subscribers: exercise 22
  pin        how often threads are moved, with -pin and without: needs perf
  profiles   where the CPU time of each stage goes: the table and the flame graphs
  labs       the labs, a file for each; --lab names some

The figures and tables in chapters and READMEs are written anew from them.

Let nothing else run meanwhile. It takes three quarters of an hour.`,
		Args: func(cmd *cobra.Command, args []string) error {
			for _, part := range r.Only {
				if err := oneOf("part", part, site.RefreshParts...); err != nil {
					return fmt.Errorf("--only: %w", err)
				}
			}
			return noArguments(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := harness.FindRoot()
			if err != nil {
				return err
			}
			for _, name := range r.Labs {
				if _, err := findLab(root, name); err != nil {
					return err
				}
			}
			command, err := os.Executable()
			if err != nil {
				return err
			}
			r.Out = cmd.OutOrStdout()
			return r.Run(cmd.Context(), root, command)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&r.Only, "only", nil, "measure these parts only: "+strings.Join(site.RefreshParts, ", "))
	f.StringSliceVar(&r.Labs, "lab", nil, "of the labs run these only")
	f.IntVar(&r.Rounds, "rounds", 0, "rounds of the ablation, the summit and elsewhere (default: as many as fit in --time, at least 6)")
	f.DurationVar(&r.Time, "time", 5*time.Minute, "time for each of them")
	f.BoolVar(&r.Quick, "quick", false, "short and noisy: to see that all of it works")
	completeFlag(cmd, "only", site.RefreshParts...)
	return cmd
}
