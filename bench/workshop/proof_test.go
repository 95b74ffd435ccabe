package workshop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/typecheck"
	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// proofVariable says how much is proved: "all" grades every variant of every exercise, and runs the common suite
// against the references; a number does that for one exercise. Without it one exercise's variants are graded by
// their own checks, where what is slow by nature is wanted.
const proofVariable = "QPS_LADDER_PROOF"

// quickProof is the exercise whose variants are always graded: it is the quickest to grade.
const quickProof = 8

// variant is one state of an exercise's code.
type variant struct {
	label     string // "08-leftovers-start"
	files     files
	passes    bool
	fails     []string // checks that must fail
	only      bool     // and no others
	reference bool
}

func variantsOf(t *testing.T, root string, e *Exercise) (all []variant) {
	start, err := e.start(root)
	require.NoError(t, err, "the start of %s", e.Name)
	reference, err := e.reference(root)
	require.NoError(t, err, "the reference of %s", e.Name)
	all = append(all,
		variant{label: e.Name + "-start", files: start, fails: e.StartFails, only: true},
		variant{label: e.Name + "-reference", files: reference, passes: true, reference: true})
	wrongs, err := e.wrongs(root)
	require.NoError(t, err, "a wrong solution of %s", e.Name)
	for _, w := range wrongs {
		all = append(all, variant{label: e.Name + "-" + w.name, files: w.files, fails: w.fails})
	}
	return all
}

// wrong is a solution that looks right and is not.
type wrong struct {
	name  string
	fails []string // checks that must find it
	cheat bool
	files files
}

// wrongs reads the wrong solutions. The lines before the first "--- " of each patch say what it is, and:
//
//	Against: start        (or reference, if it is not said)
//	Cheat: yes
//	Fails: hand-offs of hello
func (e *Exercise) wrongs(root string) ([]wrong, error) {
	patches, err := filepath.Glob(filepath.Join(e.folder, "wrong", "*.patch"))
	if err != nil {
		return nil, err
	}
	slices.Sort(patches)
	var all []wrong
	for _, patch := range patches {
		w := wrong{name: strings.TrimSuffix(filepath.Base(patch), ".patch")}
		text, err := os.ReadFile(patch)
		if err != nil {
			return nil, err
		}
		against := "reference"
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "--- ") {
				break
			}
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch key {
			case "Against":
				against = value
			case "Cheat":
				w.cheat = value == "yes"
			case "Fails":
				w.fails = append(w.fails, value)
			}
		}
		if against != onStart && against != "reference" || len(w.fails) == 0 {
			return nil, fmt.Errorf("%s needs a line \"Fails: CHECK\", and Against: start or reference", w.name)
		}
		if w.files, err = filesOf(root, e.variant(against, filepath.Base(patch))); err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		all = append(all, w)
	}
	return all, nil
}

func testRoot(t *testing.T) string {
	root, err := harness.FindRoot()
	require.NoError(t, err)
	return root
}

func requireLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the servers need Linux: there is no epoll here")
	}
}

// TestExercisesAreWhole holds every exercise to what each must have.
func TestExercisesAreWhole(t *testing.T) {
	root := testRoot(t)
	all, err := exercises(root)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	seen := map[int]bool{}
	beginWithCode := 0 // hints
	for _, e := range all {
		require.False(t, seen[e.Number], "two exercises have the number %d", e.Number)
		seen[e.Number] = true
		hints, err := e.hints()
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(hints), 3, "hints of %s", e.Name)
		for _, hint := range hints {
			if strings.HasPrefix(hint, "    ") {
				beginWithCode++
			}
		}
		require.NotEmpty(t, e.StartFails, "%s: what its start must fail", e.Name)
		require.FileExists(t, filepath.Join(e.folder, "EXERCISE.md"))
		wrongs, err := e.wrongs(root)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(wrongs), 2, "wrong solutions of %s", e.Name)
		require.True(t, slices.ContainsFunc(wrongs, func(w wrong) bool { return w.cheat }), "a cheat among those of %s", e.Name)
		start, err := e.start(root)
		require.NoError(t, err)
		reference, err := e.reference(root)
		require.NoError(t, err)
		for _, name := range changed(start, reference) {
			if start[name] != nil {
				require.Contains(t, e.Files, name, "%s: the reference changes it", e.Name)
			}
		}
		require.Empty(t, e.rules(t.TempDir(), reference, start), "the reference of %s keeps to the rules", e.Name)
	}
	require.NotZero(t, beginWithCode, "code at the beginning of a hint stays indented")
}

// TestVariantsBuild type-checks the start, the reference and the wrong solutions of every exercise: what it
// lets pass and the compiler does not, the proof would find.
func TestVariantsBuild(t *testing.T) {
	root := testRoot(t)
	all, err := exercises(root)
	require.NoError(t, err)
	checker, err := typecheck.New(t.Context(), root, "./stage...")
	require.NoError(t, err)
	for _, e := range all {
		for _, v := range variantsOf(t, root, e) {
			require.NoError(t, checker.Check(v.files), v.label)
		}
	}
}

