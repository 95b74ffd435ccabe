package profile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// turnsFolder has a file for each of them, from the root of the repository.
const turnsFolder = "bench/variants/wrong-turns"

// turnOrder is the order in which they are listed.
var turnOrder = []string{"router", "linking", "fixed-buffer", "sendmsg", "256-bytes", "stopping-early"}

// turn is a wrong turn: a change that looks right. its folder's README.md explains
// the fields.
type turn struct {
	Name      string     `yaml:"name"`
	Title     string     `yaml:"title"`
	Belief    string     `yaml:"belief"`
	Published string     `yaml:"published"`
	Stage     string     `yaml:"stage"`
	Workloads []string   `yaml:"workloads"`
	Expect    string     `yaml:"expect"`
	Evidence  []evidence `yaml:"evidence"`
	Edits     []edit     `yaml:"edits"`
	Parts     []part     `yaml:"parts"`
	Flags     []string   `yaml:"flags"`
	Benchmark *benchmark `yaml:"benchmark"`
	Lesson    string     `yaml:"lesson"`
}

// What has come of a turn so far.
const (
	expectSame   = "same"
	expectWorse  = "worse"
	expectAddsUp = "adds up"
)

// part is an improvement, and the edits that take it back.
type part struct {
	Name  string `yaml:"name"`
	What  string `yaml:"what"`
	Edits []edit `yaml:"edits"`
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
func readTurns(root string) ([]turn, error) {
	var out []turn
	for _, name := range turnOrder {
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(turnsFolder), name+".yaml"))
		if err != nil {
			return nil, err
		}
		var t turn
		decoder := yaml.NewDecoder(bytes.NewReader(b))
		decoder.KnownFields(true)
		if err := decoder.Decode(&t); err != nil {
			return nil, fmt.Errorf("wrong turn %s: %w", name, err)
		}
		out = append(out, t)
	}
	return out, nil
}

// WrongTurns are the names that WrongTurn takes, in their order.
func WrongTurns() []string { return slices.Clone(turnOrder) }

// ListWrongTurns prints each of them with what it changes.
func ListWrongTurns(out io.Writer) error {
	root, err := run.Root()
	if err != nil {
		return err
	}
	all, err := readTurns(root)
	for _, t := range all {
		say(out, fmt.Sprintf("%-15s ", t.Name), strings.Repeat(" ", 16), t.Title)
	}
	return err
}

// WrongTurn builds a stage with a change that looks right and is not, shows what a profile says beforehand,
// and measures it against the original. The workloads are those of the turn. rounds may be 0: as many as fit
// into limit.
func WrongTurn(ctx context.Context, o Options, name string, rounds int, limit time.Duration) error {
	l, err := o.lab()
	if err != nil {
		return err
	}
	all, err := readTurns(l.root)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(t turn) bool { return t.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no wrong turn %q: choose one of %s", name, strings.Join(turnOrder, ", "))
	}
	j := journey{turn: all[i], lab: l, out: o.Out, tell: o.Tell, seconds: o.Duration}
	b := &run.Bench{
		Rounds: rounds, Time: limit, Warmup: 150 * time.Millisecond, Duration: 400 * time.Millisecond, Layout: o.Layout, Workers: o.Workers,
		Generator: run.Embedded, Command: l.command, Seed: uint64(time.Now().UnixNano()),
	}
	return j.walk(ctx, b)
}

// journey is one wrong turn under way.
type journey struct {
	turn    turn
	lab     *lab
	out     io.Writer
	tell    func(string, ...any)
	seconds time.Duration

	folder  string // of the binaries
	stage   string // folder of the stage
	base    run.Server
	changed run.Server   // with all edits
	single  []run.Server // for each part, the stage with that part and without the others
}

func (j *journey) walk(ctx context.Context, b *run.Bench) error {
	var err error
	if j.folder, err = os.MkdirTemp("", "ladder-turn-"); err != nil {
		return err
	}
	defer os.RemoveAll(j.folder)
	t := j.turn
	say(j.out, "", "  ", t.Title)
	fmt.Fprintln(j.out)
	for _, p := range []struct{ label, text string }{{"Why it looks right", t.Belief}, {"In the documents", t.Published}} {
		j.paragraph(p.label, p.text)
	}
	j.tell("building")
	if err := j.build(ctx); err != nil {
		return err
	}
	fmt.Fprintln(j.out, "What can be seen beforehand")
	if t.Benchmark != nil {
		if err := j.bench(ctx); err != nil {
			return err
		}
	}
	if err := j.look(ctx); err != nil {
		return err
	}
	fmt.Fprintln(j.out)
	return j.measure(ctx, b)
}

// paragraph prints a text with what it is about.
func (j *journey) paragraph(label, text string) {
	say(j.out, "", "  ", label+": "+text)
	fmt.Fprintln(j.out)
}

// called is what a server is called in a sentence.
func (j *journey) called(name string) string {
	if name == j.base.Name {
		return name
	}
	return short(j.stage) + " " + name
}

// build makes every binary that is measured, in a temporary folder.
func (j *journey) build(ctx context.Context) error {
	stages, err := run.Stages(j.lab.root)
	if err != nil {
		return err
	}
	if j.stage, err = run.PickStage(stages, j.turn.Stage); err != nil {
		return err
	}
	if j.base, err = j.compile(ctx, short(j.stage), nil, nil); err != nil {
		return err
	}
	if len(j.turn.Parts) == 0 {
		j.changed, err = j.compile(ctx, "with "+j.turn.Name, j.turn.Edits, j.turn.Flags)
		return err
	}
	all := []edit{}
	for _, p := range j.turn.Parts {
		all = append(all, p.Edits...)
	}
	if j.changed, err = j.compile(ctx, "stopped early", all, nil); err != nil {
		return err
	}
	for i, p := range j.turn.Parts {
		others := []edit{}
		for k, o := range j.turn.Parts {
			if k != i {
				others = append(others, o.Edits...)
			}
		}
		s, err := j.compile(ctx, "only "+p.Name, others, nil)
		if err != nil {
			return err
		}
		j.single = append(j.single, s)
	}
	return nil
}

func (j *journey) compile(ctx context.Context, name string, edits []edit, flags []string) (run.Server, error) {
	s := run.Server{Name: name, Path: filepath.Join(j.folder, strings.ReplaceAll(name, " ", "-")), Admin: true}
	o := newOverlay(j.lab.root)
	err := o.apply(edits)
	if err == nil {
		_, err = o.goCommand(ctx, append(append([]string{"build", "-o", s.Path}, flags...), "./"+j.stage)...)
	}
	if err != nil {
		return s, fmt.Errorf("cannot build %s %s: %w", short(j.stage), name, err)
	}
	return s, nil
}

// workloads are those of the turn.
func (t turn) workloads() (out []workload.Workload, err error) {
	for _, name := range t.Workloads {
		w, err := workload.ByName(name)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}
