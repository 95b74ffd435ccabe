package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Schema and Version mark a file that holds a Result.
const (
	Schema  = "qps-ladder/lab"
	Version = 1
)

// Result is what a lab gave.
type Result struct {
	Schema  string          `json:"schema"`
	Version int             `json:"version"`
	Lab     string          `json:"lab"`
	Unit    string          `json:"unit"` // of the values
	Created time.Time       `json:"created"`
	Seconds float64         `json:"seconds"` // that all took
	Each    float64         `json:"each"`    // seconds asked of each benchmark in each round
	Rounds  int             `json:"rounds"`
	Machine results.Machine `json:"machine"`
	Cases   []CaseResult    `json:"cases"`
}

// CaseResult is a case with its ways; the first is the baseline.
type CaseResult struct {
	Name string `json:"name"`
	// Noise is the baseline to itself: what a ratio of two equal ways looks like here.
	Noise stats.Interval `json:"noise"`
	Ways  []WayResult    `json:"ways"`
}

// WayResult is what one way cost.
type WayResult struct {
	Name   string                    `json:"name"`
	Value  stats.Interval            `json:"value"`  // in the lab's unit
	Allocs float64                   `json:"allocs"` // per operation
	Bytes  float64                   `json:"bytes"`  // allocated per operation
	Also   map[string]stats.Interval `json:"also,omitempty"`
	Ratio  stats.Interval            `json:"ratio"` // to the baseline; not measured for that itself
}

// Case finds a case.
func (r *Result) Case(name string) (CaseResult, bool) {
	i := slices.IndexFunc(r.Cases, func(c CaseResult) bool { return c.Name == name })
	if i < 0 {
		return CaseResult{}, false
	}
	return r.Cases[i], true
}

// Floor is by which share the baseline differed from itself: no smaller difference is believed.
func (c CaseResult) Floor() float64 {
	if !c.Noise.Bounded() {
		return 0
	}
	return math.Max(math.Abs(c.Noise.Low-1), math.Abs(c.Noise.High-1))
}

// Verdict says what the ratio of a way of the case allows to be said: "faster", "slower", or what
// package stats says. A difference counts when its interval leaves 1 out and it is beyond Floor.
func (c CaseResult) Verdict(w WayResult) string {
	switch v := stats.Judge(w.Ratio, c.Floor()); v {
	case stats.Lower:
		return "faster"
	case stats.Higher:
		return "slower"
	default:
		return string(v)
	}
}

// ReadResult reads what was measured.
func ReadResult(path string) (*Result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Schema != Schema || r.Version != Version {
		return nil, fmt.Errorf("%s holds no result of ladder lab that this version reads", path)
	}
	return r, nil
}

// Options say how long to measure.
type Options struct {
	Time   time.Duration // for all rounds together
	Rounds int           // 0: as many as fit into Time, at least stats.MinimumRounds
	Seed   uint64
	Tell   func(string) // what is going on
}

// mostRounds is where more rounds would hardly narrow an interval.
const mostRounds = 15

// Missing says in one line what a lab needs and does not find.
type Missing struct{ Lab, What string }

func (m Missing) Error() string { return fmt.Sprintf("lab %s cannot run here: %s", m.Lab, m.What) }

// FolderVariable tells the benchmark of a folder that lasts for the whole lab, while each of its
// parts is a process of its own: for what takes longer to make than to measure.
const FolderVariable = "LADDER_LAB_FOLDER"

// again marks the second run of a baseline in a round.
const again = " again"

