package workshop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Workshop is the exercises of the repository that the present folder is in. Its methods are what the command
// offers; which is an exercise's number or name. An error is one line for the learner.
type Workshop struct {
	root string
	out  *output
}

// Open finds the repository. Results are written to out, in colour if that is a terminal.
func Open(out io.Writer) (*Workshop, error) {
	root, err := harness.FindRoot()
	return &Workshop{root: root, out: newOutput(out)}, err
}

// Exercises are the names of all exercises, by number: "02-conn-timer".
func (w *Workshop) Exercises() ([]string, error) {
	all, err := exercises(w.root)
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = e.Name
	}
	return names, err
}

// Knows says in an error that there is no such exercise.
func (w *Workshop) Knows(which string) error {
	_, err := exercise(w.root, which)
	return err
}

// LayOut writes the code that an exercise starts from into work/. It never touches a folder that is there.
func (w *Workshop) LayOut(which string) error {
	e, err := exercise(w.root, which)
	if err != nil {
		return err
	}
	if err := e.layOut(w.root); err != nil {
		return err
	}
	o := w.out
	o.say("%s", o.paint(bold, fmt.Sprintf("Exercise %d: %s", e.Number, e.Title)))
	o.say("Your code is in %s/%s; begin with EXERCISE.md there.", workPath, e.Name)
	o.say("Change %s, then: make check N=%d\nOr, to have it checked whenever you save: make watch N=%d", list(e.Files), e.Number, e.Number)
	return nil
}

// LayOutNext lays out the first exercise that is not solved, or says where it lies already.
func (w *Workshop) LayOutNext() error {
	e, err := w.layOutNext(nil)
	if err == nil && e == nil {
		w.out.say("All are solved.")
	}
	return err
}

// layOutNext finds the first exercise that is not solved and comes after one that may be given, or before it if none does.
// It lays it out unless that is done. nil means that there is none.
func (w *Workshop) layOutNext(after *Exercise) (*Exercise, error) {
	all, err := exercises(w.root)
	if err != nil {
		return nil, err
	}
	p, err := readProgress(w.root)
	if err != nil {
		return nil, err
	}
	if after != nil {
		i := slices.IndexFunc(all, func(e *Exercise) bool { return e.Number > after.Number })
		if i > 0 {
			all = slices.Concat(all[i:], all[:i])
		}
	}
	for _, e := range all {
		if s := p.Exercises[e.Name]; s != nil && s.Solved != nil || after != nil && e.Number == after.Number {
			continue
		}
		if _, err := os.Lstat(e.work(w.root)); err == nil {
			w.out.say("Exercise %d is begun: %s/%s. make watch N=%d", e.Number, workPath, e.Name, e.Number)
			return e, nil
		}
		return e, w.LayOut(e.Name)
	}
	return nil, nil
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
	if _, err := readProgress(root); err != nil {
		return err // before anything is written
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
	laid := map[string]string{}
	for name, text := range f {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o666); err != nil {
			return err
		}
		laid[name] = hashText(text)
	}
	if err := os.WriteFile(filepath.Join(folder, "EXERCISE.md"), text, 0o666); err != nil {
		return err
	}
	return updateProgress(root, func(p *progress) error {
		s := p.of(e)
		s.Shared, s.Laid = shared, laid
		return nil
	})
}

// CheckOptions say how much Check does.
type CheckOptions struct {
	NoSuite  bool   // leaves the common suite out
	Measure  bool   // then measures against the start and the reference, for information and for measurement.yaml
	Workload string // to measure with: what the exercise is about
	Seed     uint64 // of what is drawn by chance; 0: a new one
}

// Check grades the learner's code. Its error says that something does not hold, or that nothing could be said.
func (w *Workshop) Check(ctx context.Context, which string, options CheckOptions) error {
	e, err := exercise(w.root, which)
	if err != nil {
		return err
	}
	own, err := e.laidOut(w.root)
	if err != nil {
		return err
	}
	if err := cleanEnvironment(ctx); err != nil {
		return err
	}
	checked := check(ctx, w.out, w.root, e, own, options)
	var failed *notYet
	switch {
	case !options.Measure:
		return checked
	case errors.As(checked, &failed) && failed.onlyAnswers():
		// What is to be written down can only be known when it has been measured.
		w.out.say("All but %s holds: now it is measured, which takes some minutes.", answersFile)
	case checked != nil:
		return checked
	}
	command, err := os.Executable()
	if err != nil {
		return err
	}
	keep := func(workload string, m grade.Measured) error { return e.keepMeasured(w.root, own, workload, m) }
	if err := compare(ctx, w.out, w.root, e, own, options.Workload, command, usual, keep); err != nil {
		return err
	}
	if slices.Contains(e.Files, answersFile) {
		w.out.say("The ratio of requests per second, yours / start, is kept: write it into\n%s/%s/%s, then make check N=%d.", workPath, e.Name, answersFile, e.Number)
	}
	return checked
}

