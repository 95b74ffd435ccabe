package profile

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// turnsFolder has a file for each of them, from the root of the repository.
const turnsFolder = "bench/variants/wrong-turns"

// turnOrder is the order in which they are listed.
var turnOrder = []string{"router", "linking", "fixed-buffer", "sendmsg", "256-bytes", "own-table", "stopping-early"}

// wrongTurn is a change that looks right and is not. Its folder's README.md explains
// the fields.
type wrongTurn struct {
	harness.Variant `yaml:",inline"`

	Title     string     `yaml:"title"`
	Belief    string     `yaml:"belief"`
	Published string     `yaml:"published"`
	Workloads []string   `yaml:"workloads"`
	Expect    string     `yaml:"expect"`
	Evidence  []evidence `yaml:"evidence"`
	Parts     []part     `yaml:"parts"`
	Benchmark *benchmark `yaml:"benchmark"`
	Lesson    string     `yaml:"lesson"`
}

// How a wrong turn has come out so far: wrongTurn.Expect.
const (
	expectSame   = "same"
	expectWorse  = "worse"
	expectAddsUp = "adds up"
)

// part is an improvement, and the edits that take it back.
type part struct {
	Name  string         `yaml:"name"`
	What  string         `yaml:"what"`
	Edits []harness.Edit `yaml:"edits"`
}

// benchmark is a Go file that is put into a folder, with two benchmarks whose
// difference is what is changed.
type benchmark struct {
	Folder string `yaml:"folder"`
	What   string `yaml:"what"`  // is changed
	Whole  string `yaml:"whole"` // the benchmark that has it, without the word Benchmark
	Less   string `yaml:"less"`  // the one that has the rest
	Text   string `yaml:"text"`
}

// readTurns reads all that there are.
func readTurns(root string) ([]wrongTurn, error) {
	var out []wrongTurn
	for _, name := range turnOrder {
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(turnsFolder), name+".yaml"))
		if err != nil {
			return nil, err
		}
		var t wrongTurn
		if err := harness.DecodeYAML(b, &t); err != nil {
			return nil, fmt.Errorf("wrong turn %s: %w", name, err)
		}
		out = append(out, t)
	}
	return out, nil
}

// WrongTurns are the names that WrongTurn takes, in their order.
func WrongTurns() []string { return slices.Clone(turnOrder) }

// ListWrongTurns prints each of them with what it changes, and returns the same by name.
func ListWrongTurns(out io.Writer) (titles map[string]string, err error) {
	root, err := harness.FindRoot()
	if err != nil {
		return nil, err
	}
	all, err := readTurns(root)
	titles = map[string]string{}
	for _, t := range all {
		titles[t.Name] = t.Title
		say(out, fmt.Sprintf("%-15s ", t.Name), strings.Repeat(" ", 16), t.Title)
	}
	return titles, err
}

// WrongTurn builds a stage with a change that looks right and is not, shows what a profile says
// beforehand, and measures it against the original. The workloads are those of the turn. rounds may
// be 0: as many as fit into limit.
func WrongTurn(ctx context.Context, o Options, name string, rounds int, limit time.Duration) (*TurnResult, error) {
	l, err := o.lab()
	if err != nil {
		return nil, err
	}
	all, err := readTurns(l.root)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(t wrongTurn) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no wrong turn %q: choose one of %s", name, strings.Join(turnOrder, ", "))
	}
	x := experiment{turn: all[i], lab: l, out: o.Out, tell: o.Tell, step: o.step, seconds: o.Duration}
	b := &run.Bench{
		Rounds: rounds, Time: limit, Warmup: 150 * time.Millisecond, Duration: 400 * time.Millisecond, Layout: o.Layout, Workers: o.Workers,
		Generator: run.Embedded, Command: l.command, Seed: uint64(time.Now().UnixNano()),
	}
	return x.run(ctx, b)
}

