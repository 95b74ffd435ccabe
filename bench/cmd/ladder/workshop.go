package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/bench/workshop"
)

func newWorkshop() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workshop",
		Short: "Exercises that grade themselves (make exercise, make check, …)",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newExercise(), newCheck(), newHint(), newWatch(), newSolution(), newReset(), newSubmit(), newWorkshopProgress(), newClassroom(), newPlay())
	return cmd
}

// ofExercise is a command about one exercise, which is its argument.
func ofExercise(use, short, long string, do func(ctx context.Context, w *workshop.Workshop, which string) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " number", Short: short, Long: long,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("which exercise? make %s N=1, for example (ladder workshop %[1]s 1); make exercise lists them", use)
			}
			return nil
		},
		ValidArgsFunction: complete(1, exerciseWords),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := workshop.Open(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			if err := w.Knows(args[0]); err != nil {
				return usage(err)
			}
			return do(cmd.Context(), w, args[0])
		},
	}
}

func newExercise() *cobra.Command {
	cmd := ofExercise("exercise", "Lay out the code that an exercise starts from",
		"Lay out an exercise in work/: a complete server, and EXERCISE.md, which says what to do.\nWithout a number, list the exercises.",
		func(_ context.Context, w *workshop.Workshop, which string) error { return w.LayOut(which) })
	var next bool
	cmd.Flags().BoolVar(&next, "next", false, "the first that is not solved")
	layOut := cmd.RunE
	cmd.Use = "exercise [number]"
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return layOut(cmd, args)
		}
		w, err := workshop.Open(cmd.OutOrStdout())
		if err != nil {
			return err
		}
		if next {
			return w.LayOutNext()
		}
		return w.List()
	}
	return cmd
}

func newCheck() *cobra.Command {
	var options workshop.CheckOptions
	cmd := ofExercise("check", "Check your solution of an exercise",
		"Build your code, run the common suite and the exercise's checks, and say what holds and what\ndoes not yet. Nothing depends on a time. Exit code 1 if something does not hold.",
		func(ctx context.Context, w *workshop.Workshop, which string) error {
			if options.Workload != "" {
				if _, err := workload.ByName(options.Workload); err != nil {
					return usage(err)
				}
			}
			return w.Check(ctx, which, options)
		})
	f := cmd.Flags()
	f.BoolVar(&options.NoSuite, "no-suite", false, "leave the common suite out")
	f.Uint64Var(&options.Seed, "seed", 0, "draw the same numbers, sizes and order as a check that printed this")
	f.BoolVar(&options.Measure, "measure", false, "then measure against the start and the reference, for information")
	workloadFlag(cmd, &options.Workload, "", "what to measure with (default: what the exercise is about)")
	return cmd
}

func newHint() *cobra.Command {
	var again bool
	cmd := ofExercise("hint", "Give one hint more", "Give one hint more each time; the last is nearly the answer.",
		func(_ context.Context, w *workshop.Workshop, which string) error { return w.Hint(which, again) })
	cmd.Flags().BoolVar(&again, "all", false, "show those that you have had too")
	return cmd
}

func newWatch() *cobra.Command {
	return ofExercise("watch", "Check on every save",
		"Run the exercise's checks, without the common suite, whenever a file is saved, and begin anew\nif one is saved meanwhile. Keys: h gives a hint, n goes on to the next exercise, q ends it.",
		func(ctx context.Context, w *workshop.Workshop, which string) error { return w.Watch(ctx, which) })
}

func newSolution() *cobra.Command {
	return ofExercise("solution", "Show the reference as a diff against your code",
		"Show what would have to change in your code to become the reference.",
		func(ctx context.Context, w *workshop.Workshop, which string) error { return w.Solution(ctx, which) })
}

func newReset() *cobra.Command {
	return ofExercise("reset", "Begin an exercise anew, and keep the old code",
		"Lay an exercise out again. Your code is kept, under a name with the date.",
		func(_ context.Context, w *workshop.Workshop, which string) error { return w.Reset(which) })
}

func newSubmit() *cobra.Command {
	var file string
	cmd := ofExercise("submit", "Write a small file to hand in",
		"Write the result of the last check to a small JSON file: counters, machine, the commit, and the code\nas a diff against the start.\nNothing in it says who you are: name the file as your instructor wants it.",
		func(ctx context.Context, w *workshop.Workshop, which string) error { return w.Submit(ctx, which, file) })
	cmd.Flags().StringVar(&file, "file", "", "where to write it (default: in work/results)")
	return cmd
}

func newWorkshopProgress() *cobra.Command {
	return &cobra.Command{
		Use: "progress", Short: "Show which exercises there are and what is done", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := workshop.Open(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			return w.Progress()
		},
	}
}

func newClassroom() *cobra.Command {
	var options workshop.ClassroomOptions
	cmd := &cobra.Command{
		Use: "classroom file…", Short: "Merge what learners hand in into one table and chart",
		Long:    "Merge the files that learners hand in (make submit) into one table and one chart.\nThe name of a file stands for whoever handed it in.\nWhat does not fit together is marked. Nothing that was handed in is run, except with --grade.",
		Example: "  ladder workshop classroom results/*.json --svg classroom.svg",
		Args:    some("which files? for example: make classroom FILES='results/*.json'"),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := workshop.Open(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			return w.Classroom(cmd.Context(), args, options)
		},
	}
	cmd.Flags().StringVar(&options.SVG, "svg", "", "write the chart to this file too")
	cmd.Flags().BoolVar(&options.Grade, "grade", false, "apply each diff to a clean copy of its commit and check it again: this RUNS the learners' code")
	return cmd
}

func newPlay() *cobra.Command {
	var number int
	var seed uint64
	cmd := ofExercise("play", "Run one check and show every byte",
		"Run one check of an exercise and show every byte that its clients send and get;\nof a figure, which is counted over thousands of requests, the first ones.\nA check that does not hold says which number it has.",
		func(ctx context.Context, w *workshop.Workshop, which string) error {
			return w.Play(ctx, which, number, seed)
		})
	cmd.Flags().IntVar(&number, "case", 1, "which check, from 1")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "of what is drawn by chance")
	return cmd
}
