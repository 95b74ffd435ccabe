package workshop

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Classroom merges the files that learners hand in into one table and one chart on out, and writes the chart
// to the file svg too unless that is "". The name of a file stands for whoever handed it in. Files that cannot be read are told
// and make an error; the others are shown.
func Classroom(out io.Writer, paths []string, svg string) error {
	o := newOutput(out)
	var all []handedIn
	for _, path := range paths {
		s, err := readSubmission(path)
		if err != nil {
			o.line("no", red, err.Error())
			continue
		}
		all = append(all, handedIn{strings.TrimSuffix(filepath.Base(path), ".json"), s})
	}
	if len(all) > 0 {
		markCopies(all)
		classroomTable(o, all)
		classroomChart(o, all)
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
}

func readSubmission(path string) (s submission, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("%s is no hand-in: %w", path, err)
	}
	if s.Schema != submissionSchema || s.Version < 1 || s.Version > submissionVersion || s.Exercise == "" || s.Of <= 0 || s.Holds < 0 || s.Holds > s.Of {
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
		parts = append(parts, fmt.Sprintf("%s %.4g", name, value))
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
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="#1f2328">%s</text>`+"\n", left-10, y+16, escape(row.exercise))
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

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text)
}
