//go:build linux

package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func bounded(median, low, high float64) stats.Interval {
	return stats.Interval{Median: median, Low: low, High: high, Rounds: 8, Confidence: 0.96}
}

func TestOnlyCertainAndLargeChangesCount(t *testing.T) {
	micro := func(i stats.Interval) Change {
		return Change{Layer: "micro", Name: "judge", What: "time per operation", Ratio: i, Limit: MicroLimit}
	}
	require.True(t, micro(bounded(1.08, 1.06, 1.1)).Worse())
	require.False(t, micro(bounded(1.04, 1.03, 1.05)).Past(), "certain, but small")
	require.False(t, micro(bounded(1.2, 0.99, 1.4)).Past(), "large, but the interval holds 1")
	require.False(t, micro(bounded(0.5, 0.4, 0.6)).Worse())
	require.True(t, micro(bounded(0.5, 0.4, 0.6)).Past())
	require.False(t, micro(stats.Interval{Median: 2, Rounds: 3}).Past(), "too few rounds")
	speed := Change{Layer: "end to end", Name: "stage5 on hello", What: "requests per second", Rises: true, Ratio: bounded(0.8, 0.7, 0.85), Limit: EndToEndLimit}
	require.True(t, speed.Worse())
	require.Equal(t, "end to end, stage5 on hello: requests per second worse by 20.0% (head/base 0.80 [0.70–0.85], limit 10%)", speed.Words())

	r := Report{Base: "abc", Head: "def", Ended: results.Complete, Remarks: []string{"Not quiet."}, Changes: []Change{speed, micro(bounded(1, 0.9, 1.1)), micro(bounded(0.5, 0.4, 0.6))}, Skipped: []string{"x is not there at base"}}
	require.Len(t, r.Worse(), 1)
	var out bytes.Buffer
	r.Text(&out)
	require.Contains(t, out.String(), "warning: end to end, stage5")
	require.Contains(t, out.String(), "better: micro, judge")
	require.Contains(t, out.String(), "left out: x is not there")
	folder := t.TempDir()
	paths, err := r.Write(folder)
	require.NoError(t, err)
	markdown, err := os.ReadFile(paths[1])
	require.NoError(t, err)
	require.Contains(t, string(markdown), "**worse**")
	require.Equal(t, filepath.Join(folder, "guard.json"), paths[0])
	require.Contains(t, out.String(), "· Not quiet.")

	// Of what was cut short no more is claimed than was measured.
	r.Ended, r.Changes = "interrupted", append(r.Changes, micro(stats.Interval{Median: 2, Rounds: 3}))
	out.Reset()
	r.Text(&out)
	require.Contains(t, out.String(), "too few rounds to tell: 1 of the 4 comparisons")
	require.Contains(t, out.String(), "not complete (interrupted)")
	require.NotContains(t, out.String(), "nothing is worse")
	paths, err = r.Write(folder)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(folder, "guard-partial.json"), paths[0])
	out.Reset()
	(&Report{Ended: results.Complete}).Text(&out)
	require.Contains(t, out.String(), "nothing is worse by more than 5% (micro) or 10% (end to end)")
}

func TestParse(t *testing.T) {
	got := parse("goos: linux\nBenchmarkJudge-1   \t 1000\t  250 ns/op\t 3 B/op\nBenchmarkLong 	 10	 1.5e+06 ns/op\nPASS\n")
	require.Len(t, got, 2)
	require.InDelta(t, 250, got["Judge"], 1e-6)
	require.InDelta(t, 1.5e6, got["Long"], 1e-3)
}

// A made-up repository whose one hot path does thirty thousand times the work at head: more than
// any neighbour on the machine can hide.
func TestMicroFindsASlowerPath(t *testing.T) {
	tree := func(name string, work int) Tree {
		root := t.TempDir()
		write := func(path, text string) {
			require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
		}
		write("go.mod", "module example.org/made\n\ngo 1.26\n")
		write("shared/http1/x.go", "package http1\n")
		write("shared/http1/x_test.go", fmt.Sprintf("package http1\n\nimport \"testing\"\n\nvar sink int\n\nfunc work(n int) {\n\tfor i := range n {\n\t\tsink += i\n\t}\n}\n\n"+
			"func BenchmarkJudge(b *testing.B) {\n\tfor b.Loop() {\n\t\twork(%d)\n\t}\n}\n\nfunc BenchmarkSame(b *testing.B) {\n\tfor b.Loop() {\n\t\twork(1000)\n\t}\n}\n", work))
		if name == "head" {
			write("shared/http1/y_test.go", "package http1\n\nimport \"testing\"\n\nfunc BenchmarkNew(b *testing.B) {\n\tfor b.Loop() {\n\t}\n}\n")
		}
		write("shared/netpoll/x.go", "package netpoll\n")
		return Tree{Name: name, Root: root}
	}
	var told []string
	changes, skipped, err := Micro(t.Context(), tree("base", 10), tree("head", 300_000), nil, stats.MinimumRounds, 2*time.Millisecond, 1, func(s string) { told = append(told, s) })
	require.NoError(t, err)
	require.NotEmpty(t, told)
	require.Len(t, changes, 2)
	require.Equal(t, "shared/http1 Judge", changes[0].Name)
	require.True(t, changes[0].Worse(), "%+v", changes[0])
	require.Equal(t, stats.MinimumRounds, changes[1].Ratio.Rounds)
	all := strings.Join(skipped, "\n")
	require.Contains(t, all, "shared/http1 New is not there at base")
	require.Contains(t, all, "the benchmarks of shared/netpoll do not build at base: it has no tests")
}

