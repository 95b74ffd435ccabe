package workshop

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
)

// cloneRoot is a repository with just what the commands need: go.mod, shared/, one stage and the exercises.
func cloneRoot(t *testing.T) string {
	root, clone := testRoot(t), t.TempDir()
	for _, name := range []string{"go.mod", "shared/serve", "stage0-naive", "stage1-reuseport", "stage2-conn-timer", "docs/workshop/exercises/02-conn-timer", "docs/workshop/exercises/08-leftovers"} {
		from := filepath.Join(root, filepath.FromSlash(name))
		to := filepath.Join(clone, filepath.FromSlash(name))
		if info, err := os.Stat(from); err == nil && !info.IsDir() {
			text, err := os.ReadFile(from)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(to, text, 0o666))
			continue
		}
		require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	}
	t.Chdir(clone)
	return clone
}

// ladder does what the command of that name does.
func ladder(t *testing.T, verb, which string) (string, error) {
	var out bytes.Buffer
	w, err := Open(&out)
	require.NoError(t, err)
	switch verb {
	case "list":
		err = w.List()
	case "exercise":
		err = w.LayOut(which)
	case "check":
		err = w.Check(t.Context(), which, CheckOptions{})
	case "hint":
		err = w.Hint(which, false)
	case "solution":
		err = w.Solution(t.Context(), which)
	case "reset":
		err = w.Reset(which)
	case "submit":
		err = w.Submit(t.Context(), which, "")
	case "progress":
		err = w.Progress()
	}
	return out.String(), err
}

func TestLayOutHintResetProgress(t *testing.T) {
	root := cloneRoot(t)
	_, err := ladder(t, "check", "2")
	require.ErrorContains(t, err, "not laid out yet: make exercise N=2")
	_, err = ladder(t, "exercise", "99")
	require.ErrorContains(t, err, `there is no exercise "99": choose one of 2, 8`)

	out, err := ladder(t, "list", "")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^ +2  conn-timer +A timer that is armed once$`, out)

	out, err = ladder(t, "exercise", "2")
	require.NoError(t, err)
	require.Contains(t, out, "work/02-conn-timer")
	out, err = ladder(t, "list", "")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^  \.\.   2  conn-timer `, out, "it has been begun")
	base, err := os.ReadFile(filepath.Join(root, "stage1-reuseport", "idle.go"))
	require.NoError(t, err)
	path := filepath.Join(root, "work", "02-conn-timer", "idle.go")
	own, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(base), string(own))
	require.FileExists(t, filepath.Join(root, "work", "02-conn-timer", "EXERCISE.md"))
	require.NoFileExists(t, filepath.Join(root, "work", "02-conn-timer", "stage_test.go"))

	// Work is never overwritten.
	require.NoError(t, os.WriteFile(path, append(own, "// mine\n"...), 0o666))
	_, err = ladder(t, "exercise", "2")
	require.ErrorContains(t, err, "make reset N=2")
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(kept), "// mine")

	e, err := exercise(root, "02")
	require.NoError(t, err)
	hints, err := e.hints()
	require.NoError(t, err)
	for i := range hints {
		out, err = ladder(t, "hint", "2")
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(out, "Hint "), "one more each time")
		require.Contains(t, out, "Hint "+string(rune('1'+i))+" of ")
	}
	require.Contains(t, out, "That was the last")
	again, err := ladder(t, "hint", "2")
	require.NoError(t, err)
	require.Equal(t, out, again)

	out, err = ladder(t, "solution", "2")
	require.NoError(t, err)
	require.Contains(t, out, "-// mine\n", "a diff against the learner's own code")
	require.Contains(t, out, "+++ reference/idle.go")

	out, err = ladder(t, "reset", "2")
	require.NoError(t, err)
	require.Contains(t, out, "work/_old/02-conn-timer-")
	olds, err := filepath.Glob(filepath.Join(root, "work", "_old", "02-conn-timer-*", "idle.go"))
	require.NoError(t, err)
	require.Len(t, olds, 1)
	old, err := os.ReadFile(olds[0])
	require.NoError(t, err)
	require.Contains(t, string(old), "// mine")
	own, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(base), string(own))

	_, err = ladder(t, "submit", "2")
	require.ErrorContains(t, err, "make check N=2 first")
	out, err = ladder(t, "progress", "")
	require.NoError(t, err)
	require.Contains(t, out, "0 of 2 solved")
	require.Contains(t, out, "4 hints")
	require.NotContains(t, out, "\x1b", "colours are for terminals")

	// Once it is solved, hints are there to compare: all of them, and they do not count.
	now := time.Now()
	require.NoError(t, updateProgress(root, func(p *progress) error {
		p.of(e).Hints, p.of(e).Solved = 1, &now
		return nil
	}))
	out, err = ladder(t, "hint", "2")
	require.NoError(t, err)
	require.Equal(t, len(hints), strings.Count(out, "Hint "))
	out, err = ladder(t, "progress", "")
	require.NoError(t, err)
	require.Contains(t, out, "reference seen, 1 hint\n", "on one line")

	require.NoError(t, os.WriteFile(filepath.Join(root, "work", ".progress.json"), []byte("{"), 0o666))
	_, err = ladder(t, "progress", "")
	require.ErrorContains(t, err, "is damaged")
}

