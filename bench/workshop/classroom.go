package workshop

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// ClassroomOptions say what Classroom does beside reading.
type ClassroomOptions struct {
	SVG string // writes the chart to this file too
	// Grade applies each diff to a clean copy of its commit, builds what comes of it, and checks it in full: it runs
	// the learners' code.
	Grade bool
}

// Classroom merges the files that learners hand in into one table and one chart on out. The name of a file stands for
// whoever handed it in. What does not fit together is marked: another commit than the one that is checked out, numbers
// that cannot be, a diff that does not give the code whose hash it is. Files that cannot be read are told and make an error; the
// others are shown. Nothing that was handed in is run, unless Grade says so.
func (w *Workshop) Classroom(ctx context.Context, paths []string, options ClassroomOptions) error {
	o, svg := w.out, options.SVG
	var all []handedIn
	for _, path := range paths {
		s, err := readSubmission(path)
		if err != nil {
			o.line("no", red, printable(err.Error()))
			continue
		}
		all = append(all, handedIn{name: printable(strings.TrimSuffix(filepath.Base(path), ".json")), submission: s})
	}
	if len(all) > 0 {
		markCopies(all)
		if options.Grade {
			if err := cleanEnvironment(ctx); err != nil {
				return err
			}
			o.say("This runs the code that was handed in, each in a clean copy of its commit.")
		}
		for i := range all {
			o.working(all[i].name)
			all[i].remarks = w.doubts(ctx, all[i].submission, options.Grade)
		}
		o.wipe()
		classroomTable(o, all)
		classroomChart(o, all)
	}
	for _, s := range all {
		for _, remark := range s.remarks {
			o.line("!", yellow, fmt.Sprintf("%s, %s: %s", s.name, s.Exercise, printable(remark)))
		}
	}
	if svg != "" && len(all) > 0 {
		if err := os.WriteFile(svg, []byte(classroomSVG(all)), 0o666); err != nil {
			return err
		}
		o.say("Written: %s", svg)
	}
	if bad := len(paths) - len(all); bad > 0 {
		return fmt.Errorf("%d of %d files could not be read", bad, len(paths))
	}
	return nil
}

// handedIn is a submission and the name of its file.
type handedIn struct {
	name string
	submission
	remarks []string // what does not fit
}

// printable leaves out what a terminal would obey: control characters, and those that turn the direction of text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\ufffd'
	}, text)
}

// exerciseName is how exercises are called.
var exerciseName = regexp.MustCompile(`^[0-9]{2}-[a-z0-9-]{1,40}$`)

// doubts are what does not fit together in a hand-in.
func (w *Workshop) doubts(ctx context.Context, s submission, run bool) (remarks []string) {
	doubt := func(format string, arguments ...any) { remarks = append(remarks, fmt.Sprintf(format, arguments...)) }
	if s.Checks < 0 || s.Hints < 0 || s.Checks == 0 && s.Holds > 0 || s.Solved && s.Holds < s.Of {
		doubt("the numbers cannot be: %d checks, %d hints, %d of %d", s.Checks, s.Hints, s.Holds, s.Of)
	}
	for name, value := range s.Figures {
		if value < 0 || math.IsNaN(value) || math.IsInf(value, 0) {
			doubt("a figure cannot be: %s %v", name, value)
		}
	}
	if s.Solved && s.Version >= 2 && s.Passed != s.Code {
		doubt("it says solved, and a full check has passed other code")
	}
	e, err := exercise(w.root, s.Exercise)
	if err != nil {
		doubt("there is no such exercise here")
		return remarks
	}
	if s.Version < 2 {
		doubt("it is of an older version, without the code")
		return remarks
	}
	if s.Solved {
		for _, c := range e.Checks {
			value, ok := s.Figures[c.Name()]
			if ok && (c.AtMost != nil && value > *c.AtMost || c.AtLeast != nil && value < *c.AtLeast) {
				doubt("it says solved, with %s at %.4g", c.Name(), value)
			}
		}
	}
	if s.Commit == "" || !commitName.MatchString(s.Commit) {
		doubt("it was checked by no commit")
		return remarks
	}
	if head, err := git(ctx, w.root, "rev-parse", "HEAD"); err != nil || head != s.Commit {
		doubt("it was checked by another commit, %s", short(s.Commit))
	}
	copied, _, err := graded(ctx, w.root, s.Commit)
	if err != nil {
		doubt("%v", err)
		return remarks
	}
	own, start, err := s.apply(copied)
	if err != nil {
		doubt("its diff does not fit the start: %v", err)
		return remarks
	}
	if own.hash() != s.Code {
		doubt("its diff does not give the code whose hash it has")
	}
	if run {
		remarks = append(remarks, e.regrade(ctx, copied, own, start, s.Solved)...)
	}
	return remarks
}

