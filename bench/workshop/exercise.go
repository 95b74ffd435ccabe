package workshop

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
)

const (
	modulePath    = "github.com/qps-ladder/qps-ladder"
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
	// Measure is the workload to compare with, for information.
	Measure string `yaml:"measure"`

	folder string
}

// findRoot looks for the repository that the present folder is in.
func findRoot() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for folder := here; ; folder = filepath.Dir(folder) {
		text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err == nil && bytes.Contains(text, []byte("module "+modulePath+"\n")) {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", errors.New("the exercises need the repository: run this inside it")
		}
	}
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
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(e); err != nil {
		return nil, fmt.Errorf("exercise.yaml: %w", err)
	}
	return e, e.valid()
}

func (e *Exercise) valid() error {
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
		return nil, fmt.Errorf("%s has no Go files", folder)
	}
	return out, nil
}

// overlay puts the files of a folder and then a patch over f, as far as they exist.
func (f files) overlay(folder, patch string) error {
	over, err := readFiles(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	maps.Copy(f, over)
	text, err := os.ReadFile(patch)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := apply(f, string(text)); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(patch), err)
	}
	return nil
}

// start is the code that a learner begins with.
func (e *Exercise) start(root string) (files, error) {
	f, err := readFiles(filepath.Join(root, e.Base))
	if err != nil {
		return nil, err
	}
	return f, f.overlay(filepath.Join(e.folder, "_start"), filepath.Join(e.folder, "start.patch"))
}

// reference is a solution.
func (e *Exercise) reference(root string) (files, error) {
	var f files
	var err error
	switch e.Reference {
	case "":
		f, err = readFiles(filepath.Join(root, e.Base))
	case onStart:
		f, err = e.start(root)
	default:
		return readFiles(filepath.Join(root, e.Reference))
	}
	if err != nil {
		return nil, err
	}
	return f, f.overlay(filepath.Join(e.folder, "_reference"), filepath.Join(e.folder, "reference.patch"))
}

// wrong is a solution that looks right and is not.
type wrong struct {
	name  string
	fails []string // checks that must find it
	cheat bool
	files files
}

// wrongs reads the wrong solutions. The lines before the first "--- " of each patch say what it is, and:
//
//	Against: start        (or reference, if it is not said)
//	Cheat: yes
//	Fails: hand-offs of hello
func (e *Exercise) wrongs(root string) ([]wrong, error) {
	patches, err := filepath.Glob(filepath.Join(e.folder, "wrong", "*.patch"))
	if err != nil {
		return nil, err
	}
	slices.Sort(patches)
	var all []wrong
	for _, patch := range patches {
		w := wrong{name: strings.TrimSuffix(filepath.Base(patch), ".patch")}
		text, err := os.ReadFile(patch)
		if err != nil {
			return nil, err
		}
		against := "reference"
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "--- ") {
				break
			}
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch key {
			case "Against":
				against = value
			case "Cheat":
				w.cheat = value == "yes"
			case "Fails":
				w.fails = append(w.fails, value)
			}
		}
		of := map[string]func(string) (files, error){"start": e.start, "reference": e.reference}[against]
		if of == nil || len(w.fails) == 0 {
			return nil, fmt.Errorf("%s needs a line \"Fails: CHECK\", and Against: start or reference", w.name)
		}
		if w.files, err = of(root); err != nil {
			return nil, err
		}
		if err := apply(w.files, string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		all = append(all, w)
	}
	return all, nil
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
		all = append(all, strings.TrimSpace(string(text)))
	}
}