// TestStartIsAPatch shows that a fix to the stage reaches an exercise whose start is a patch on it.
func TestStartIsAPatch(t *testing.T) {
	root := cloneRoot(t)
	path := filepath.Join(root, "stage2-conn-timer", "conn.go")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	fixed := strings.Replace(string(text), "package main\n", "package main\n\n// A fix,\n// of several lines.\n", 1)
	require.NoError(t, os.WriteFile(path, []byte(fixed), 0o666))
	_, err = ladder(t, "exercise", "8")
	require.NoError(t, err)
	own, err := os.ReadFile(filepath.Join(root, "work", "08-leftovers", "conn.go"))
	require.NoError(t, err)
	require.Contains(t, string(own), "// A fix,")
	require.Contains(t, string(own), "rewind")
}

func TestRulesOfAnExercise(t *testing.T) {
	root := cloneRoot(t)
	e, err := exercise(root, "2")
	require.NoError(t, err)
	start, err := e.start(root)
	require.NoError(t, err)
	folder := t.TempDir()
	require.Empty(t, e.rules(folder, start, start))
	own := files{}
	for name, text := range start {
		own[name] = text
	}
	delete(own, "head.go")
	own["loop.go"] = []byte("package main\n")
	own["new.go"] = []byte("package main\n\nimport \"os\"\n\nvar _ = os.Args\n")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "fast.s"), nil, 0o666))
	var said strings.Builder
	for _, f := range e.rules(folder, own, start) {
		require.False(t, f.Holds)
		said.WriteString(f.Text + "\n")
	}
	require.Contains(t, said.String(), "head.go is missing, and out of bounds")
	require.Contains(t, said.String(), "loop.go has changed, and only idle.go may")
	require.Contains(t, said.String(), "new.go:3: package os is out of bounds")
	require.Contains(t, said.String(), "fast.s: only Go is built here")

	// What was laid out may import more.
	start["idle.go"] = []byte("package main\n\nimport \"os\"\n\nvar _ = os.Args\n")
	require.Empty(t, sourceRules("idle.go", append([]byte("// Mine.\n"), start["idle.go"]...), start["idle.go"]))
	require.NotEmpty(t, sourceRules("idle.go", []byte("package main\n\nimport \"net\"\n\nvar _ net.Addr\n"), start["idle.go"]))
}

func TestReflow(t *testing.T) {
	require.Equal(t, "# Head\nOne paragraph of two lines.\n\n    code stays\n    as it is\n- an item that goes on\n- another",
		reflow("# Head\nOne paragraph\nof two lines.\n\n    code stays\n    as it is\n- an item\n  that goes on\n- another"))
}

func TestClassroom(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, s submission) string {
		s.Schema, s.Version = submissionSchema, submissionVersion
		text, err := json.Marshal(s)
		require.NoError(t, err)
		path := filepath.Join(folder, name+".json")
		require.NoError(t, os.WriteFile(path, text, 0o666))
		return path
	}
	paths := []string{
		write("ada", submission{Exercise: "02-conn-timer", Solved: true, Holds: 7, Of: 7, Code: "aa", Figures: map[string]float64{"timerfd_settime of hello": 0}}),
		write("bob", submission{Exercise: "02-conn-timer", Holds: 5, Of: 7, Hints: 3, Code: "bb"}),
		write("eve", submission{Exercise: "02-conn-timer", Solved: true, Looked: true, Holds: 7, Of: 7, Code: "aa"}),
		write("kim <&>", submission{Exercise: "01-reuseport", Solved: true, Holds: 7, Of: 7, Code: "cc"}),
	}
	svg := filepath.Join(folder, "chart.svg")
	var shown bytes.Buffer
	classroom := func(paths []string, svg string) error {
		w, err := Open(&shown)
		require.NoError(t, err)
		return w.Classroom(t.Context(), paths, ClassroomOptions{SVG: svg})
	}
	require.NoError(t, classroom(paths, svg))
	out := shown.String()
	require.Contains(t, out, "5 of 7")
	require.Contains(t, out, "eve (code as ada)")
	require.Contains(t, out, "timerfd_settime of hello 0")
	require.Regexp(t, `02-conn-timer +#+\++\.+ 2 of 3`, out)
	picture, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.Contains(t, string(picture), "2 of 3")

	broken := filepath.Join(folder, "broken.json")
	require.NoError(t, os.WriteFile(broken, []byte(`{"schema":"something else"}`), 0o666))
	shown.Reset()
	require.ErrorContains(t, classroom([]string{broken, paths[0]}, ""), "1 of 2 files could not be read")
	require.Contains(t, shown.String(), "is no hand-in")
	require.Contains(t, shown.String(), "ada")
}

