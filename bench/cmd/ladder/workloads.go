package main

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/workload"
)

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
