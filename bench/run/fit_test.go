//go:build linux

package run

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

func TestWhatDoesNotFitIsSkippedAndSaid(t *testing.T) {
	few, many := workload.Workload{Name: "few", Connections: 10}, workload.Workload{Name: "many", Connections: 5000}
	b := &Bench{}
	b.Grid([]Server{{Name: "one"}, {Name: "two"}}, []workload.Workload{few, many}, []Server{{Name: "one"}}, []Server{{Name: "two"}})
	require.NoError(t, b.Fit(load.Limits{Descriptors: 1024, HardDescriptors: 1024}))
	for _, item := range b.Items {
		require.Equal(t, "few", item.Workload.Name)
	}
	for _, r := range b.Ratios {
		require.Equal(t, "few", r.Workload)
	}
	require.Len(t, b.Items, 3, "two servers, and the first again")
	require.Len(t, b.Remarks, 1)
	require.Contains(t, b.Remarks[0], "Skipped: workload many: 5000 connections need 5032 file descriptors and the limit is 1024")
	require.Contains(t, b.Remarks[0], "prlimit")

	b = &Bench{Items: []Item{{Server: Server{Name: "one"}, Workload: many}}}
	require.ErrorContains(t, b.Fit(load.Limits{Descriptors: 1024}), "workload many")
}

func TestGridLeavesOutWhatAServerCannotServe(t *testing.T) {
	hello, pipelined := workload.Workload{Name: "hello"}, workload.Workload{Name: "pipelined"}
	limited := Server{Name: "limited", Can: func(w workload.Workload) bool { return w.Name == "hello" }}
	full := Server{Name: "full"}
	b := &Bench{}
	b.Grid([]Server{full, limited}, []workload.Workload{hello, pipelined}, []Server{full}, []Server{full, limited})
	require.Len(t, b.Items, 2+1+1+1)
	for _, r := range b.Ratios {
		require.False(t, r.Base == "limited" && r.Workload == "pipelined")
	}
	b = &Bench{Rate: 100}
	require.NotContains(t, b.metrics(), results.RequestsPerSecond, "it is given")
}

func TestScalePlan(t *testing.T) {
	b := &Bench{}
	b.Scale([]Server{{Name: "stage0-naive"}, {Name: "stage1-reuseport"}}, []int{1, 2}, []workload.Workload{{Name: "hello"}})
	var names []string
	for _, item := range b.Items {
		names = append(names, fmt.Sprint(item.Server.Name, " ", item.Server.Workers))
	}
	require.ElementsMatch(t, []string{"stage0-naive ×1 1", "stage0-naive ×2 2", "stage1-reuseport ×1 1", "stage1-reuseport ×2 2", "stage0-naive ×1 again 1"}, names)
	require.Len(t, b.Ratios, 4+1)
}

func TestPeersCan(t *testing.T) {
	for _, w := range workload.All() {
		require.Equal(t, !strings.HasPrefix(w.Name, "async") && w.Name != "file", noHops(w), w.Name)
		switch w.Name {
		case "hello", "browser", "c1", "c1000":
			require.True(t, fixedAnswer(w), w.Name)
		case "pipelined", "churn", "json", "body64k", "mw3":
			require.False(t, fixedAnswer(w), w.Name)
		}
	}
	s := WithFlag(Server{Name: "stage1-reuseport"}, "-acceptor")
	require.Equal(t, []string{"-acceptor"}, s.Args)
}

func TestRateGoesToTheGenerator(t *testing.T) {
	testenv.Slow(t)
	b := bench(t)
	b.Rate, b.Duration = 200, 100*time.Millisecond
	m, err := b.measure(t.Context(), Item{Server: rig(t, "good"), Workload: hello(t, 2)})
	require.NoError(t, err)
	require.LessOrEqual(t, m.Requests, uint64(20))
	require.NotZero(t, m.Latency.P50)
}

// repository makes a repository with one commit and changes on top of it.
func repository(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
	}
	write("go.mod", "module "+harness.Module+"\n\ngo 1.26\n")
	write("stage0-one/main.go", "package main\n\nfunc main() { println(\"old\", loop{}.name()) }\n")
	write("stage0-one/loop.go", "package main\n\ntype loop struct{}\n\nfunc (loop) name() string { return \"one\" }\n")
	write("stage1-two/loop.go", "package main\n\ntype loop struct{}\n\nfunc (loop) name() string { return \"two\" }\n")
	write("stage1-two/main.go", "package main\n\nfunc main() { println(loop{}.other(), kept()) }\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "first"}} {
		text, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", text)
	}
	write("stage0-one/main.go", "package main\n\nfunc main() { println(\"new\") }\n")
	return root
}

func TestWorktreeHoldsTheCommitAndGoesAway(t *testing.T) {
	root := repository(t)
	folder, name, remove, err := Worktree(t.Context(), root, "HEAD")
	defer remove()
	require.NoError(t, err)
	require.Len(t, name, 8)
	old, err := os.ReadFile(filepath.Join(folder, "stage0-one", "main.go"))
	require.NoError(t, err)
	require.Contains(t, string(old), "old", "as it was committed")
	s, err := BuildStageAt(t.Context(), folder, "0", name)
	require.NoError(t, err)
	require.Equal(t, "stage0 "+name, s.Name)
	require.FileExists(t, s.Path)

	remove()
	require.NoDirExists(t, folder)
	list, err := git(t.Context(), root, "worktree", "list")
	require.NoError(t, err)
	require.Len(t, strings.Split(list, "\n"), 1)

	_, _, remove, err = Worktree(t.Context(), root, "no-such-commit")
	remove()
	require.EqualError(t, err, `there is no commit "no-such-commit" here: see git log`)
	_, _, remove, err = Worktree(t.Context(), root, "--help")
	remove()
	require.ErrorContains(t, err, `there is no commit "--help"`)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, remove, err = Worktree(stopped, root, "HEAD")
	remove()
	require.ErrorIs(t, err, context.Canceled)
}

func TestMixTakesFilesAndSaysWhatIsMissing(t *testing.T) {
	root, folder := repository(t), t.TempDir()
	s, err := Mix(t.Context(), root, folder, "stage0-one", "stage1-two", []string{"loop.go"})
	require.NoError(t, err)
	require.FileExists(t, s.Path)
	require.Equal(t, "mix", s.Name)
	unchanged, err := os.ReadFile(filepath.Join(root, "stage0-one", "loop.go"))
	require.NoError(t, err)
	require.Contains(t, string(unchanged), `"one"`, "the sources stay as they are")

	_, err = Mix(t.Context(), root, folder, "stage0-one", "stage1-two", []string{"main.go"})
	require.ErrorContains(t, err, "stage0 with main.go of stage1 does not compile: missing loop.other, kept")
	require.NotContains(t, err.Error(), "\n")
	for want, files := range map[string][]string{
		"from and files go together":  nil,
		"stage1-two has no file x.go": {"x.go"},
		"is no file of a stage":       {"../go.mod"},
		"stage_test.go is a test":     {"stage_test.go"},
		"it has loop.go, main.go":     {"y.go"},
	} {
		_, err := Mix(t.Context(), root, folder, "stage0-one", "stage1-two", files)
		require.ErrorContains(t, err, want)
	}
}
