package workshop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Commands are the commands of the workshop, for a root command to add. Each finds the repository from
// the present folder. An error is one line for the learner.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		newExercise(), newCheck(), newHint(), newWatch(), newSolution(), newReset(), newProgress(), newSubmit(), newClassroom(),
	}
}

// one is a command about one exercise, which is its argument.
func one(use, short, long string, run func(cmd *cobra.Command, root string, e *Exercise) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " number", Short: short, Long: long,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("which exercise? ladder %s 1, for example; ladder exercise lists them", use)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := findRoot()
			if err != nil {
				return err
			}
			e, err := exercise(root, args[0])
			if err != nil {
				return err
			}
			return run(cmd, root, e)
		},
	}
}

func newExercise() *cobra.Command {
	cmd := one("exercise", "Lay out the code that an exercise starts from",
		"Lay out an exercise in work/: a complete server, and EXERCISE.md, which says what to do.\nWithout a number, list the exercises.",
		func(cmd *cobra.Command, root string, e *Exercise) error {
			if err := e.layOut(root); err != nil {
				return err
			}
			o := newOutput(cmd.OutOrStdout())
			o.say("%s", o.paint(bold, fmt.Sprintf("Exercise %d: %s", e.Number, e.Title)))
			o.say("Your code is in %s/%s; begin with EXERCISE.md there.", workPath, e.Name)
			o.say("Change %s, then: make check N=%d (or make watch N=%d)", list(e.Files), e.Number, e.Number)
			return nil
		})
	lay := cmd.RunE
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return showProgress(cmd, byName)
		}
		return lay(cmd, args)
	}
	return cmd
}

// layOut writes the start. It never touches a folder that is there.
func (e *Exercise) layOut(root string) error {
	f, err := e.start(root)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(e.folder, "EXERCISE.md"))
	if err != nil {
		return err
	}
	p, err := readProgress(root)
	if err != nil {
		return err
	}
	shared, err := hashFolder(filepath.Join(root, "shared"))
	if err != nil {
		return err
	}
	folder := e.work(root)
	if err := os.MkdirAll(filepath.Dir(folder), 0o777); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o777); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s/%s is there already, with your code: make reset N=%d begins anew and keeps it", workPath, e.Name, e.Number)
	} else if err != nil {
		return err
	}
	s := p.of(e)
	s.Shared, s.Laid = shared, map[string]string{}
	for name, text := range f {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o666); err != nil {
			return err
		}
		s.Laid[name] = hashText(text)
	}
	if err := os.WriteFile(filepath.Join(folder, "EXERCISE.md"), text, 0o666); err != nil {
		return err
	}
	return p.save()
}

func newCheck() *cobra.Command {
	var quick, measure bool
	var with string
	cmd := one("check", "Check your solution of an exercise",
		"Build your code, run the common suite and the exercise's checks, and say what holds and what\ndoes not yet. Nothing depends on a time. Exit code 1 if something does not hold.",
		func(cmd *cobra.Command, root string, e *Exercise) error {
			o := newOutput(cmd.OutOrStdout())
			if err := check(cmd.Context(), o, root, e, quick, measure); err != nil {
				return err
			}
			if !measure {
				return nil
			}
			own, err := e.laidOut(root)
			if err != nil {
				return err
			}
			command, err := os.Executable()
			if err != nil {
				return err
			}
			return compare(cmd.Context(), o, root, e, own, with, command, usual)
		})
	cmd.Flags().BoolVar(&quick, "quick", false, "without the common suite")
	cmd.Flags().StringVar(&with, "workload", "", "what to measure with (default: what the exercise is about)")
	cmd.Flags().BoolVar(&measure, "measure", false, "then measure against the start and the reference, for information")
	return cmd
}

func newHint() *cobra.Command {
	var all bool
	cmd := one("hint", "Give one hint more", "Give one hint more each time; the last is nearly the answer.",
		func(cmd *cobra.Command, root string, e *Exercise) error {
			hints, err := e.hints()
			if err != nil {
				return err
			}
			p, err := readProgress(root)
			if err != nil {
				return err
			}
			s := p.of(e)
			o := newOutput(cmd.OutOrStdout())
			first := s.Hints
			if s.Hints < len(hints) {
				s.Hints++
			} else {
				first = len(hints) - 1
			}
			if all {
				first = 0
			}
			for i := first; i < s.Hints; i++ {
				o.say("%s", o.paint(bold, fmt.Sprintf("Hint %d of %d", i+1, len(hints))))
				o.say("%s", reflow(hints[i]))
			}
			if s.Hints == len(hints) {
				o.say("\nThat was the last. The reference: make solution N=%d", e.Number)
			}
			return p.save()
		})
	cmd.Flags().BoolVar(&all, "all", false, "show those that you have had too")
	return cmd
}

