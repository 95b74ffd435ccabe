package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func newWorkloads() *cobra.Command {
	return &cobra.Command{
		Use: "workloads", Short: "List what servers can be driven with", Args: noArguments,
		Run: func(cmd *cobra.Command, _ []string) {
			for _, w := range slices.Concat(workload.All(), workload.OfExercises()) {
				fmt.Fprintln(cmd.OutOrStdout(), console.Paragraph(fmt.Sprintf("%-14s  ", w.Name), strings.Repeat(" ", 16), w.Summary))
			}
		},
	}
}