var commitName = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// apply makes the code of a hand-in, in a copy of its commit. Nothing of it is run.
func (s submission) apply(copied string) (own, start files, err error) {
	there, err := exercise(copied, s.Exercise)
	if err != nil {
		return nil, nil, err
	}
	if start, err = there.start(copied); err != nil || s.Diff == "" {
		return start, start, err
	}
	const patch = workPath + "/handed-in.patch"
	if err := os.MkdirAll(filepath.Join(copied, workPath), 0o777); err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(filepath.Join(copied, patch), []byte(s.Diff), 0o666); err != nil {
		return nil, nil, err
	}
	defer os.Remove(filepath.Join(copied, patch))
	v := there.variant(onStart)
	v.Then = append(v.Then, harness.Change{Patch: patch})
	own, err = filesOf(copied, v)
	return own, start, err
}

// regrade checks code in full, and says what does not hold although it says so.
func (e *Exercise) regrade(ctx context.Context, copied string, own, start files, solved bool) []string {
	there, err := exercise(copied, e.Name)
	if err != nil {
		return []string{err.Error()}
	}
	temporary, err := os.MkdirTemp("", "ladder-")
	if err != nil {
		return []string{err.Error()}
	}
	defer os.RemoveAll(temporary)
	failing := there.rules(temporary, own, start)
	binary, err := own.buildIn(ctx, copied, temporary, e.Name)
	if err != nil {
		return []string{"graded again, it does not build: " + strings.Join(strings.Fields(err.Error()), " ")}
	}
	subject := there.subject(ctx, copied, temporary, e.Name, binary, own, start)
	subject.Seed = uint64(rand.Uint32())
	r := there.gradeBinary(subject, func(grade.Finding) {}, func(string) {}, nil)
	failing = append(failing, r.failing()...)
	if len(failing) == 0 {
		r.findings = whole(subject, func(grade.Finding) {}, func(string) {})
		failing = r.failing()
	}
	switch {
	case ctx.Err() != nil:
		return []string{"it was not graded to its end"}
	case len(failing) == 0 && solved:
		return nil
	case len(failing) == 0:
		return []string{"graded again, all holds"}
	}
	first := strings.Join(strings.Fields(failing[0].Text), " ") // it may have several lines
	return []string{fmt.Sprintf("graded again, %d %s not hold; the first: %s", len(failing), map[bool]string{true: "does", false: "do"}[len(failing) == 1], first)}
}

func readSubmission(path string) (s submission, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("%s is no hand-in: %w", path, err)
	}
	if s.Schema != submissionSchema || s.Version < 1 || s.Version > submissionVersion || !exerciseName.MatchString(s.Exercise) || s.Of <= 0 || s.Holds < 0 || s.Holds > s.Of {
		return s, fmt.Errorf("%s is no hand-in that this version reads", path)
	}
	return s, nil
}

