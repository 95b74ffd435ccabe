package lab

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

const root = "../.."

// anyLab is the one that is built where what is slow by nature is not wanted: building all of them is.
const anyLab = "locks"

// Every lab builds, its ways do the same, and its benchmarks are those of lab.yaml.
func TestLabsAreWhole(t *testing.T) {
	labs, err := All(root)
	require.NoError(t, err)
	require.NotEmpty(t, labs)
	folders, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(Folder)))
	require.NoError(t, err)
	require.Len(t, labs, len(folders), "a folder has no lab.yaml")
	for _, l := range labs {
		t.Run(l.Name, func(t *testing.T) {
			code, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(Folder), l.Name, l.Name+".go"))
			require.NoError(t, err)
			require.LessOrEqual(t, bytes.Count(code, []byte("\n")), 200, "a lab is small")
			if !testenv.SlowToo() && l.Name != anyLab {
				return // that the ways do the same is a test of the lab's own package
			}
			err = l.Check(t.Context(), root)
			if missing := (Missing{}); errors.As(err, &missing) {
				t.Skip(missing)
			}
			require.NoError(t, err)
		})
	}
}

// A lab of the test's own, in a repository of its own.
func makeLab(t *testing.T, definition, code string) (string, *Lab, error) {
	root := t.TempDir()
	folder := filepath.Join(root, filepath.FromSlash(Folder), "little")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	for name, text := range map[string]string{"lab.yaml": definition, "little_test.go": code, "go.mod": "module little\n\ngo 1.26\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	labs, err := All(root)
	if err != nil {
		return root, nil, err
	}
	return root, labs[0], nil
}

const little = `
name: little
title: T
question: Q
ways: [{name: slow, text: s}, {name: fast, text: f}]
cases: [{name: one, text: c}]
also: [things]
guess: {question: G, case: one, way: fast, choices: [{text: much, below: 0.5}, {text: little, above: 0.5}]}
worth: {text: W}
published: [{figure: 2 ns, in: [2, 5], text: "what it takes"}]
`

const littleCode = `package little

import "testing"

func TestSame(t *testing.T) {}

func BenchmarkLittle(b *testing.B) {
	b.Run("one", func(b *testing.B) {
		for _, n := range []int{1000, 1} {
			b.Run(map[int]string{1000: "slow", 1: "fast"}[n], func(b *testing.B) {
				for b.Loop() {
					for range n {
						sink++
					}
				}
				b.ReportMetric(float64(n), "things")
			})
		}
	})
}

var sink int
`

// A toolchain without the experiment builds without it, and the ways that need it are left out.
func TestExperiment(t *testing.T) {
	definition := strings.Replace(little, "ways: [", "experiment: nosuchexperiment\nways: [", 1)
	definition = strings.Replace(definition, "text: f}]", "text: f}, {name: new, text: n, experiment: true}]", 1)
	root, l, err := makeLab(t, definition, littleCode)
	require.NoError(t, err)
	require.NoError(t, l.Check(t.Context(), root))
	r, err := l.Measure(t.Context(), root, Options{Time: time.Second, Rounds: 1, Seed: 1, Tell: func(string) {}})
	require.NoError(t, err)
	require.Len(t, r.Cases[0].Ways, 2)
	require.Len(t, l.Cases[0].Ways, 3, "the definition is not changed")

	_, _, err = makeLab(t, strings.Replace(definition, "experiment: nosuchexperiment", "", 1), littleCode)
	require.ErrorContains(t, err, "one/new: a baseline is always there, and a way for an experiment needs one")
}

// A way can be a build of its own: with flags or variables, or with a profile of a case.
func TestBuilds(t *testing.T) {
	testenv.Slow(t)
	definition := strings.Replace(little, "text: f}]", "text: f}, {name: flag, text: n, build: -tags=other}, "+
		"{name: variable, text: v, build: GOFLAGS=-tags=other}, "+
		"{name: nowhere, text: w, build: -tags=broken, experiment: true}]", 1)
	code := strings.NewReplacer("[]int{1000, 1}", "[]int{1000, 1, 2, 3, 4}",
		`1: "fast"`, `1: "fast", 2: "flag", 3: "variable", 4: "nowhere"`, `float64(n), "things"`, `tag, "things"`).Replace(littleCode)
	root, l, err := makeLab(t, definition, code)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"usual_test.go":  "//go:build !other\n\npackage little\n\nconst tag = 1\n",
		"other_test.go":  "//go:build other\n\npackage little\n\nconst tag = 2\n",
		"broken_test.go": "//go:build broken\n\npackage little\n\nimport \"os\"\n\nfunc init() { os.Exit(1) }\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, filepath.FromSlash(Folder), "little", name), []byte(text), 0o644))
	}
	require.NoError(t, l.Check(t.Context(), root))
	r, err := l.Measure(t.Context(), root, Options{Time: time.Second, Rounds: 1, Seed: 1, Tell: func(string) {}})
	require.NoError(t, err)
	got := map[string]float64{}
	for _, w := range r.Cases[0].Ways {
		got[w.Name] = w.Also["things"].Median
	}
	require.Equal(t, map[string]float64{"slow": 1, "fast": 1, "flag": 2, "variable": 2}, got, "without the one that does not run here")

	b := l.bench(root, t.TempDir())
	require.NoError(t, b.build(t.Context(), b.binary))
	args, err := b.args(t.Context(), Way{Name: "profiled", Build: "-race CGO_ENABLED=1", Profile: "one"})
	require.NoError(t, err)
	file := filepath.Join(b.shared, "one.pgo")
	require.Equal(t, []string{"-race", "CGO_ENABLED=1", "-pgo=" + file}, args)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	sampled, err := profile.ParseData(data)
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(sampled.Function, func(f *profile.Function) bool { return strings.Contains(f.Name, "BenchmarkLittle") }))
}

