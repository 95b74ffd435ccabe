// Package guard finds out whether a change made anything slower: with
// micro-benchmarks of the hot paths, and with whole servers, base and head in
// turns on the same machine.
//
// A change is held to its base alone. Ratios between stages are package run's.
package guard

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// The layers, and from which change on each is worth a word.
const (
	MicroLimit    = 0.05
	EndToEndLimit = 0.10
)

//go:embed stage_bench.go.txt
var stageBench []byte

// benchName is what the file with the stages' benchmarks is called while they are built.
const benchName = "zz_guard_test.go"

// hotPackages are those with benchmarks of their own on the path of a request.
var hotPackages = []string{"shared/http1", "shared/netpoll"}

// Tree is one of the two checkouts.
type Tree struct {
	Name   string // "base" or "head"
	Root   string
	Stages []string // folders
}

// Change is one thing at head, compared with itself at base.
type Change struct {
	Layer string         `json:"layer"` // "micro" or "end to end"
	Name  string         `json:"name"`
	What  string         `json:"what"`  // what is compared, less of which is better unless Rises
	Rises bool           `json:"rises"` // more is better
	Ratio stats.Interval `json:"ratio"` // head over base
	Limit float64        `json:"limit"`

	// Unsure is for a change that a second look did not confirm; Ratio is then of the second look.
	Unsure bool `json:"unsure,omitempty"`
}

// Past tells whether a change is past its limit and its interval excludes "none".
func (c Change) Past() bool {
	return !c.Unsure && slices.Contains([]stats.Verdict{stats.Higher, stats.Lower}, stats.Judge(c.Ratio, c.Limit))
}

// Worse tells whether a change that is past its limit is for the worse.
func (c Change) Worse() bool { return c.Past() && (c.Ratio.Median < 1) == c.Rises }

// Words says it in one line.
func (c Change) Words() string {
	verb := "better"
	if c.Worse() {
		verb = "worse"
	}
	return fmt.Sprintf("%s, %s: %s %s by %.1f%% (head/base %s, limit %.0f%%)", c.Layer, c.Name, c.What, verb, 100*math.Abs(c.Ratio.Median-1), c.Ratio.Format(), 100*c.Limit)
}

// binary is a test binary of one package at both commits.
type binary struct {
	pkg        string
	base, head string
}

