package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/profile"
	"github.com/qps-ladder/qps-ladder/bench/site"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/bench/workshop"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "ladder",
		Short: "Measure what each step of the QPS ladder brings",
		Long: `Measure what each step of the QPS ladder brings.

Every server and every load generator is a process of its own. What is compared
is measured in the same round, and every ratio has its interval beside it.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			var names []string
			for _, sub := range cmd.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, sub.Name())
				}
			}
			return fmt.Errorf("there is no subcommand %q: choose one of %s", args[0], strings.Join(names, ", "))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newRun(), newCompare(), newPeers(), newScale(), newMix(), newGuard(), newGenerators(), newWorkloads(), newLoad(), newMerge(), newReport(), newVersion())
	root.AddCommand(profile.Commands()...)
	root.AddCommand(workshop.Commands()...)
	root.AddCommand(site.Commands()...)
	return root
}

// noArguments refuses arguments that nobody would look at.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q is not understood by %q: see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())
}

func newWorkloads() *cobra.Command {
	return &cobra.Command{
		Use: "workloads", Short: "List what servers can be driven with", Args: noArguments,
		Run: func(cmd *cobra.Command, _ []string) {
			t := table.NewWriter()
			t.SuppressTrailingSpaces()
			t.SetOutputMirror(cmd.OutOrStdout())
			t.SetStyle(table.StyleDefault)
			t.Style().Options = table.OptionsNoBordersAndSeparators
			t.AppendHeader(table.Row{"name", "what"})
			t.Style().Format.Header = 0
			for _, w := range workload.All() {
				t.AppendRow(table.Row{w.Name, w.Summary})
			}
			t.Render()
		},
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the revision this command was built from", Args: noArguments,
		Run: func(cmd *cobra.Command, _ []string) {
			revision, modified := "unknown", ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					switch {
					case s.Key == "vcs.revision":
						revision = s.Value
					case s.Key == "vcs.modified" && s.Value == "true":
						modified = " with changes"
					}
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "ladder, revision %s%s, %s %s/%s\n", revision, modified, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}