func TestMeasure(t *testing.T) {
	root, l, err := makeLab(t, little, littleCode)
	require.NoError(t, err)
	require.NoError(t, l.Check(t.Context(), root))
	told := []string{}
	r, err := l.Measure(t.Context(), root, Options{Time: time.Second, Rounds: 6, Seed: 1, Tell: func(s string) { told = append(told, s) }})
	require.NoError(t, err)
	require.Equal(t, 6, r.Rounds)
	require.Contains(t, told, "building")
	c, ok := r.Case("one")
	require.True(t, ok)
	require.Equal(t, 6, c.Noise.Rounds)
	require.Equal(t, "slow", c.Ways[0].Name)
	require.False(t, c.Ways[0].Ratio.Measured())
	require.Equal(t, 6, c.Ways[1].Ratio.Rounds)
	require.InDelta(t, 1000, c.Ways[0].Also["things"].Median, 0)
	require.InDelta(t, 1, c.Ways[1].Also["things"].Median, 0)

	var out strings.Builder
	l.Introduce(&out)
	guess, err := l.Ask(t.Context(), strings.NewReader("three\n2\n"), &out)
	require.NoError(t, err)
	require.Equal(t, 1, guess)
	c.Ways[1].Ratio.Median = 0.01
	l.Report(&out, root, r, guess)
	for _, want := range []string{"slow (baseline): s", "You guessed: little. It came out: much.", "Published: 2 ns, what it takes (documents 2 and 5).", "For a request: W"} {
		require.Contains(t, out.String(), want)
	}
	guess, err = l.Ask(t.Context(), strings.NewReader(""), &out)
	require.NoError(t, err)
	require.Equal(t, -1, guess)
}

// What a machine lacks is one line, and ways that differ are not compared.
func TestVerify(t *testing.T) {
	options := Options{Time: time.Second, Rounds: 1, Tell: func(string) {}}
	root, l, err := makeLab(t, little, strings.Replace(littleCode, "TestSame(t *testing.T) {", `TestSame(t *testing.T) { t.Skip("there is no database: install one")`, 1))
	require.NoError(t, err)
	_, err = l.Measure(t.Context(), root, options)
	require.Equal(t, Missing{"little", "there is no database: install one"}, err)

	root, l, err = makeLab(t, little, strings.Replace(littleCode, "TestSame(t *testing.T) {", `TestSame(t *testing.T) { t.Fatal("1 is not 2")`, 1))
	require.NoError(t, err)
	_, err = l.Measure(t.Context(), root, options)
	require.ErrorContains(t, err, "the ways of lab little do not do the same")
	require.ErrorContains(t, l.Check(t.Context(), root), "1 is not 2")

	_, _, err = makeLab(t, strings.Replace(little, "name: fast", "name: quick", 1), littleCode)
	require.ErrorContains(t, err, "a way of it if any")
	root, l, err = makeLab(t, strings.ReplaceAll(strings.Replace(little, "name: fast", "name: quick", 1), "way: fast", "way: quick"), littleCode)
	require.NoError(t, err)
	require.ErrorContains(t, l.Check(t.Context(), root), "no benchmark one/quick")
}

func TestDefinitions(t *testing.T) {
	for _, one := range []struct{ old, bad, want string }{
		{"name: little", "name: large", "is not the folder's"},
		{"title: T", "order: 3", "title, question, cases and worth"},
		{"name: fast", "name: fast-2", "names are small letters"},
		{", {name: fast, text: f}", "", "two ways"},
		{"below: 0.5", "below: 0", "needs a way of the case, or bounds"},
		{"in: [2, 5], ", "", "needs what it is"},
		{"text: s}", "text: s, build: -race}", "a baseline is built as usual"},
		{"text: f}", "text: f, profile: two}", "a profile is one of a case"},
		{"case: one, way: fast", "case: two, way: fast", "guess: "},
	} {
		_, _, err := makeLab(t, strings.Replace(little, one.old, one.bad, 1), littleCode)
		require.ErrorContains(t, err, one.want)
	}
}

// A difference that the baseline has with itself is none.
func TestVerdict(t *testing.T) {
	interval := func(low, median, high float64) stats.Interval {
		return stats.Interval{Low: low, Median: median, High: high, Rounds: 6}
	}
	c := CaseResult{Noise: interval(0.95, 1, 1.02)}
	for _, one := range []struct {
		ratio stats.Interval
		want  string
	}{
		{interval(0.8, 0.9, 0.94), "faster"}, {interval(1.1, 1.2, 1.3), "slower"},
		{interval(0.95, 0.96, 0.99), string(stats.CannotTell)}, {interval(0.9, 1.1, 1.3), string(stats.CannotTell)},
		{stats.Interval{Median: 0.5, Rounds: 2}, string(stats.TooFew)}, {stats.Interval{}, string(stats.Missing)},
	} {
		require.Equal(t, one.want, c.Verdict(WayResult{Ratio: one.ratio}), "%v", one.ratio)
	}
}

func TestParse(t *testing.T) {
	all := parse("goos: linux\nBenchmarkX/ten-to-1/a-way-2   \t 100\t 12.5 ns/op\t 7.0 p99-us\t 8 B/op\t 1 allocs/op\nPASS\n")
	require.Equal(t, map[string]map[string]float64{"ten-to-1/a-way": {"ns/op": 12.5, "p99-us": 7, "B/op": 8, "allocs/op": 1}}, all)
}