// Micro runs the benchmarks of both trees for so many rounds, base and head of a
// package next to each other. skipped says what one of the two does not have.
func Micro(ctx context.Context, base, head Tree, cpus []int, rounds int, each time.Duration, seed uint64, tell func(string)) (changes []Change, skipped []string, err error) {
	folder, err := os.MkdirTemp("", "ladder-guard-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(folder)
	var binaries []binary
	packages := slices.Concat(hotPackages, head.Stages)
	for _, pkg := range packages {
		tell("building the benchmarks of " + pkg)
		b := binary{pkg: pkg}
		for _, side := range []struct {
			tree Tree
			path *string
		}{{base, &b.base}, {head, &b.head}} {
			*side.path = filepath.Join(folder, side.tree.Name+"-"+filepath.Base(pkg))
			if err = build(ctx, side.tree, pkg, *side.path); err != nil {
				if ctx.Err() != nil {
					return nil, nil, ctx.Err()
				}
				skipped = append(skipped, fmt.Sprintf("the benchmarks of %s do not build at %s: %v", pkg, side.tree.Name, err))
				b.pkg = ""
			}
		}
		if b.pkg != "" {
			binaries = append(binaries, b)
		}
	}
	m := microRun{cpus: cpus, rounds: rounds, each: each, random: rand.New(rand.NewPCG(seed, 1)), tell: tell}
	measured, err := m.measure(ctx, binaries, nil)
	changes, missing := compare(measured)
	if err != nil {
		return changes, skipped, err // what is missing may only not have had its turn
	}
	skipped = append(skipped, missing...)
	slices.Sort(skipped)
	// Of many comparisons a few go wrong by chance. What seems worse has to seem so twice.
	wanted := map[string]bool{}
	for _, c := range changes {
		if c.Past() {
			wanted[c.Name] = true
		}
	}
	if len(wanted) == 0 {
		return changes, skipped, nil
	}
	second, err := m.measure(ctx, binaries, wanted)
	if err != nil {
		return changes, skipped, err
	}
	again, _ := compare(second)
	return confirm(changes, again), skipped, nil
}

// confirm puts what a second look says of changes past their limits in the place
// of the first, unless both agree.
func confirm(changes, again []Change) []Change {
	for i, c := range changes {
		for _, second := range again {
			if second.Name == c.Name && second.What == c.What && (!second.Past() || second.Worse() != c.Worse()) {
				changes[i].Ratio = second.Ratio
				changes[i].Unsure = true
			}
		}
	}
	return changes
}

// microRun is how benchmarks are run.
type microRun struct {
	cpus   []int
	rounds int
	each   time.Duration
	random *rand.Rand
	tell   func(string)
}

// measure runs the binaries, only the wanted benchmarks when there are any, and
// returns the figures of base and head by benchmark and round: those that it has
// when ctx ends, too.
func (m microRun) measure(ctx context.Context, binaries []binary, wanted map[string]bool) (map[string]map[string][]float64, error) {
	measured := map[string]map[string][]float64{"base": {}, "head": {}}
	for round := range m.rounds {
		for _, i := range m.random.Perm(len(binaries)) {
			b := binaries[i]
			pattern := only(b.pkg, wanted)
			if pattern == "" {
				continue
			}
			look := "micro"
			if wanted != nil {
				look = "micro, a second look"
			}
			m.tell(fmt.Sprintf(look+", round %d of %d: %s", round+1, m.rounds, b.pkg))
			sides := []struct{ name, path string }{{"base", b.base}, {"head", b.head}}
			m.random.Shuffle(2, func(i, j int) { sides[i], sides[j] = sides[j], sides[i] })
			for _, side := range sides {
				out, err := harness.Run(ctx, harness.Command{Path: side.path, CPUs: m.cpus, Args: []string{
					"-test.run", "^$", "-test.bench", pattern, "-test.benchtime", m.each.String(), "-test.cpu", "1"}})
				if err == nil {
					err = out.Err()
				}
				if err != nil {
					return measured, fmt.Errorf("benchmarks of %s at %s: %w", b.pkg, side.name, err)
				}
				for name, value := range parse(out.Stdout) {
					key := b.pkg + " " + name
					all := measured[side.name][key]
					for len(all) < round {
						all = append(all, math.NaN())
					}
					measured[side.name][key] = append(all, value)
				}
			}
		}
	}
	return measured, nil
}

// compare makes changes of what was measured at base and head; missing is what one of them lacks.
func compare(measured map[string]map[string][]float64) (changes []Change, missing []string) {
	for name, values := range measured["head"] {
		if measured["base"][name] == nil {
			missing = append(missing, name+" is not there at base")
			continue
		}
		changes = append(changes, Change{Layer: "micro", Name: name, What: "time per operation", Ratio: stats.Ratio(values, measured["base"][name]), Limit: MicroLimit})
	}
	for name := range measured["base"] {
		if measured["head"][name] == nil {
			missing = append(missing, name+" is no longer there at head")
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return changes, missing
}

// only is the pattern of a package's wanted benchmarks, "" when there are none.
func only(pkg string, wanted map[string]bool) string {
	if wanted == nil {
		return "."
	}
	var names []string
	for key := range wanted {
		if name, ok := strings.CutPrefix(key, pkg+" "); ok {
			names = append(names, regexp.QuoteMeta(name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "^Benchmark(" + strings.Join(names, "|") + ")$"
}

// build makes the test binary of a package; a stage's with the guard's benchmarks in it.
func build(ctx context.Context, t Tree, pkg, path string) error {
	source, err := harness.ReadSource(t.Root, pkg)
	if err != nil {
		return err
	}
	if slices.Contains(t.Stages, pkg) {
		source.Others[pkg+"/"+benchName] = stageBench
	}
	_, err = source.Go(ctx, "test", "-c", "-o", path, "./"+pkg)
	var failed *harness.BuildError
	if errors.As(err, &failed) {
		return errors.New(failed.First())
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return errors.New("it has no tests")
	}
	return nil
}

// parse reads nanoseconds per operation off a test binary's output.
func parse(output string) map[string]float64 {
	out := map[string]float64{}
	reader := benchfmt.NewReader(strings.NewReader(output), "benchmarks")
	for reader.Scan() {
		if result, ok := reader.Result().(*benchfmt.Result); ok {
			if seconds, ok := result.Value("sec/op"); ok {
				out[strings.TrimSuffix(result.Name.String(), "-1")] = seconds * 1e9
			}
		}
	}
	return out
}
