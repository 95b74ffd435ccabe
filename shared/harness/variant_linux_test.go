package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

const root = "../.."

// TestMain ends with a look for goroutines that are left: none of a server's outlives its Close.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(Module+"/shared/harness.startAll"))
}

func sourceOf(t *testing.T, v Variant) *Source {
	t.Helper()
	s, err := v.Source(t.Context(), root)
	require.NoError(t, err)
	return s
}

func TestEachPartOfAVariantIsApplied(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666))
	}
	write("stage7-small/main.go", "package main\n\nfunc main() {\n\tone()\n\ttwo()\n}\n")
	write("stage7-small/main_test.go", "package main\n")
	write("stage7-small/one.go", "package main\n\nfunc one() {}\n")
	write("stage8-next/one.go", "package main\n\nfunc one() { println(8) }\n")
	write("shared/a/a.go", "package a\n\nconst A = 1\n")
	write("over/two.go", "package main\n\nfunc two() {}\n")
	write("over/shared/b/b.go", "package b\n")
	write("main.patch", "What it is.\n\n--- a/main.go\n+++ b/main.go\n@@ -2,4 +2,5 @@\n \n func main() {\n \tone()\n+\tthree()\n \ttwo()\n"+
		"--- /dev/null\n+++ b/three.go\n@@ -0,0 +1,3 @@\n+package main\n+\n+func three() {}\n"+
		"--- a/shared/a/a.go\n+++ b/shared/a/a.go\n@@ -1,3 +1,3 @@\n package a\n \n-const A = 2\n+const A = 3\n")
	v, err := ParseVariant([]byte(`
name: all
stage: "7"
from: stage8
files: [one.go]
folder: over
edits:
  - {file: shared/a/a.go, old: A = 1, new: A = 2}
patch: main.patch
then:
  - edits:
      - {file: stage7-small/main.go, old: three(), new: "three(); three()"}
`))
	require.NoError(t, err)
	s, err := v.Source(t.Context(), folder)
	require.NoError(t, err)
	require.Equal(t, "all", s.Name)
	require.Equal(t, "stage7-small", s.Package)
	text := map[string]string{}
	for name, b := range s.Files {
		text[name] = string(b)
	}
	for name, b := range s.Others {
		text[name] = string(b)
	}
	require.Equal(t, map[string]string{
		"main.go":       "package main\n\nfunc main() {\n\tone()\n\tthree(); three()\n\ttwo()\n}\n",
		"one.go":        "package main\n\nfunc one() { println(8) }\n",
		"two.go":        "package main\n\nfunc two() {}\n",
		"three.go":      "package main\n\nfunc three() {}\n",
		"shared/a/a.go": "package a\n\nconst A = 3\n",
		"shared/b/b.go": "package b\n",
	}, text)
	there, err := os.ReadFile(filepath.Join(folder, "shared/a/a.go"))
	require.NoError(t, err)
	require.Contains(t, string(there), "A = 1", "nothing is written in the repository")

	for name, c := range map[string]struct {
		v    Variant
		says string
	}{
		"no stage":         {Variant{Stage: "9"}, `there is no stage "9"`},
		"old twice":        {Variant{Stage: "7", Change: Change{Edits: []Edit{{"main.go", "()", "(1)"}}}}, "main.go has this 3 times, not once"},
		"old never":        {Variant{Stage: "7", Change: Change{Edits: []Edit{{"main.go", "four", "five"}}}}, "main.go has this 0 times"},
		"no file":          {Variant{Stage: "7", Change: Change{Edits: []Edit{{"four.go", "a", "b"}}}}, "stage7-small has no file four.go: it has main.go, one.go"},
		"no file there":    {Variant{Stage: "7", Change: Change{From: "8", Files: []string{"two.go"}}}, "stage8-next has no file two.go: it has one.go"},
		"files of nobody":  {Variant{Stage: "7", Change: Change{Files: []string{"two.go"}}}, "from and files go together"},
		"outside":          {Variant{Stage: "7", Change: Change{Edits: []Edit{{"../x.go", "a", "b"}}}}, "no path inside the repository"},
		"patch on nothing": {Variant{Name: "it", Stage: "7", Change: Change{Patch: "main.patch"}}, "it: main.patch: the patch does not apply: error: "},
		"no patch":         {Variant{Stage: "7", Change: Change{Diff: "nothing\n"}}, "the patch does not apply"},
	} {
		_, err := c.v.Source(t.Context(), folder)
		require.ErrorContains(t, err, c.says, name)
	}
	_, err = ParseVariant([]byte("stage: 7\nfile: x\n"))
	require.ErrorContains(t, err, "field file not found")
}