// What was measured before an interruption is kept, and nothing is called missing that only had no
// turn.
func TestMicroKeepsWhatItHasWhenItIsStopped(t *testing.T) {
	tree := func(name string) Tree {
		root := t.TempDir()
		for path, text := range map[string]string{
			"go.mod": "module example.org/made\n\ngo 1.26\n", "shared/http1/x.go": "package http1\n", "shared/netpoll/x.go": "package netpoll\n",
			"shared/http1/x_test.go": "package http1\n\nimport \"testing\"\n\nfunc BenchmarkJudge(b *testing.B) {\n\tfor b.Loop() {\n\t}\n}\n",
		} {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
		}
		return Tree{Name: name, Root: root}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes, _, err := Micro(ctx, tree("base"), tree("head"), nil, 1000, time.Millisecond, 1, func(text string) {
		if strings.HasPrefix(text, "micro, round 3 of") {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, changes, 1)
	require.Equal(t, 2, changes[0].Ratio.Rounds)
	require.False(t, changes[0].Past())
}

// The benchmarks that are put beside the stages fit all of them.
func TestStageBenchmarksFitEveryStage(t *testing.T) {
	root, err := harness.FindRoot()
	require.NoError(t, err)
	stages, err := harness.Stages(root)
	require.NoError(t, err)
	folder := t.TempDir()
	file := filepath.Join(folder, benchName)
	require.NoError(t, os.WriteFile(file, stageBench, 0o600))
	replace := map[string]string{}
	args := []string{"vet", "-overlay", filepath.Join(folder, "overlay.json")}
	for _, s := range stages {
		replace[filepath.Join(root, s, benchName)] = file
		args = append(args, "./"+s)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "overlay.json"), overlay, 0o600))
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
}

func TestWhatASecondLookDoesNotConfirmIsNoWarning(t *testing.T) {
	change := func(name string, median, low, high float64) Change {
		return Change{Name: name, What: "time per operation", Ratio: bounded(median, low, high), Limit: MicroLimit}
	}
	got := confirm([]Change{change("chance", 1.2, 1.1, 1.3), change("true", 1.2, 1.1, 1.3), change("both ways", 1.2, 1.1, 1.3), change("quiet", 1, 0.9, 1.1)},
		[]Change{change("chance", 1.01, 0.9, 1.1), change("true", 1.25, 1.1, 1.3), change("both ways", 0.8, 0.7, 0.9)})
	require.False(t, got[0].Past())
	require.Equal(t, 1.01, got[0].Ratio.Median)
	require.True(t, got[1].Worse())
	require.Equal(t, 1.2, got[1].Ratio.Median)
	require.False(t, got[2].Past())
	require.False(t, got[3].Unsure)
	require.Equal(t, "^Benchmark(A/1|B)$", only("p", map[string]bool{"p B": true, "p A/1": true, "q C": true}))
	require.Empty(t, only("r", map[string]bool{"p B": true}))
	require.Equal(t, ".", only("r", nil))
}

func TestChangesOfADocument(t *testing.T) {
	d := &results.Document{Ratios: []results.Ratio{
		{Workload: "hello", Metric: results.RequestsPerSecond, Head: "head stage5", Base: "base stage5", Ratio: bounded(0.5, 0.4, 0.6)},
		{Workload: "hello", Metric: results.ServerCPU, Head: "head stage5", Base: "base stage5", Ratio: bounded(0.5, 0.4, 0.6)},
	}}
	got := changes(d)
	require.Equal(t, "stage5 on hello", got[0].Name)
	require.True(t, got[0].Worse(), "fewer requests per second")
	require.False(t, got[1].Worse(), "less CPU time")
}
