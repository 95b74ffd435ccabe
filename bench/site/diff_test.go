package site

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// TestStepsAreComplete: what the hunks of a step leave out is the same in both
// stages, declaration by declaration, so that no change can be missed.
func TestStepsAreComplete(t *testing.T) {
	stages, err := harness.Stages(root)
	require.NoError(t, err)
	for i := range stages[1:] {
		step, err := compareStages(root, stages[i], stages[i+1])
		require.NoError(t, err)
		oldSource, err := harness.ReadSource(root, stages[i])
		require.NoError(t, err)
		newSource, err := harness.ReadSource(root, stages[i+1])
		require.NoError(t, err)
		old, new := oldSource.Files, newSource.Files
		for _, f := range step.Files {
			rest := func(source string, side func(stretch) []string) []string {
				declarations, err := splitDeclarations(f.Name, source)
				require.NoError(t, err)
				var shown []string
				for _, h := range f.Hunks {
					var lines []string
					for _, s := range h.Runs {
						lines = append(lines, side(s)...)
					}
					shown = append(shown, strings.Join(lines, "\n")+"\n")
				}
				var out []string
				for _, d := range declarations {
					if !slices.Contains(shown, d.text()) {
						out = append(out, d.text())
					}
				}
				slices.Sort(out)
				return out
			}
			require.Equal(t, rest(string(old[f.Name]), func(s stretch) []string { return s.old }), rest(string(new[f.Name]), func(s stretch) []string { return s.new }), "%s of %s", f.Name, step.To)
			delete(old, f.Name)
			delete(new, f.Name)
		}
		require.Equal(t, old, new, "files that do not differ")
	}
}

const before = `package p

import "fmt"

// A says a.
func A() {
	fmt.Println("a")
}

type base struct{ n int }

// take takes.
func (b *base) take() int {
	b.n++
	return b.n
}

func gone() {}
`

const after = `package p

import "fmt"

// A says more.
func A() {
	fmt.Println("a")
	fmt.Println("more")
}

type loop struct{ n int }

// take takes.
func (l *loop) take() int {
	l.n++
	return l.n
}

func fresh() {}
`

func TestCompareFiles(t *testing.T) {
	f, err := compareFiles("a.go", before, after)
	require.NoError(t, err)
	var got []string
	for _, h := range f.Hunks {
		got = append(got, h.Name+" "+h.Change+" "+h.WasName)
	}
	require.Equal(t, []string{"A changed ", "base gone ", "loop new ", "loop.take changed base.take", "gone gone ", "fresh new "}, got)
	require.Equal(t, 7, f.Added)
	a := f.Hunks[0]
	require.Equal(t, 5, a.Runs[0].oldFirst)
	require.Equal(t, []string{"// A says a."}, a.Runs[0].old)
	require.Equal(t, []string{"// A says more."}, a.Runs[0].new)
	require.True(t, a.Runs[1].equal)
}

// What lies between two hunks, and behind the last, can be unfolded, with its numbers on both sides.
func TestBetweenHunks(t *testing.T) {
	const same = "// b does nothing.\nfunc b() {\n}\n\nfunc c() {}\n\n"
	file, err := compareFiles("x.go", "package x\n\nfunc a() {}\n\n"+same+"func d() {}\n\nfunc e() {}\n", "package x\n\nfunc a() { c() }\n\nvar v int\n\n"+same+"func d() { c() }\n\nfunc e() {}\n")
	require.NoError(t, err)
	require.Equal(t, []string{"a (changed)", "v (new)", "d (changed)"}, hunkNames(file.Hunks))
	require.Len(t, file.Hunks[0].before, 1, "the package")
	require.Empty(t, file.Hunks[1].before)
	html := string((&Step{From: "one", To: "two", Files: []*FileDiff{file}}).html(func(string) string { return "" }))
	_, html, _ = strings.Cut(html, `<details class="more between"><summary>5 lines that stay</summary>`)
	shown, html, _ := strings.Cut(html, "</details>")
	for i, text := range []string{"does nothing", "func", "}", "", "func"} {
		require.Regexp(t, fmt.Sprintf(`<span class="no o">%d</span><span class="no n">%d</span><code>[^\n]*?%s`, 5+i, 7+i, text), shown)
	}
	require.Contains(t, html, `<summary>1 line that stays</summary>`)
}

func TestFindHunk(t *testing.T) {
	f, err := compareFiles("a.go", before, after)
	require.NoError(t, err)
	step := &Step{From: "x", To: "y", Files: []*FileDiff{f}}
	step.identify()
	for anchor, want := range map[string]string{"loop.take": "loop.take", "take": "loop.take", "A": "A", `Println("more")`: "A", "b.n++": "loop.take"} {
		h, err := step.find("a.go", anchor)
		require.NoError(t, err, anchor)
		require.Equal(t, want, h.Name, anchor)
	}
	_, err = step.find("a.go", "nowhere")
	require.ErrorContains(t, err, `no hunk of a.go is called "nowhere"`)
	require.ErrorContains(t, err, "loop.take (changed)")
	_, err = step.find("b.go", "A")
	require.ErrorContains(t, err, "b.go does not differ between x and y")
	_, err = step.find("a.go", `Println("a")`)
	require.Error(t, err, "a line that did not change is no anchor")
	_, err = step.find("a.go", "func ")
	require.ErrorContains(t, err, "fits 3 hunks of a.go")
}

// Of a stage that is shown as a whole, every declaration is met.
func TestUnexplained(t *testing.T) {
	stage, err := wholeStage(root, "stage0-naive")
	require.NoError(t, err)
	const timedOut = `{{hunk "conn.go" "conn.timedOut"}} (same)`
	missing := stage.unexplained()
	require.Contains(t, missing, timedOut)
	for _, m := range missing {
		require.NotRegexp(t, `"package"|"imports"|_test\.go`, m)
	}
	h, err := stage.find("conn.go", "conn.timedOut")
	require.NoError(t, err)
	h.explained = append(h.explained, "here")
	require.NotContains(t, stage.unexplained(), timedOut)
}

// Of two sides that have something in common the words are marked that differ; HTML stays HTML.
func TestChangedWordsAreMarked(t *testing.T) {
	r := stretch{old: []string{"\tif a < b && ok {", "\t\tf(x)"}, new: []string{"\tif a <= b && ok {", "\t\tf(x, y)"}}
	old, new := []string{`	if a &lt; b &amp;&amp; <span class="k">ok</span> {`, "\t\tf(x)"}, []string{`	if a &lt;= b &amp;&amp; <span class="k">ok</span> {`, "\t\tf(x, y)"}
	markChanged(r, old, new)
	require.Equal(t, []string{`	if a &lt; b &amp;&amp; <span class="k">ok</span> {`, "\t\tf(x)"}, old)
	require.Equal(t, []string{`	if a &lt;<mark>=</mark> b &amp;&amp; <span class="k">ok</span> {`, "\t\tf(x<mark>, y</mark>)"}, new)
	require.Equal(t, `<span class="k">a<mark>b</mark></span><mark>c</mark>`, markSpans(`<span class="k">ab</span>c`, []span{{1, 3}}))

	apart := stretch{old: []string{"one two three"}, new: []string{"return nil, errors.New(message)"}}
	old, new = []string{"one two three"}, []string{"return nil, errors.New(message)"}
	markChanged(apart, old, new)
	require.Equal(t, apart.old, old, "where all is new, nothing stands out")
	require.Equal(t, apart.new, new)
}