// A patch fits also where lines were added above, and where those around a change have changed.
func TestAPatchFindsItsPlace(t *testing.T) {
	diff := "--- a/a.go\n+++ b/a.go\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
	for name, c := range map[string]struct{ text, want string }{
		"there":          {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"},
		"moved":          {"0\n0\n0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", "0\n0\n0\n1\n2\n3\n4\nfive\n6\n7\n8\n9\n"},
		"changed around": {"1\n2\nthree\n4\n5\n6\n7\neight\n9\n", "1\n2\nthree\n4\nfive\n6\n7\neight\n9\n"},
	} {
		s := &Source{Root: root, Package: "work/x", Files: map[string][]byte{"a.go": []byte(c.text)}}
		require.NoError(t, s.patch(t.Context(), []byte(diff)), name)
		require.Equal(t, c.want, string(s.Files["a.go"]), name)
	}
}

func TestBuild(t *testing.T) {
	folder := t.TempDir()
	first, err := stage5()
	require.NoError(t, err)
	again, err := sourceOf(t, Variant{Stage: "stage5"}).Build(t.Context(), filepath.Dir(filepath.Dir(first)))
	require.NoError(t, err)
	require.Equal(t, first, again, "what is the same is built once")

	// With an edit of shared/, as a package that is on no disk, whose name it has.
	edit := Edit{"shared/app/app.go", "Hello, World!", "HELLO, WORLD!"}
	mine := sourceOf(t, Variant{Stage: "5", Change: Change{Edits: []Edit{edit}}}).As("work/99-nowhere")
	mine.Files["more.go"] = []byte("package main\n\nfunc more() {}\n")
	program, err := mine.Build(t.Context(), folder)
	require.NoError(t, err)
	s := startServer(t, ServerCommand{Command: Command{Path: program}})
	require.Equal(t, "99-nowhere", s.Ready.Stage)
	c := dial(t, s)
	r, err := c.Do(HelloRequest)
	require.NoError(t, err)
	require.Equal(t, "HELLO, WORLD!", string(r.Body))

	// What does not compile is told with the learner's paths.
	mine.Files["more.go"] = []byte("package main\n\nfunc more() { nothing() }\n")
	_, err = mine.Build(t.Context(), folder)
	var failed *BuildError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "work/99-nowhere/more.go:3:15: undefined: nothing", failed.Text)
	require.Equal(t, "work/99-nowhere/more.go:3:15: undefined: nothing", failed.First())
	require.ErrorAs(t, mine.BuildOnDisk(t.Context(), filepath.Join(folder, "x"), "-cover"), &failed)
	require.Contains(t, failed.Text, "work/99-nowhere/more.go:3:") // -cover moves columns
	require.NotContains(t, failed.Text, "_build-")

	// A file left out is not compiled, though it is on the disk.
	without := sourceOf(t, Variant{Stage: "5"})
	delete(without.Files, "idle.go")
	_, err = without.Build(t.Context(), folder)
	require.ErrorAs(t, err, &failed)
	require.Contains(t, failed.Text, "undefined: ")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = without.Build(ctx, folder)
	require.ErrorIs(t, err, context.Canceled)
}

// Everything in the repository that is a variant by another name can be said with one.
func TestVariantsOfTheRepository(t *testing.T) {
	patches, err := filepath.Glob(filepath.Join(root, "docs/workshop/exercises/*/*.patch"))
	require.NoError(t, err)
	require.NotEmpty(t, patches)
	for _, at := range patches {
		folder := filepath.Dir(at)
		text, err := os.ReadFile(filepath.Join(folder, "exercise.yaml"))
		require.NoError(t, err)
		base := ""
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, "base: "); ok {
				base = strings.TrimSpace(value)
			}
		}
		path, err := filepath.Rel(root, at)
		require.NoError(t, err)
		change := Change{Patch: filepath.ToSlash(path)}
		layer := "_" + strings.TrimSuffix(filepath.Base(at), ".patch")
		if _, err := os.Stat(filepath.Join(folder, layer)); err == nil {
			change.Folder = filepath.ToSlash(filepath.Join(filepath.Dir(path), layer))
		} else {
			require.True(t, errors.Is(err, os.ErrNotExist))
		}
		if strings.Contains(string(text), "reference: start\n") && layer == "_reference" {
			continue // on top of the start
		}
		sourceOf(t, Variant{Stage: base, Change: change})
	}
}