// TurnResult is what came of a wrong turn, as `ladder wrong-turn` writes it as JSON.
type TurnResult struct {
	header
	Name     string            `json:"name"`
	Title    string            `json:"title"`
	Expect   string            `json:"expect"`   // "same", "worse" or "adds up"
	Evidence []string          `json:"evidence"` // what could be seen beforehand, line by line
	Verdict  []string          `json:"verdict"`  // what came of it, and whether that was to be expected
	Run      *results.Document `json:"run"`      // in the form of `ladder compare`
}

// experiment is one wrong turn under way.
type experiment struct {
	turn    wrongTurn
	lab     *lab
	out     io.Writer
	tell    func(string, ...any)
	step    func(string, ...any)
	seconds time.Duration

	folder  string // of the binaries
	stage   string // folder of the stage
	base    run.Server
	changed run.Server   // with all edits
	said    []string     // what say and row have printed
	single  []run.Server // for each part, the stage with that part and without the others
}

func (x *experiment) run(ctx context.Context, b *run.Bench) (*TurnResult, error) {
	var err error
	if x.folder, err = os.MkdirTemp("", "ladder-turn-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(x.folder)
	t := x.turn
	say(x.out, "", "  ", t.Title)
	fmt.Fprintln(x.out)
	for _, p := range []struct{ label, text string }{{"Why it looks right", t.Belief}, {"In the documents", t.Published}} {
		x.paragraph(p.label, p.text)
	}
	x.tell("building")
	if err := x.build(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintln(x.out, "What can be seen beforehand")
	if t.Benchmark != nil {
		if err := x.bench(ctx); err != nil {
			return nil, err
		}
	}
	if err := x.look(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintln(x.out)
	result := &TurnResult{header: newHeader("wrong-turn"), Name: t.Name, Title: t.Title, Expect: t.Expect, Evidence: x.said}
	result.Run, result.Verdict, err = x.measure(ctx, b)
	return result, err
}

// paragraph prints a text with what it is about.
func (x *experiment) paragraph(label, text string) {
	say(x.out, "", "  ", label+": "+text)
	fmt.Fprintln(x.out)
}

// called is what a server is called in a sentence.
func (x *experiment) called(name string) string {
	if name == x.base.Name {
		return name
	}
	return harness.ShortName(x.stage) + " " + name
}

// build makes every binary that is measured, in a temporary folder.
func (x *experiment) build(ctx context.Context) error {
	var err error
	if x.stage, err = harness.FindStage(x.lab.root, x.turn.Stage); err != nil {
		return err
	}
	if x.base, err = x.compile(ctx, harness.ShortName(x.stage), harness.Change{}, nil); err != nil {
		return err
	}
	if len(x.turn.Parts) == 0 {
		x.changed, err = x.compile(ctx, "with "+x.turn.Name, x.turn.Change, x.turn.Flags)
		return err
	}
	all := []harness.Edit{}
	for _, p := range x.turn.Parts {
		all = append(all, p.Edits...)
	}
	if x.changed, err = x.compile(ctx, "stopped early", harness.Change{Edits: all}, nil); err != nil {
		return err
	}
	for i, p := range x.turn.Parts {
		others := []harness.Edit{}
		for k, o := range x.turn.Parts {
			if k != i {
				others = append(others, o.Edits...)
			}
		}
		s, err := x.compile(ctx, "only "+p.Name, harness.Change{Edits: others}, nil)
		if err != nil {
			return err
		}
		x.single = append(x.single, s)
	}
	return nil
}

func (x *experiment) compile(ctx context.Context, name string, change harness.Change, flags []string) (run.Server, error) {
	v := harness.Variant{Name: strings.ReplaceAll(name, " ", "-"), Stage: x.stage, Change: change, Flags: flags}
	s, err := run.BuildVariant(ctx, x.lab.root, x.folder, v)
	if err != nil {
		return s, fmt.Errorf("cannot build %s %s: %w", harness.ShortName(x.stage), name, err)
	}
	s.Name = name
	return s, nil
}

// workloads are those of the turn.
func (t wrongTurn) workloads() (out []workload.Workload, err error) {
	for _, name := range t.Workloads {
		w, err := workload.ByName(name)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}
