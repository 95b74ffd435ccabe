// Package lab runs the labs: single questions, each with an honest baseline, some other ways to do
// the same, a guess before the answer, and a table with intervals.
//
// A lab is a folder of bench/labs: NAME.go has the ways, NAME_test.go a test that all compute the
// same (TestSame) and a standard benchmark with sub-benchmarks CASE/WAY, lab.yaml what is asked.
// This package builds the benchmark, runs its parts in turns in rounds, and compares each way with
// the first one of its case, paired round by round (package stats).
package lab

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Folder is where the labs lie, from the root of the repository.
const Folder = "bench/labs"

// Lab is what lab.yaml says.
type Lab struct {
	Name     string `yaml:"name"`  // of the folder
	Order    int    `yaml:"order"` // in the list
	Title    string `yaml:"title"`
	Question string `yaml:"question"`
	Guess    Guess  `yaml:"guess"`

	// Unit is that of the values which are compared, less of which is better, as the benchmark
	// reports it: "ns/op", or one of testing.B.ReportMetric.
	Unit string `yaml:"unit"`
	// Also are units of further columns.
	Also []string `yaml:"also"`
	// CPUs is the benchmark's GOMAXPROCS, 1 if it is not given.
	CPUs int `yaml:"cpus"`
	// Variables are set for the benchmark, as NAME=value.
	Variables []string `yaml:"variables"`
	// Experiment is a GOEXPERIMENT to build with. A toolchain that has no such one builds without.
	Experiment string `yaml:"experiment"`

	Ways  []Way  `yaml:"ways"` // of every case that has none of its own; the first is the baseline
	Cases []Case `yaml:"cases"`

	Published []Published `yaml:"published"`
	Worth     Worth       `yaml:"worth"`
}

// Way is one way to do it.
type Way struct {
	Name string `yaml:"name"`
	Text string `yaml:"text"` // one line
	// Experiment says that the way may be missing: it needs the lab's experiment, or a CPU for it.
	Experiment bool `yaml:"experiment"`
	// Build is how the binary of this way is built, where that is the way: flags of go build, and
	// variables as NAME=value, with blanks between them.
	Build string `yaml:"build"`
	// Profile is a case. The binary is built with a CPU profile of that case's baseline (-pgo).
	Profile string `yaml:"profile"`
}

// builds says whether the way needs a binary of its own.
func (w Way) builds() bool { return w.Build != "" || w.Profile != "" }

// Case is one input or setting with which all its ways are run.
type Case struct {
	Name string `yaml:"name"`
	Text string `yaml:"text"`
	Ways []Way  `yaml:"ways"`
}

// Guess is asked before anything is measured. With Way, the choices are ranges for the ratio of
// that way to the baseline of Case; without, they are ways of Case, of which the one with the least
// value is right.
type Guess struct {
	Question string   `yaml:"question"`
	Case     string   `yaml:"case"`
	Way      string   `yaml:"way"`
	Choices  []Choice `yaml:"choices"`
}

// Choice is one answer to a guess.
type Choice struct {
	Text  string  `yaml:"text"`
	Way   string  `yaml:"way"`
	Above float64 `yaml:"above"` // the ratio is at least this
	Below float64 `yaml:"below"` // and less than this; 0 is no bound
}

// Published is a figure of the documents that belongs to the lab.
type Published struct {
	Figure string `yaml:"figure"`
	In     []int  `yaml:"in"` // documents
	Text   string `yaml:"text"`
}

// Worth says which part of a request the lab is about: a category of `ladder where`. Category may
// be empty for what no stage does; Text says what that means.
type Worth struct {
	Category string `yaml:"category"`
	Stage    string `yaml:"stage"` // "stage5" if it is not given
	Text     string `yaml:"text"`
}

// Baseline is the way that the others of the case are compared with.
func (c Case) Baseline() string { return c.Ways[0].Name }

// Find finds a case.
func (l *Lab) Find(name string) (Case, bool) {
	i := slices.IndexFunc(l.Cases, func(c Case) bool { return c.Name == name })
	if i < 0 {
		return Case{}, false
	}
	return l.Cases[i], true
}

// All reads every lab of the repository at root, in order.
func All(root string) ([]*Lab, error) {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(Folder), "*", "lab.yaml"))
	if err != nil {
		return nil, err
	}
	var labs []*Lab
	for _, file := range files {
		l, err := read(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		labs = append(labs, l)
	}
	slices.SortStableFunc(labs, func(a, b *Lab) int { return cmp.Compare(a.Order, b.Order) })
	return labs, nil
}