// Measure runs a lab. With an interrupted ctx and at least one whole round it returns what there is
// and the error of ctx.
func (l *Lab) Measure(ctx context.Context, root string, o Options) (*Result, error) {
	folder, err := os.MkdirTemp("", "ladder-lab-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	b := l.bench(root, folder)
	if err := b.prepare(ctx, true, o.Tell); err != nil {
		return nil, err
	}
	if b.lab, err = b.offered(ctx); err != nil {
		return nil, err
	}
	var items []item
	for _, c := range b.lab.Cases {
		for _, w := range c.Ways {
			items = append(items, item{c.Name, w.Name, ""})
		}
		items = append(items, item{c.Name, c.Baseline(), again})
	}
	// A benchmark takes about twice what it is asked for, as it first finds out how often to run.
	planned := o.Rounds
	if planned == 0 {
		planned = stats.MinimumRounds + 2
	}
	each := o.Time / time.Duration(2*planned*len(items))
	each = min(max(each, 2*time.Millisecond), 500*time.Millisecond)
	began, random := time.Now(), rand.New(rand.NewPCG(o.Seed, 1))
	measured := map[item]*series{}
	for _, i := range items {
		measured[i] = &series{}
	}
	rounds := 0
	for {
		if took := time.Since(began); o.Rounds > 0 && rounds >= o.Rounds || o.Rounds == 0 && rounds >= stats.MinimumRounds &&
			(rounds >= mostRounds || took+took/time.Duration(rounds) > o.Time) {
			break
		}
		for done, at := range random.Perm(len(items)) {
			i := items[at]
			o.Tell(fmt.Sprintf("round %d: %d of %d, %s/%s", rounds+1, done+1, len(items), i.of, i.way))
			figures, err := b.one(ctx, i, each)
			if err != nil {
				if ctx.Err() != nil && rounds > 0 {
					return b.result(measured, rounds, each, began), ctx.Err()
				}
				return nil, err
			}
			measured[i].add(rounds, figures)
		}
		rounds++
	}
	return b.result(measured, rounds, each, began), nil
}

// item is a sub-benchmark, in one of its turns of a round.
type item struct{ of, way, turn string }

// series are the figures of an item by unit, one for each round.
type series struct{ byUnit map[string][]float64 }

func (s *series) add(round int, figures map[string]float64) {
	if s.byUnit == nil {
		s.byUnit = map[string][]float64{}
	}
	for unit, v := range figures {
		s.byUnit[unit] = append(s.byUnit[unit][:min(round, len(s.byUnit[unit]))], v)
	}
}

// bench is a lab's test binary, with those of ways that are builds of their own.
type bench struct {
	lab            *Lab
	folder, binary string
	shared         string         // see FolderVariable
	own            map[Way]string // binaries of ways that have one; "" where it does not run here
}

func (l *Lab) bench(root, shared string) *bench {
	return &bench{
		lab: l, folder: filepath.Join(root, filepath.FromSlash(Folder), l.Name),
		binary: filepath.Join(shared, l.Name+".test"), shared: shared, own: map[Way]string{},
	}
}

// prepare compiles all binaries, once, as the rounds only run them, and tests each. Those with a
// profile can be left out: with a new profile, the standard library is compiled anew as well.
func (b *bench) prepare(ctx context.Context, profiles bool, tell func(string)) error {
	tell("building")
	if err := b.build(ctx, b.binary); err != nil {
		return err
	}
	tell("checking that all ways do the same")
	if err := b.verify(ctx, b.binary); err != nil {
		return err
	}
	for _, c := range b.lab.Cases {
		for _, w := range c.Ways {
			if _, known := b.own[w]; known || !w.builds() || w.Profile != "" && !profiles {
				continue
			}
			tell("building " + w.Name)
			args, err := b.args(ctx, w)
			if err != nil {
				return err
			}
			binary := fmt.Sprintf("%s%d", b.binary, len(b.own))
			if err := b.build(ctx, binary, args...); err != nil {
				return err
			}
			b.own[w] = binary
			if w.Experiment {
				out, err := b.run(ctx, binary, "-test.list", "^$")
				if err != nil {
					return err
				}
				if out.Err() != nil { // this CPU lacks instructions
					b.own[w] = ""
					continue
				}
			}
			if err := b.verify(ctx, binary); err != nil {
				return fmt.Errorf("%s: %w", w.Name, err)
			}
		}
	}
	return nil
}

// args are what build needs to build the binary of w.
func (b *bench) args(ctx context.Context, w Way) ([]string, error) {
	args := strings.Fields(w.Build)
	if w.Profile == "" {
		return args, nil
	}
	file, err := b.profile(ctx, w.Profile)
	return append(args, "-pgo="+file), err
}

// profileTime is how long a case runs for its profile: some hundred samples.
const profileTime = 2 * time.Second

// profile returns the file with a CPU profile of a case's baseline.
func (b *bench) profile(ctx context.Context, of string) (string, error) {
	file := filepath.Join(b.shared, of+".pgo")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	c, _ := b.lab.Find(of)
	out, err := b.run(ctx, b.binary, "-test.run", "^$", "-test.benchtime", profileTime.String(), "-test.bench", benchmark(of, c.Baseline()), "-test.cpuprofile", file)
	if err == nil {
		err = out.Err()
	}
	return file, err
}

// build compiles a test binary; each of args is a flag of go build, or a variable. A lab may be a
// module of its own.
func (b *bench) build(ctx context.Context, binary string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-buildvcs=false", "-o", binary)
	cmd.Dir, cmd.Env = b.folder, os.Environ()
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			cmd.Args = append(cmd.Args, arg)
		} else {
			cmd.Env = append(cmd.Env, arg)
		}
	}
	cmd.Args = append(cmd.Args, ".")
	if b.lab.Experiment != "" {
		// The standard library is built anew for an experiment; without cgo that is less work.
		env := append(cmd.Env, "GOEXPERIMENT="+b.lab.Experiment, "CGO_ENABLED=0")
		known := exec.CommandContext(ctx, "go", "env", "GOEXPERIMENT")
		if known.Env = env; known.Run() == nil {
			cmd.Env = env
		}
	}
	text, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("lab %s does not build: %w: %s", b.lab.Name, err, text)
}

