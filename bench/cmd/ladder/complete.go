package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/bench/workshop"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// completion is how a shell is told what could follow.
type completion = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// complete offers at most so many of some words, none of them twice. Behind a tab in a word stands
// what it is.
func complete(most int, words func(cmd *cobra.Command) []string) completion {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		left := slices.DeleteFunc(words(cmd), func(word string) bool {
			name, _, _ := strings.Cut(word, "\t")
			return slices.Contains(args, name)
		})
		return left, cobra.ShellCompDirectiveNoFileComp
	}
}

const unlimited = 1 << 20

// completeStages offers the stages' numbers.
func completeStages(most int) completion {
	return complete(most, func(*cobra.Command) (words []string) {
		root, err := harness.FindRoot()
		if err != nil {
			return nil
		}
		all, err := harness.Stages(root)
		if err != nil {
			return nil
		}
		for _, s := range all {
			number, what, _ := strings.Cut(strings.TrimPrefix(s, "stage"), "-")
			words = append(words, number+"\t"+what)
		}
		return words
	})
}

// exerciseWords are the numbers of the exercises.
func exerciseWords(*cobra.Command) (words []string) {
	w, err := workshop.Open(nil)
	if err != nil {
		return nil
	}
	all, err := w.Exercises()
	if err != nil {
		return nil
	}
	for _, name := range all {
		number, what, _ := strings.Cut(name, "-")
		words = append(words, strings.TrimPrefix(number, "0")+"\t"+what)
	}
	return words
}

// completeFlag has a flag complete with these words.
func completeFlag(cmd *cobra.Command, flag string, words ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // there is no such flag
	}
}

// workloadFlag gives a command --workload.
func workloadFlag(cmd *cobra.Command, name *string, normally, help string) {
	cmd.Flags().StringVar(name, "workload", normally, help+": see ladder workloads")
	err := cmd.RegisterFlagCompletionFunc("workload", complete(unlimited, func(*cobra.Command) (words []string) {
		for _, w := range workload.All() {
			words = append(words, w.Name+"\t"+w.Summary)
		}
		return words
	}))
	if err != nil {
		panic(err)
	}
}