func newSolution() *cobra.Command {
	return one("solution", "Show the reference as a diff against your code",
		"Show what would have to change in your code to become the reference.",
		func(cmd *cobra.Command, root string, e *Exercise) error {
			own, err := e.laidOut(root)
			if err != nil {
				return err
			}
			reference, err := e.reference(root)
			if err != nil {
				return err
			}
			o := newOutput(cmd.OutOrStdout())
			text := difference(o, own, reference)
			if text == "" {
				o.say("Your code is the reference, byte for byte.")
				return nil
			}
			p, err := readProgress(root)
			if err != nil {
				return err
			}
			if s := p.of(e); s.Solved == nil && s.Looked == nil {
				now := time.Now().UTC().Truncate(time.Second)
				s.Looked = &now
				if err := p.save(); err != nil {
					return err
				}
			}
			return page(cmd.Context(), o, text)
		})
}

// page shows a text that may be longer than a screen, in the reader's pager on a terminal.
func page(ctx context.Context, o *output, text string) error {
	pager, err := exec.LookPath("less")
	if !o.terminal || err != nil {
		_, err := fmt.Fprint(o.Writer, text)
		return err
	}
	command := exec.CommandContext(ctx, pager, "-RFX")
	command.Stdin = strings.NewReader(text)
	command.Stdout, command.Stderr = o.Writer, os.Stderr
	return command.Run()
}

func newReset() *cobra.Command {
	return one("reset", "Begin an exercise anew, and keep the old code",
		"Lay an exercise out again. Your code is kept, under a name with the date.",
		func(cmd *cobra.Command, root string, e *Exercise) error {
			if _, err := e.laidOut(root); err != nil {
				return err
			}
			// The underscore keeps the go command from building what lies there.
			kept := filepath.Join(workPath, "_old", e.Name+"-"+time.Now().Format("2006-01-02-150405"))
			if err := os.MkdirAll(filepath.Join(root, filepath.Dir(kept)), 0o777); err != nil {
				return err
			}
			if _, err := os.Lstat(filepath.Join(root, kept)); err == nil {
				return fmt.Errorf("%s is there already: try again in a second", kept)
			}
			if err := os.Rename(e.work(root), filepath.Join(root, kept)); err != nil {
				return err
			}
			if err := e.layOut(root); err != nil {
				return err
			}
			newOutput(cmd.OutOrStdout()).say("%s/%s is as at the beginning; your code is in %s.", workPath, e.Name, filepath.ToSlash(kept))
			return nil
		})
}

func newProgress() *cobra.Command {
	return &cobra.Command{
		Use: "progress", Short: "Show which exercises there are and what is done", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return showProgress(cmd, byResult) },
	}
}

// How showProgress describes an exercise beside its title: there is room for one.
const (
	byResult = iota // what has become of it
	byName          // what it is called, for who chooses one
)

func showProgress(cmd *cobra.Command, how int) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	all, err := exercises(root)
	if err != nil {
		return err
	}
	p, err := readProgress(root)
	if err != nil {
		return err
	}
	o := newOutput(cmd.OutOrStdout())
	solved := 0
	for _, e := range all {
		mark, colour, remark := "  ", "", ""
		if s := p.Exercises[e.Name]; s != nil {
			switch {
			case s.Solved != nil && s.Looked != nil && s.Looked.Before(*s.Solved):
				mark, colour, remark = "ok", green, "solved, reference seen"
				solved++
			case s.Solved != nil:
				mark, colour, remark = "ok", green, "solved"
				solved++
			case s.Of > 0:
				mark, colour, remark = "..", yellow, fmt.Sprintf("%d of %d hold", s.Holds, s.Of)
			default:
				mark, colour, remark = "..", yellow, "laid out"
			}
			if s.Hints > 0 {
				remark += fmt.Sprintf(", %d %s", s.Hints, plural(s.Hints, "hint"))
			}
		}
		text := fmt.Sprintf("%2d  %s", e.Number, e.Title)
		switch _, name, _ := strings.Cut(e.Name, "-"); {
		case how == byName:
			text = fmt.Sprintf("%2d  %-21s %s", e.Number, name, e.Title)
		case remark != "":
			text = fmt.Sprintf("%-48s %s", text, remark)
		}
		o.line(mark, colour, text)
	}
	if how == byName {
		o.say("ok: solved. ..: begun; make progress says more.")
	}
	o.say("%d of %d solved. To begin one: make exercise N=1", solved, len(all))
	return nil
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// changed are the names of files that are not the same in both, in order.
func changed(a, b files) []string {
	names := map[string]bool{}
	for name := range a {
		names[name] = string(a[name]) != string(b[name])
	}
	for name := range b {
		names[name] = string(a[name]) != string(b[name])
	}
	maps.DeleteFunc(names, func(_ string, differs bool) bool { return !differs })
	return slices.Sorted(maps.Keys(names))
}