// offered is the lab without the ways that this toolchain or CPU does not have.
func (b *bench) offered(ctx context.Context) (*Lab, error) {
	all := map[string]map[string]float64{}
	if b.lab.Experiment != "" {
		var err error
		if all, err = b.once(ctx); err != nil {
			return nil, err
		}
	}
	l := *b.lab
	l.Cases = slices.Clone(l.Cases)
	for i, c := range l.Cases {
		l.Cases[i].Ways = slices.DeleteFunc(slices.Clone(c.Ways), func(w Way) bool {
			if w.builds() {
				return b.own[w] == ""
			}
			return w.Experiment && all[c.Name+"/"+w.Name] == nil
		})
	}
	return &l, nil
}

// once runs each benchmark once, and returns their figures.
func (b *bench) once(ctx context.Context) (map[string]map[string]float64, error) {
	out, err := b.run(ctx, b.binary, "-test.run", "^$", "-test.benchmem", "-test.benchtime", "1x", "-test.bench", ".")
	if err == nil {
		err = out.Err()
	}
	if err != nil {
		return nil, err
	}
	return parse(out.Stdout), nil
}

func (b *bench) run(ctx context.Context, binary string, args ...string) (harness.Output, error) {
	return harness.Run(ctx, harness.Command{Path: binary, Dir: b.folder, Env: slices.Concat(b.lab.Variables, []string{FolderVariable + "=" + b.shared}), Args: append(args, "-test.cpu", fmt.Sprint(b.lab.CPUs))})
}

var skipped = regexp.MustCompile(`(?m)^\s+\w+\.go:\d+: (.*)\n--- SKIP: TestSame`)

// verify runs the lab's test: ways that do not do the same are not compared.
func (b *bench) verify(ctx context.Context, binary string) error {
	out, err := b.run(ctx, binary, "-test.v", "-test.run", "^TestSame$")
	if err != nil {
		return err
	}
	if found := skipped.FindStringSubmatch(out.Stdout); found != nil {
		return Missing{b.lab.Name, found[1]}
	}
	if err := out.Err(); err != nil {
		return fmt.Errorf("the ways of lab %s do not do the same: %w", b.lab.Name, err)
	}
	if !strings.Contains(out.Stdout, "--- PASS: TestSame") {
		return fmt.Errorf("lab %s has no TestSame", b.lab.Name)
	}
	return nil
}

// benchmark is the pattern of a single sub-benchmark.
func benchmark(of, way string) string { return "^Benchmark.*$/^" + of + "$/^" + way + "$" }