// markCopies sorts, and adds to the name of each whose code another has too.
func markCopies(all []handedIn) {
	slices.SortStableFunc(all, func(a, b handedIn) int {
		if c := strings.Compare(a.Exercise, b.Exercise); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	first := map[string]string{}
	for i := range all {
		key := all[i].Exercise + all[i].Code
		if name, ok := first[key]; ok {
			all[i].name += " (code as " + name + ")"
		} else {
			first[key] = all[i].name
		}
	}
}

func classroomTable(o *output, all []handedIn) {
	t := table.NewWriter()
	t.SetOutputMirror(o.Writer)
	t.SetStyle(table.StyleDefault)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"exercise", "handed in as", "holds", "checks", "hints", "reference", "figures"})
	for _, s := range all {
		holds := fmt.Sprintf("%d of %d", s.Holds, s.Of)
		if s.Solved {
			holds = "solved"
		}
		seen := ""
		if s.Looked {
			seen = "seen"
		}
		if len(s.remarks) > 0 {
			holds += " (!)"
		}
		t.AppendRow(table.Row{s.Exercise, clipName(s.name, 34), holds, s.Checks, s.Hints, seen, figuresLine(s.Figures)})
	}
	t.Render()
}

func clipName(name string, most int) string {
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return name
}

// figuresLine has the first figures, by name.
func figuresLine(figures map[string]float64) string {
	var parts []string
	for name, value := range figures {
		parts = append(parts, fmt.Sprintf("%s %.4g", printable(name), value))
	}
	slices.Sort(parts)
	if len(parts) > 3 {
		parts = append(parts[:3], "…")
	}
	return strings.Join(parts, "; ")
}

// standing is how far a class has got with one exercise.
type standing struct {
	exercise             string
	solved, looked, open int
}

func (s standing) all() int { return s.solved + s.looked + s.open }

// standings need all to be sorted by exercise.
func standings(all []handedIn) (out []standing) {
	for _, s := range all {
		if len(out) == 0 || out[len(out)-1].exercise != s.Exercise {
			out = append(out, standing{exercise: s.Exercise})
		}
		last := &out[len(out)-1]
		switch {
		case s.Solved && s.Looked:
			last.looked++
		case s.Solved:
			last.solved++
		default:
			last.open++
		}
	}
	return out
}

// classroomChart draws a bar for each exercise, at most 40 columns wide.
func classroomChart(o *output, all []handedIn) {
	const columns = 40
	rows := standings(all)
	most := 0
	for _, row := range rows {
		most = max(most, row.all())
	}
	bar := func(n int, mark string) string { return strings.Repeat(mark, (n*columns+most-1)/most) }
	fmt.Fprintln(o.Writer)
	for _, row := range rows {
		fmt.Fprintf(o.Writer, "%-22s %s%s%s %d of %d\n", row.exercise,
			o.paint(green, bar(row.solved, "#")), o.paint(yellow, bar(row.looked, "+")), o.paint(red, bar(row.open, ".")),
			row.solved+row.looked, row.all())
	}
	o.say("# solved   + solved with the reference seen   . not yet")
}

func classroomSVG(all []handedIn) string {
	rows := standings(all)
	most := 0
	for _, row := range rows {
		most = max(most, row.all())
	}
	const left, wide, high = 190, 420, 28
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="14">`, left+wide+80, high*len(rows)+60)
	fmt.Fprintf(&b, "\n<title>What a class has solved</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n")
	for i, row := range rows {
		y := 20 + i*high
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="#1f2328">%s</text>`+"\n", left-10, y+16, html.EscapeString(row.exercise))
		x := left
		for _, part := range []struct {
			n      int
			colour string
		}{{row.solved, "#1a7f37"}, {row.looked, "#bf8700"}, {row.open, "#afb8c1"}} {
			w := part.n * wide / most
			if w > 0 {
				fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="20" fill="%s"/>`+"\n", x, y, w, part.colour)
			}
			x += w
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#1f2328">%d of %d</text>`+"\n", x+8, y+16, row.solved+row.looked, row.all())
	}
	y := 20 + len(rows)*high + 20
	x := left
	for _, part := range []struct{ label, colour string }{{"solved", "#1a7f37"}, {"reference seen", "#bf8700"}, {"not yet", "#afb8c1"}} {
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d" fill="#1f2328">%s</text>`+"\n", x, y-11, part.colour, x+18, y, part.label)
		x += 40 + 9*len(part.label)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