func TestWarningsOfAComparison(t *testing.T) {
	require.Equal(t, []string{"Disturbed: other processes used 9.0% of the CPUs' time.", "a server failed"}, warnings([]string{
		"24 rounds of 0.4 s each", "Disturbed: other processes used 9.0% of the CPUs' time.", "! a server failed",
	}))
}

// TestProgressIsNotLost has several commands write at the same time.
func TestProgressIsNotLost(t *testing.T) {
	root := cloneRoot(t)
	e, err := exercise(root, "2")
	require.NoError(t, err)
	const writers, each = 8, 20
	done := make(chan error, writers)
	for range writers {
		go func() {
			var err error
			for range each {
				err = cmp.Or(err, updateProgress(root, func(p *progress) error { p.of(e).Checks++; return nil }))
			}
			done <- err
		}()
	}
	for range writers {
		require.NoError(t, <-done)
	}
	p, err := readProgress(root)
	require.NoError(t, err)
	require.Equal(t, writers*each, p.of(e).Checks)
}

// TestSolvedIsOfOneCode: what has passed in full is solved; what came after it and passed a quick check is not.
func TestSolvedIsOfOneCode(t *testing.T) {
	root := cloneRoot(t)
	_, err := ladder(t, "exercise", "2")
	require.NoError(t, err)
	e, err := exercise(root, "2")
	require.NoError(t, err)
	handIn := func() (s submission) {
		_, err := ladder(t, "submit", "2")
		require.NoError(t, err)
		own, err := readFiles(e.work(root))
		require.NoError(t, err)
		text, err := os.ReadFile(filepath.Join(root, "work", "results", e.Name+"-"+own.hash()[:8]+".json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &s))
		return s
	}
	checked := func(noSuite bool) {
		own, err := readFiles(e.work(root))
		require.NoError(t, err)
		r := &result{findings: []grade.Finding{{Check: "all", Holds: true}}}
		require.NoError(t, e.keepResult(root, r, own.hash(), "", noSuite))
	}
	checked(true)
	require.False(t, handIn().Solved, "the common suite has not seen it")
	checked(false)
	require.True(t, handIn().Solved)
	path := filepath.Join(e.work(root), "idle.go")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, "// more\n"...), 0o666))
	_, err = ladder(t, "submit", "2")
	require.ErrorContains(t, err, "make check N=2 first")
	checked(true)
	require.False(t, handIn().Solved, "nor this")
}

// TestWayOut: a folder that has lost its files is no dead end, and a hint lays nothing out.
func TestWayOut(t *testing.T) {
	root := cloneRoot(t)
	_, err := ladder(t, "hint", "2")
	require.NoError(t, err)
	out, err := ladder(t, "progress", "")
	require.NoError(t, err)
	require.NotContains(t, out, "laid out")
	require.Contains(t, out, "1 hint")
	_, err = ladder(t, "reset", "2")
	require.ErrorContains(t, err, "not laid out yet")

	require.NoError(t, os.MkdirAll(filepath.Join(root, "work", "02-conn-timer"), 0o777))
	_, err = ladder(t, "check", "2")
	require.ErrorContains(t, err, "no Go files: make reset N=2")
	_, err = ladder(t, "reset", "2")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "work", "02-conn-timer", "idle.go"))
}

