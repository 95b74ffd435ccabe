package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/lab"
	"github.com/qps-ladder/qps-ladder/bench/site"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func newLab() *cobra.Command {
	var o lab.Options
	var guess, quick bool
	var asJSON jsonFile
	cmd := &cobra.Command{
		Use:   "lab [name]",
		Short: "One small question: ways to do the same, in turns, after a guess (make lab)",
		Long: `Run a lab: a question, a baseline and some other ways to do the same. It asks for a
guess, checks that all ways do the same, runs them in turns in rounds, and prints
what each takes, its ratio to the baseline with an interval, what the documents
say, and what it is worth for a request. Without a name, list them.

What is run is a standard benchmark: go test -bench . ./bench/labs/NAME.`,
		Example:           "  ladder lab\n  ladder lab locks\n  ladder lab locks --guess=false --json locks.json",
		ValidArgsFunction: complete(1, func(*cobra.Command) []string { return labWords() }),
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.Rounds < 0:
				return errors.New("--rounds must be at least 1")
			case o.Time <= 0:
				return errors.New("--time must be positive")
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := harness.FindRoot()
			if err != nil {
				return err
			}
			out := asJSON.text(cmd)
			if len(args) == 0 {
				labs, err := lab.All(root)
				if err == nil {
					lab.List(out, labs)
				}
				return err
			}
			l, err := findLab(root, args[0])
			if err != nil {
				return err
			}
			if quick {
				o.Time = quickLab
			}
			l.Introduce(out)
			guessed := -1
			if guess && asJSON != "-" {
				if guessed, err = l.Ask(cmd.Context(), cmd.InOrStdin(), out); err != nil {
					return err
				}
				fmt.Fprintln(out)
			}
			p := newProgress(cmd.ErrOrStderr())
			o.Tell, o.Seed = p.step, uint64(time.Now().UnixNano())
			result, err := l.Measure(cmd.Context(), root, o)
			p.clear()
			if result == nil {
				return err
			}
			l.Report(out, root, result, guessed)
			if asJSON == "" && err == nil { // for the site, which shows it beside ours
				if err = os.MkdirAll(filepath.Join(root, "bench", "out"), 0o755); err == nil {
					asJSON = jsonFile(filepath.Join(root, "bench", "out", site.LabFile(l.Name)))
				}
			}
			return errors.Join(err, asJSON.write(cmd, result))
		},
	}
	f := cmd.Flags()
	f.BoolVar(&guess, "guess", true, "ask for a guess first")
	f.BoolVar(&quick, "quick", false, "a first, noisy look")
	f.IntVar(&o.Rounds, "rounds", 0, "how many rounds (default: as many as fit in --time, at least 6)")
	f.DurationVar(&o.Time, "time", 30*time.Second, "time for all rounds together")
	asJSON.flag(cmd, "the result")
	return cmd
}

// findLab finds a lab by its name.
func findLab(root, name string) (*lab.Lab, error) {
	labs, err := lab.All(root)
	if err != nil {
		return nil, err
	}
	for _, l := range labs {
		if l.Name == name {
			return l, nil
		}
	}
	return nil, usage(fmt.Errorf("there is no lab %q: choose one of %s", name, strings.Join(lab.Names(labs), ", ")))
}

// quickLab is the time for a first look.
const quickLab = 4 * time.Second

// labWords are the names of the labs, each with its title behind a tab.
func labWords() (words []string) {
	root, err := harness.FindRoot()
	if err != nil {
		return nil
	}
	labs, err := lab.All(root)
	if err != nil {
		return nil
	}
	for _, l := range labs {
		words = append(words, l.Name+"\t"+l.Title)
	}
	return words
}