// keepMeasured remembers what a measurement of own came to, and forgets those of other code.
func (e *Exercise) keepMeasured(root string, own files, workload string, m grade.Measured) error {
	return updateProgress(root, func(p *progress) error {
		s, code := p.of(e), own.code().hash()
		all := s.measured(code)
		all[workload] = append(all[workload], m)
		s.Measured, s.MeasuredCode = all, code
		return nil
	})
}

// Hint gives one hint more, with again all that were given before it. Once the exercise is solved it gives all, and
// counts none: they are read to compare.
func (w *Workshop) Hint(which string, again bool) error {
	e, err := exercise(w.root, which)
	if err != nil {
		return err
	}
	hints, err := e.hints()
	if err != nil {
		return err
	}
	o := w.out
	var first, given int
	err = updateProgress(w.root, func(p *progress) error {
		s := p.of(e)
		if s.Solved != nil {
			given = len(hints)
			return nil
		}
		first = min(s.Hints, len(hints)-1)
		s.Hints = min(s.Hints+1, len(hints))
		given = s.Hints
		return nil
	})
	if err != nil {
		return err
	}
	if again {
		first = 0
	}
	for i := first; i < given; i++ {
		o.say("%s", o.paint(bold, fmt.Sprintf("Hint %d of %d", i+1, len(hints))))
		o.say("%s", reflow(hints[i]))
	}
	if given == len(hints) {
		o.say("\nThat was the last. The reference: make solution N=%d", e.Number)
	}
	return nil
}

// Solution shows the reference as a diff against the learner's code.
func (w *Workshop) Solution(ctx context.Context, which string) error {
	e, err := exercise(w.root, which)
	if err != nil {
		return err
	}
	own, err := e.laidOut(w.root)
	if err != nil {
		return err
	}
	reference, err := e.reference(w.root)
	if err != nil {
		return err
	}
	text := difference(w.out, own, reference)
	if text == "" {
		w.out.say("Your code is the reference, byte for byte.")
		return nil
	}
	err = updateProgress(w.root, func(p *progress) error {
		if s := p.of(e); s.Solved == nil && s.Looked == nil {
			now := time.Now().UTC().Truncate(time.Second)
			s.Looked = &now
		}
		return nil
	})
	if err != nil {
		return err
	}
	return page(ctx, w.out, text)
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

// Reset lays an exercise out again. The old code is kept, under a name with the date.
func (w *Workshop) Reset(which string) error {
	e, err := exercise(w.root, which)
	if err != nil {
		return err
	}
	// Whatever is in it: a folder that has lost its Go files is begun anew too.
	if _, err := os.Lstat(e.work(w.root)); errors.Is(err, fs.ErrNotExist) {
		return e.notLaidOut()
	}
	// The underscore keeps the go command from building what lies there.
	kept := filepath.Join(workPath, "_old", e.Name+"-"+time.Now().Format("2006-01-02-150405"))
	if err := os.MkdirAll(filepath.Join(w.root, filepath.Dir(kept)), 0o777); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(w.root, kept)); err == nil {
		return fmt.Errorf("%s is there already: try again in a second", kept)
	}
	if err := os.Rename(e.work(w.root), filepath.Join(w.root, kept)); err != nil {
		return err
	}
	if err := e.layOut(w.root); err != nil {
		return err
	}
	w.out.say("%s/%s is as at the beginning; your code is in %s.", workPath, e.Name, filepath.ToSlash(kept))
	return nil
}

// List shows which exercises there are, by name, for who chooses one.
func (w *Workshop) List() error { return w.list(byName) }

// Progress shows which exercises there are and what has become of each.
func (w *Workshop) Progress() error { return w.list(byResult) }

// How list describes an exercise beside its title: there is room for one.
const (
	byResult = iota
	byName
)

func (w *Workshop) list(how int) error {
	all, err := exercises(w.root)
	if err != nil {
		return err
	}
	p, err := readProgress(w.root)
	if err != nil {
		return err
	}
	o := w.out
	solved := 0
	for _, e := range all {
		mark, colour, remark := "  ", "", ""
		if s := p.Exercises[e.Name]; s != nil {
			switch {
			case s.Solved != nil && s.Looked != nil && s.Looked.Before(*s.Solved):
				mark, colour, remark = "ok", green, "reference seen" // a line has no room for "solved" too
				solved++
			case s.Solved != nil:
				mark, colour, remark = "ok", green, "solved"
				solved++
			case s.Of > 0:
				mark, colour, remark = "..", yellow, fmt.Sprintf("%d of %d hold", s.Holds, s.Of)
			case s.laidOut():
				mark, colour, remark = "..", yellow, "laid out"
			}
			if s.Hints > 0 {
				remark = strings.TrimPrefix(fmt.Sprintf("%s, %d %s", remark, s.Hints, plural(s.Hints, "hint")), ", ")
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