// Names are those of all labs, in order.
func Names(labs []*Lab) (names []string) {
	for _, l := range labs {
		names = append(names, l.Name)
	}
	return names
}

func read(file string) (*Lab, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	l := &Lab{}
	if err := harness.DecodeYAML(b, l); err != nil {
		return nil, err
	}
	l.Unit, l.CPUs, l.Worth.Stage = cmp.Or(l.Unit, "ns/op"), cmp.Or(l.CPUs, 1), cmp.Or(l.Worth.Stage, "stage5")
	for i := range l.Cases {
		if l.Cases[i].Ways == nil {
			l.Cases[i].Ways = l.Ways
		}
	}
	return l, l.check(filepath.Base(filepath.Dir(file)))
}

// plain are the names that come through the testing package as they are. One that ends in a number
// behind a hyphen could be taken for GOMAXPROCS.
var plain, numbered = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`), regexp.MustCompile(`-\d+$`)

// check says everything that is wrong.
func (l *Lab) check(folder string) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if l.Name != folder {
		wrong("name: %q is not the folder's", l.Name)
	}
	if l.Title == "" || l.Question == "" || len(l.Cases) == 0 || l.Worth.Text == "" {
		wrong("title, question, cases and worth are needed")
	}
	for _, c := range l.Cases {
		if c.Text == "" || len(c.Ways) < 2 {
			wrong("case %s: a text and two ways are needed", c.Name)
		}
		for i, w := range c.Ways {
			if w.Experiment && (i == 0 || l.Experiment == "" && !w.builds()) {
				wrong("%s/%s: a baseline is always there, and a way for an experiment needs one", c.Name, w.Name)
			}
			if _, ok := l.Find(w.Profile); w.builds() && i == 0 || w.Profile != "" && !ok {
				wrong("%s/%s: a baseline is built as usual, and a profile is one of a case", c.Name, w.Name)
			}
			if !plain.MatchString(c.Name) || !plain.MatchString(w.Name) || numbered.MatchString(w.Name) || w.Text == "" {
				wrong("%s/%s: names are small letters, digits and hyphens, with no number behind the last hyphen of a way; a way has a text", c.Name, w.Name)
			}
		}
	}
	for _, p := range l.Published {
		if p.Figure == "" || p.Text == "" || len(p.In) == 0 {
			wrong("published: %q needs what it is and where it stands", p.Figure)
		}
	}
	g := l.Guess
	c, ok := l.Find(g.Case)
	isWay := func(name string) bool { return slices.ContainsFunc(c.Ways, func(w Way) bool { return w.Name == name }) }
	if !ok || g.Question == "" || len(g.Choices) < 2 || g.Way != "" && !isWay(g.Way) {
		wrong("guess: a question, a case, a way of it if any, and two choices are needed")
	}
	for _, choice := range g.Choices {
		if choice.Text == "" || g.Way == "" && !isWay(choice.Way) || g.Way != "" && choice.Above == 0 && choice.Below == 0 {
			wrong("guess: choice %q needs a way of the case, or bounds", choice.Text)
		}
	}
	return errors.Join(errs...)
}

// right is the choice that a result makes right, -1 if there is none.
func (g Guess) right(r *Result) int {
	c, ok := r.Case(g.Case)
	if !ok {
		return -1
	}
	least, fastest, ratio := math.Inf(1), "", math.NaN()
	for i, w := range c.Ways {
		// Only a way that somebody can choose can be right.
		if w.Value.Median < least && (g.Way != "" || slices.ContainsFunc(g.Choices, func(x Choice) bool { return x.Way == w.Name })) {
			least, fastest = w.Value.Median, w.Name
		}
		if w.Name == g.Way {
			ratio = w.Ratio.Median
			if i == 0 {
				ratio = 1
			}
		}
	}
	return slices.IndexFunc(g.Choices, func(x Choice) bool {
		if g.Way == "" {
			return x.Way == fastest
		}
		return ratio >= x.Above && (x.Below == 0 || ratio < x.Below)
	})
}

// documents writes the numbers of documents: "1 and 4".
func documents(in []int) string {
	texts := make([]string, len(in))
	for i, n := range in {
		texts[i] = fmt.Sprint(n)
	}
	if len(in) == 1 {
		return "document " + texts[0]
	}
	return "documents " + strings.Join(texts[:len(texts)-1], ", ") + " and " + texts[len(texts)-1]
}
