package workshop

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
		err = w.Submit(which, "")
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
}

func TestApplyPatch(t *testing.T) {
	const diff = "A comment.\nFails: something\n\n--- a/x.go\n+++ b/x.go\n@@ -2,3 +2,3 @@\n two\n-three\n+drei\n four\n"
	for name, c := range map[string]struct{ text, want, fails string }{
		"in its place":       {"one\ntwo\nthree\nfour\n", "one\ntwo\ndrei\nfour\n", ""},
		"further down":       {"0\n0\n0\none\ntwo\nthree\nfour\n", "0\n0\n0\none\ntwo\ndrei\nfour\n", ""},
		"the nearer of two":  {"two\nthree\nfour\n0\n0\n0\n0\n0\ntwo\nthree\nfour\n", "two\ndrei\nfour\n0\n0\n0\n0\n0\ntwo\nthree\nfour\n", ""},
		"what is around it":  {"one\nTWO\nthree\nFOUR\n", "one\nTWO\ndrei\nFOUR\n", ""},
		"not there any more": {"one\ntwo\nfour\n", "", "is not there any more"},
	} {
		f := files{"x.go": []byte(c.text)}
		err := apply(f, diff)
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, c.want, string(f["x.go"]), name)
	}
	f := files{}
	require.NoError(t, apply(f, "--- /dev/null\n+++ b/new.go\n@@ -0,0 +1,2 @@\n+package main\n+\n"))
	require.Equal(t, "package main\n\n", string(f["new.go"]))
	require.ErrorContains(t, apply(f, "nothing of the kind\n"), "no diff")
}

func TestFoldAndReflow(t *testing.T) {
	require.Equal(t, []string{"one two", "three"}, fold("one two three", 9))
	require.Equal(t, []string{"averyveryverylongword"}, fold("averyveryverylongword", 9))
	require.Equal(t, []string{"ä ö ü", "ß"}, fold("ä ö ü ß", 6))
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
	require.NoError(t, Classroom(&shown, paths, svg))
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
	require.ErrorContains(t, Classroom(&shown, []string{broken, paths[0]}, ""), "1 of 2 files could not be read")
	require.Contains(t, shown.String(), "is no hand-in")
	require.Contains(t, shown.String(), "ada")
}

func TestReadTests(t *testing.T) {
	passed, failed, said := readTests(strings.NewReader(`=== RUN   TestCommonSuite
=== RUN   TestCommonSuite/behaviour
=== RUN   TestCommonSuite/behaviour/date
=== PAUSE TestCommonSuite/behaviour/date
=== RUN   TestCommonSuite/behaviour/stop
=== CONT  TestCommonSuite/behaviour/date
    x_test.go:3: it is wrong
    behaviour.go:154: 
        	Error Trace:	/somewhere/behaviour.go:154
        	            				/somewhere/behaviour.go:29
        	Error:      	Received unexpected error:
        	            	answer 3 of 16: i/o timeout
        	Test:       	TestCommonSuite/behaviour/date
        	Messages:   	16 requests in one piece
--- FAIL: TestCommonSuite (0.00s)
    --- FAIL: TestCommonSuite/behaviour (0.00s)
        --- FAIL: TestCommonSuite/behaviour/date (0.00s)
        --- PASS: TestCommonSuite/behaviour/stop (0.00s)
FAIL
`), func() {})
	require.Equal(t, 1, passed)
	require.Equal(t, []string{"TestCommonSuite/behaviour/date"}, failed)
	require.Equal(t, "x_test.go:3: it is wrong\nanswer 3 of 16: i/o timeout\n16 requests in one piece\n", said["TestCommonSuite/behaviour/date"])
}

// TestReadTestsStops shows that nobody waits for the other tests once one has failed.
func TestReadTestsStops(t *testing.T) {
	output, program := io.Pipe()
	go io.WriteString(program, "=== RUN   TestCommonSuite/date\n    x.go:1: \n        \tError Trace:\t/x.go:1\n        \tError:      \tno date\n")
	_, failed, said := readTests(output, func() { program.Close() })
	require.Equal(t, []string{"TestCommonSuite/date"}, failed)
	require.Equal(t, "no date\n", said["TestCommonSuite/date"])
}

func TestWarningsOfAComparison(t *testing.T) {
	require.Equal(t, []string{"Disturbed: other processes used 9.0% of the CPUs' time.", "a server failed"}, warnings([]string{
		"24 rounds of 0.4 s each", "Disturbed: other processes used 9.0% of the CPUs' time.", "! a server failed",
	}))
}
