package workshop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

const (
	exercisesPath = "docs/workshop/exercises"
	workPath      = "work"
)

// Exercise is one exercise, as its folder tells.
type Exercise struct {
	// Number and Name are those of the folder: 2 and "02-conn-timer".
	Number int    `yaml:"-"`
	Name   string `yaml:"-"`

	Title string `yaml:"title"`
	// Base is the stage that it builds on. Reference is the stage that solves it, or "" if the folder
	// has a reference of its own; "start" if that is laid over the start, and not over the base.
	Base      string `yaml:"base"`
	Reference string `yaml:"reference"`
	// Files may be changed; new ones may be added.
	Files []string `yaml:"files"`
	// Checks are what has to hold beside the common suite.
	Checks []grade.Check `yaml:"checks"`
	// StartFails are the checks that the start must fail, and no others.
	StartFails []string `yaml:"start_fails"`
	// Why is a question for afterwards.
	Why string `yaml:"why"`
	// Needs is what not every kernel has: "io_uring", or "" for nothing.
	Needs string `yaml:"needs"`
	// Measure is the workload to compare with, for information.
	Measure string `yaml:"measure"`

	folder string
}

// exercises reads all exercises, in their order.
func exercises(root string) ([]*Exercise, error) {
	folders, err := filepath.Glob(filepath.Join(root, exercisesPath, "[0-9][0-9]-*"))
	if err != nil {
		return nil, err
	}
	var all []*Exercise
	for _, folder := range folders {
		e, err := readExercise(folder)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(folder), err)
		}
		all = append(all, e)
	}
	return all, nil
}

// exercise finds one by its number, or by its name or a part of it that no other has.
func exercise(root, which string) (*Exercise, error) {
	all, err := exercises(root)
	if err != nil {
		return nil, err
	}
	var found []*Exercise
	number, err := strconv.Atoi(which)
	for _, e := range all {
		if err == nil && e.Number == number || err != nil && strings.Contains(e.Name, which) {
			found = append(found, e)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	numbers := make([]string, len(all))
	for i, e := range all {
		numbers[i] = strconv.Itoa(e.Number)
	}
	return nil, fmt.Errorf("there is no exercise %q: choose one of %s", which, strings.Join(numbers, ", "))
}

func readExercise(folder string) (*Exercise, error) {
	e := &Exercise{folder: folder, Name: filepath.Base(folder)}
	number, _, _ := strings.Cut(e.Name, "-")
	e.Number, _ = strconv.Atoi(number)
	text, err := os.ReadFile(filepath.Join(folder, "exercise.yaml"))
	if err != nil {
		return nil, err
	}
	if err := harness.DecodeYAML(text, e); err != nil {
		return nil, fmt.Errorf("exercise.yaml: %w", err)
	}
	return e, e.valid()
}

func (e *Exercise) valid() error {
	if e.Needs != "" && e.Needs != ioUring {
		return fmt.Errorf("exercise.yaml: needs is %q, and can be %q", e.Needs, ioUring)
	}
	if e.Number == 0 || e.Title == "" || e.Base == "" || len(e.Files) == 0 || len(e.Checks) == 0 {
		return errors.New("exercise.yaml needs a title, a base, files and checks")
	}
	names := map[string]bool{}
	for _, c := range e.Checks {
		names[c.Name()] = true
		switch {
		case c.Behaviour != "":
			if !grade.KnownBehaviour(c.Behaviour) {
				return fmt.Errorf("exercise.yaml: there is no behaviour %q", c.Behaviour)
			}
		case !grade.KnownFigure(c.Figure):
			return fmt.Errorf("exercise.yaml: there is no figure %q", c.Figure)
		case (c.AtMost == nil) == (c.AtLeast == nil):
			return fmt.Errorf("exercise.yaml: %s needs at_most or at_least", c.Name())
		}
	}
	for _, name := range e.StartFails {
		if !names[name] {
			return fmt.Errorf("exercise.yaml: start_fails names %q, which is no check of it", name)
		}
	}
	return nil
}

// ioUring is what an exercise may need.
const ioUring = "io_uring"

// impossible says why the exercise's servers cannot run here; nil if they can.
func (e *Exercise) impossible() error {
	if e.Needs == ioUring {
		if err := netpoll.RingError(); err != nil {
			return fmt.Errorf("exercise %d cannot be checked: %w", e.Number, err)
		}
	}
	return nil
}

// work is the learner's folder.
func (e *Exercise) work(root string) string { return filepath.Join(root, workPath, e.Name) }

// onStart says that an exercise's own reference is laid over its start.
const onStart = "start"

// answersFile is what some exercises ask the learner to write, beside code.
const answersFile = "measurement.yaml"

// files are a package's Go files without its tests, and its answers, by name.
type files map[string][]byte

func readFiles(folder string) (files, error) {
	out := files{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || strings.HasSuffix(name, "_test.go") || !strings.HasSuffix(name, ".go") && name != answersFile {
			continue
		}
		if out[name], err = os.ReadFile(filepath.Join(folder, name)); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s %w", folder, errNoFiles)
	}
	return out, nil
}

var errNoFiles = errors.New("has no Go files")

// variant is the start or the reference of the exercise, or what patches make of it.
func (e *Exercise) variant(name string, patches ...string) harness.Variant {
	v := harness.Variant{Name: e.Name + "-" + name, Stage: e.Base}
	add := func(what string) {
		folder := exercisesPath + "/" + e.Name + "/"
		change := harness.Change{Folder: folder + "_" + what, Patch: folder + what + ".patch"}
		if _, err := os.Stat(filepath.Join(e.folder, "_"+what)); err != nil {
			change.Folder = ""
		}
		if _, err := os.Stat(filepath.Join(e.folder, what+".patch")); err != nil {
			change.Patch = ""
		}
		v.Then = append(v.Then, change)
	}
	switch {
	case name == onStart:
		add("start")
	case e.Reference == "":
		add("reference")
	case e.Reference == onStart:
		add("start")
		add("reference")
	default:
		v.Stage = e.Reference
	}
	for _, patch := range patches {
		v.Then = append(v.Then, harness.Change{Patch: exercisesPath + "/" + e.Name + "/wrong/" + patch})
	}
	return v
}

func filesOf(root string, v harness.Variant) (files, error) {
	source, err := v.Source(context.Background(), root)
	if err != nil {
		return nil, err
	}
	return source.Files, nil
}

// start is the code that a learner begins with.
func (e *Exercise) start(root string) (files, error) { return filesOf(root, e.variant(onStart)) }

// reference is a solution.
func (e *Exercise) reference(root string) (files, error) {
	return filesOf(root, e.variant("reference"))
}

// hints are the texts of the hints, in order.
func (e *Exercise) hints() ([]string, error) {
	var all []string
	for i := 1; ; i++ {
		text, err := os.ReadFile(filepath.Join(e.folder, fmt.Sprintf("hint-%d.md", i)))
		if errors.Is(err, fs.ErrNotExist) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, strings.Trim(string(text), "\n")) // code at the beginning stays indented
	}
}