// TestProof shows that the graders grade: the start of an exercise fails its check, and for the stated
// reason; the reference passes; each wrong solution fails the checks that it must.
func TestProof(t *testing.T) {
	requireLinux(t)
	root := testRoot(t)
	all, err := exercises(root)
	require.NoError(t, err)
	how := os.Getenv(proofVariable)
	if how == "" {
		testenv.Slow(t)
	}
	all = slices.DeleteFunc(all, func(e *Exercise) bool {
		return how != "all" && how != fmt.Sprint(e.Number) && (how != "" || e.Number != quickProof)
	})
	p := &proof{root: root, whole: how != "", folder: t.TempDir()}
	if p.whole {
		t.Cleanup(func() { p.awaitDeadlines(t) })
	}
	type doubt struct {
		of  *Exercise
		in  variant
		why error
	}
	var mutex sync.Mutex
	var doubts []doubt
	// The references take longest, and their time limits run out beside the rest.
	for _, which := range []string{"references", "others"} {
		t.Run(which, func(t *testing.T) {
			for _, e := range all {
				impossible := e.impossible()
				for _, v := range variantsOf(t, root, e) {
					if v.reference != (which == "references") {
						continue
					}
					t.Run(v.label, func(t *testing.T) {
						t.Parallel()
						if impossible != nil {
							t.Skip(impossible)
						}
						if err := p.grade(t, e, v); err != nil {
							mutex.Lock()
							defer mutex.Unlock()
							doubts = append(doubts, doubt{e, v, err})
						}
					})
				}
			}
		})
	}
	// Side by side they can starve each other of the CPUs: by itself, a grader must be right.
	require.LessOrEqual(t, len(doubts), mostDoubts, "%v", doubts)
	for _, d := range doubts {
		t.Run("by itself/"+d.in.label, func(t *testing.T) {
			t.Logf("beside others: %v", d.why)
			require.NoError(t, p.grade(t, d.of, d.in))
		})
	}
}

// mostDoubts is how many of some 200 gradings that run side by side may need one by themselves.
const mostDoubts = 4

// proof is what all gradings have in common.
type proof struct {
	root   string
	whole  bool   // more than one exercise's own checks
	folder string // for programs, which may outlive their grading

	mutex     sync.Mutex
	deadlines map[string]<-chan []grade.Finding // by the name of the exercise
}

// grade grades v, and says how the verdict differs from the one that is stated.
func (p *proof) grade(t *testing.T, e *Exercise, v variant) error {
	root, whole := p.root, p.whole
	temporary, err := os.MkdirTemp(p.folder, "")
	require.NoError(t, err)
	binary, err := v.files.buildIn(t.Context(), root, temporary, v.label)
	require.NoError(t, err)
	if v.reference && whole {
		p.runOut(e, binary)
	}
	start, err := e.start(root)
	require.NoError(t, err)
	broken := e.rules(t.TempDir(), v.files, start)
	subject := e.subject(t.Context(), root, temporary, v.label, binary, v.files, start)
	subject.Seed = uint64(rand.Uint32())
	r := v.asked(e).gradeBinary(subject, func(f grade.Finding) { broken = append(broken, f) }, func(string) {}, nil)
	r.findings = append(broken, general(subject, v, whole)...)
	failing := r.checks()
	if v.reference && whole && (e.Reference == "" || e.Reference == onStart) {
		if f := subject.CommonSuite(); !f.Holds {
			r.findings, failing = append(r.findings, f), append(failing, f.Check)
		}
	}
	var said strings.Builder
	fmt.Fprintf(&said, "seed %d\n", subject.Seed)
	for _, f := range r.findings {
		fmt.Fprintf(&said, "%v  %s: %s\n", f.Holds, f.Check, f.Text)
	}
	t.Log(said.String())
	missed := slices.DeleteFunc(slices.Clone(v.fails), func(name string) bool { return slices.Contains(failing, name) })
	switch {
	case len(missed) > 0:
		return fmt.Errorf("%s must fail %q, and did not:\n%s", v.label, missed, &said)
	case v.passes && len(failing) > 0, v.only && len(failing) > len(v.fails):
		return fmt.Errorf("%s fails %q:\n%s", v.label, failing, &said)
	}
	return nil
}

// asked is the exercise with those checks that say something of v: of a wrong solution, those that must find it.
func (v variant) asked(e *Exercise) *Exercise {
	if v.passes || v.only {
		return e
	}
	asked := *e
	asked.Checks = slices.DeleteFunc(slices.Clone(e.Checks), func(c grade.Check) bool {
		return !slices.ContainsFunc(v.fails, func(name string) bool { return name == c.Name() || c.Figure != "" && grade.OfAnyFigure(name) })
	})
	return &asked
}

// general runs the checks that all exercises have: all but the longest of a reference, and of a
// wrong solution those that must find it.
func general(subject *grade.Subject, v variant, whole bool) (found []grade.Finding) {
	for _, c := range grade.General {
		if slices.Contains(v.fails, c.Name()) || v.reference && whole && c != grade.DefaultDeadlines {
			found = append(found, subject.Run(c)...)
		}
	}
	return found
}

// runOut has the reference of e, which is binary, run out of the time limits that it has by default: it only takes time.
func (p *proof) runOut(e *Exercise, binary string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.deadlines == nil {
		p.deadlines = map[string]<-chan []grade.Finding{}
	}
	if p.deadlines[e.Name] == nil {
		p.deadlines[e.Name] = (&grade.Subject{Binary: binary}).Deadlines(context.Background())
	}
}

func (p *proof) awaitDeadlines(t *testing.T) {
	for name, findings := range p.deadlines {
		for _, f := range <-findings {
			require.True(t, f.Holds, "%s: %s", name, f.Text)
		}
	}
}
