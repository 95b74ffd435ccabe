package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// usageError says that the command line was not understood, which is exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usage marks an error as one of the command line; nil stays nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// understand marks what cobra and the Args of cmd and its subcommands refuse.
func understand(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, given []string) error { return usage(args(cmd, given)) }
	}
	for _, sub := range cmd.Commands() {
		understand(sub)
	}
}

// noArguments refuses arguments that nobody would look at.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q is not understood by %q: see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())
}

// some wants at least one argument.
func some(complaint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New(complaint)
		}
		return nil
	}
}

// oneOf refuses a value that is none of these; "" is left to the default.
func oneOf(what, value string, choices ...string) error {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	last := len(choices) - 1
	return fmt.Errorf("there is no %s %q: choose %s or %s", what, value, strings.Join(choices[:last], ", "), choices[last])
}

// stageNames are the folders of the stages that the arguments name, each once; all when there are
// none.
func stageNames(root string, args []string) ([]string, error) {
	all, err := harness.Stages(root)
	if err != nil || len(args) == 0 {
		return all, err
	}
	var names []string
	for _, text := range args {
		s, err := harness.PickStage(all, strings.TrimSpace(text))
		if err != nil {
			return nil, usage(err)
		}
		if slices.Contains(names, s) {
			return nil, usage(fmt.Errorf("%s is named twice; what it differs from itself by is the noise floor, which every comparison shows", s))
		}
		names = append(names, s)
	}
	return names, nil
}