// one runs a single sub-benchmark.
func (b *bench) one(ctx context.Context, i item, each time.Duration) (map[string]float64, error) {
	binary := b.binary
	if c, ok := b.lab.Find(i.of); ok {
		k := slices.IndexFunc(c.Ways, func(w Way) bool { return w.Name == i.way })
		binary = cmp.Or(b.own[c.Ways[k]], binary)
	}
	out, err := b.run(ctx, binary, "-test.run", "^$", "-test.benchmem", "-test.benchtime", each.String(), "-test.bench", benchmark(i.of, i.way))
	if err == nil {
		err = out.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("lab %s, %s/%s: %w", b.lab.Name, i.of, i.way, err)
	}
	all := parse(out.Stdout)
	figures := all[i.of+"/"+i.way]
	if _, ok := figures[b.lab.Unit]; !ok || len(all) != 1 {
		return nil, fmt.Errorf("lab %s has no benchmark %s/%s that reports %s", b.lab.Name, i.of, i.way, b.lab.Unit)
	}
	return figures, nil
}

// parse reads the figures of every sub-benchmark CASE/WAY off a test binary's output, by unit.
func parse(output string) map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	reader := benchfmt.NewReader(strings.NewReader(output), "lab")
	for reader.Scan() {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		_, name, _ := strings.Cut(string(result.Name.Full()), "/")
		name = numbered.ReplaceAllString(name, "") // GOMAXPROCS
		out[name] = map[string]float64{}
		for _, v := range result.Values {
			// benchfmt makes seconds of nanoseconds, and keeps the unit that was there.
			if v.OrigUnit != "" {
				out[name][v.OrigUnit] = v.OrigValue
			} else {
				out[name][v.Unit] = v.Value
			}
		}
	}
	return out
}

// result puts the rounds together.
func (b *bench) result(measured map[item]*series, rounds int, each time.Duration, began time.Time) *Result {
	r := &Result{
		Schema: Schema, Version: Version, Lab: b.lab.Name, Unit: b.lab.Unit, Created: began.UTC().Truncate(time.Second), Seconds: time.Since(began).Seconds(),
		Each: each.Seconds(), Rounds: rounds, Machine: run.Machine(),
	}
	values := func(i item, unit string) []float64 {
		all := measured[i].byUnit[unit]
		return all[:min(rounds, len(all))] // an unfinished round counts for nothing
	}
	for _, c := range b.lab.Cases {
		base := values(item{c.Name, c.Baseline(), ""}, b.lab.Unit)
		of := CaseResult{Name: c.Name, Noise: stats.Ratio(values(item{c.Name, c.Baseline(), again}, b.lab.Unit), base)}
		for k, w := range c.Ways {
			i := item{c.Name, w.Name, ""}
			way := WayResult{
				Name: w.Name, Value: stats.Summarise(values(i, b.lab.Unit)),
				Allocs: stats.Summarise(values(i, "allocs/op")).Median, Bytes: stats.Summarise(values(i, "B/op")).Median,
			}
			if k > 0 {
				way.Ratio = stats.Ratio(values(i, b.lab.Unit), base)
			}
			for _, unit := range b.lab.Also {
				if way.Also == nil {
					way.Also = map[string]stats.Interval{}
				}
				way.Also[unit] = stats.Summarise(values(i, unit))
			}
			of.Ways = append(of.Ways, way)
		}
		r.Cases = append(r.Cases, of)
	}
	return r
}

// Check builds a lab, runs its test in each binary and each benchmark once, and says whether the
// benchmarks are those of lab.yaml.
func (l *Lab) Check(ctx context.Context, root string) error {
	folder, err := os.MkdirTemp("", "ladder-lab-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	b := l.bench(root, folder)
	if err := b.prepare(ctx, false, func(string) {}); err != nil {
		return err
	}
	all, err := b.once(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range l.Cases {
		for _, w := range c.Ways {
			figures, ok := all[c.Name+"/"+w.Name]
			if !ok && w.Experiment && !w.builds() {
				continue // not for this toolchain or CPU
			}
			for _, unit := range append([]string{l.Unit}, l.Also...) {
				if _, has := figures[unit]; !ok || !has {
					errs = append(errs, fmt.Errorf("lab %s has no benchmark %s/%s that reports %s", l.Name, c.Name, w.Name, unit))
				}
			}
			delete(all, c.Name+"/"+w.Name)
		}
	}
	for name := range all {
		errs = append(errs, fmt.Errorf("lab.yaml of %s does not name the benchmark %s", l.Name, name))
	}
	return errors.Join(errs...)
}