// TestClassroomMarks hands in a file that was made by submit, and the same with one thing changed.
func TestClassroomMarks(t *testing.T) {
	root := cloneRoot(t)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "all"}} {
		_, err := git(t.Context(), root, args...)
		require.NoError(t, err)
	}
	_, err := ladder(t, "exercise", "2")
	require.NoError(t, err)
	e, err := exercise(root, "2")
	require.NoError(t, err)
	path := filepath.Join(e.work(root), "idle.go")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, "// mine\n"...), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(e.work(root), "new.go"), []byte("package main\n"), 0o666))
	own, err := readFiles(e.work(root))
	require.NoError(t, err)
	head, err := git(t.Context(), root, "rev-parse", "HEAD")
	require.NoError(t, err)
	r := &result{findings: []grade.Finding{{Check: "all", Holds: true}}}
	require.NoError(t, e.keepResult(root, r, own.hash(), head, false))
	_, err = ladder(t, "submit", "2")
	require.NoError(t, err)
	made, err := os.ReadFile(filepath.Join(root, "work", "results", e.Name+"-"+own.hash()[:8]+".json"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*submission)
		says   string
	}{
		"as it is":           {func(*submission) {}, ""},
		"another hash":       {func(s *submission) { s.Code, s.Passed = "aa", "aa" }, "does not give the code whose hash"},
		"another diff":       {func(s *submission) { s.Diff = strings.Replace(s.Diff, "mine", "ours", 1) }, "does not give the code whose hash"},
		"a broken diff":      {func(s *submission) { s.Diff = "--- a/idle.go\n+++ b/idle.go\n@@ -1 +1 @@\n-no\n+yes\n" }, "does not fit the start"},
		"another commit":     {func(s *submission) { s.Commit = strings.Repeat("a", 40) }, "checked by another commit"},
		"no commit":          {func(s *submission) { s.Commit = "--output=x" }, "checked by no commit"},
		"never passed":       {func(s *submission) { s.Passed = "" }, "a full check has passed other code"},
		"impossible numbers": {func(s *submission) { s.Checks = -1 }, "the numbers cannot be"},
		"a figure too large": {func(s *submission) { s.Figures = map[string]float64{"timerfd_settime of hello": 2} }, "with timerfd_settime of hello at 2"},
		"no such exercise":   {func(s *submission) { s.Exercise = "77-none" }, "there is no such exercise"},
		"an escape":          {func(s *submission) { s.Figures = map[string]float64{"\x1b[31m": -1} }, "a figure cannot be"},
	} {
		var s submission
		require.NoError(t, json.Unmarshal(made, &s))
		c.change(&s)
		text, err := json.Marshal(s)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "ada\x1b[2J.json")
		require.NoError(t, os.WriteFile(file, text, 0o666))
		var out bytes.Buffer
		w, err := Open(&out)
		require.NoError(t, err)
		require.NoError(t, w.Classroom(t.Context(), []string{file}, ClassroomOptions{}), name)
		require.NotContains(t, out.String(), "\x1b", name)
		if c.says == "" {
			require.NotContains(t, out.String(), "!", name)
		} else {
			require.Contains(t, strings.Join(strings.Fields(out.String()), " "), c.says, name)
		}
	}
}

// TestGradedIsWhatIsCommitted: what has been changed in the tree or in the copy has no say.
func TestGradedIsWhatIsCommitted(t *testing.T) {
	root := cloneRoot(t)
	folder, commit, err := graded(t.Context(), root, "HEAD")
	require.NoError(t, err)
	require.Equal(t, []string{root, ""}, []string{folder, commit}, "without git")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "all"}} {
		_, err := git(t.Context(), root, args...)
		require.NoError(t, err)
	}
	rules := filepath.Join(exercisesPath, "02-conn-timer", "exercise.yaml")
	want, err := os.ReadFile(filepath.Join(root, rules))
	require.NoError(t, err)
	easy := []byte("title: easy\n")
	require.NoError(t, os.WriteFile(filepath.Join(root, rules), easy, 0o666))
	_, err = git(t.Context(), root, "update-index", "--assume-unchanged", filepath.ToSlash(rules))
	require.NoError(t, err)
	for range 2 {
		folder, commit, err = graded(t.Context(), root, "HEAD")
		require.NoError(t, err)
		require.Len(t, commit, 40)
		got, err := os.ReadFile(filepath.Join(folder, rules))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
		require.NoFileExists(t, filepath.Join(folder, "shared", "more.go"))
		// For the second time the copy is edited.
		require.NoError(t, os.WriteFile(filepath.Join(folder, rules), easy, 0o666))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "shared", "more.go"), nil, 0o666))
	}
}

func TestEnvironmentIsClean(t *testing.T) {
	// All that is changed is put back.
	for _, line := range os.Environ() {
		name, value, _ := strings.Cut(line, "=")
		t.Setenv(name, value)
	}
	for _, name := range []string{"GOFLAGS", "GODEBUG", "GOGC", "GOENV", "GOWORK", "GIT_DIR"} {
		t.Setenv(name, "")
	}
	t.Setenv("GOFLAGS", "-tags=cheat")
	t.Setenv("GODEBUG", "madvdontneed=1")
	require.NoError(t, cleanEnvironment(t.Context()))
	require.Empty(t, os.Getenv("GOFLAGS"))
	require.Empty(t, os.Getenv("GODEBUG"))
	require.Equal(t, "off", os.Getenv("GOENV"))
	require.NotEmpty(t, os.Getenv("GOMODCACHE"))
}
