package site

import (
	"fmt"
	"html"
	"html/template"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// keptContext is how many equal lines are shown around a change; a longer
// stretch is folded.
const keptContext = 4

// html is the pane of a step: its files, each foldable, with their hunks. whole is where a file of
// a stage is shown whole.
func (s *Step) html(whole func(file string) string) template.HTML {
	var b strings.Builder
	for _, f := range s.Files {
		count := ""
		if s.From != "" {
			count = fmt.Sprintf(` <span class="count"><ins>+%d</ins> <del>−%d</del></span>`, f.Added, f.Removed)
		}
		fmt.Fprintf(&b, `<details class="file" open id="f-%s"><summary><span class="name">%s</span>%s</summary>`, f.Name, f.Name, count)
		if to := whole(path.Join(s.To, f.Name)); to != "" {
			fmt.Fprintf(&b, `<a class="whole-file" href="%s">the whole file</a>`, html.EscapeString(to))
		}
		for _, h := range f.Hunks {
			writeBetween(&b, h.before)
			h.write(&b)
		}
		writeBetween(&b, f.rest)
		b.WriteString("</details>\n")
	}
	return template.HTML(b.String())
}

func (h *Hunk) write(b *strings.Builder) {
	fmt.Fprintf(b, `<section class="hunk %s" id="%s"><h3><a class="permalink" href="#%s">%s</a>`, h.Change, h.ID, h.ID, html.EscapeString(h.Name))
	switch {
	case h.WasName != "":
		fmt.Fprintf(b, ` <span class="change">was %s</span>`, html.EscapeString(h.WasName))
	case h.Change != "same" && h.Change != "changed":
		fmt.Fprintf(b, ` <span class="change">%s</span>`, h.Change)
	}
	for i, anchor := range h.explained {
		label := "explained"
		if i > 0 {
			label = "and here"
		}
		fmt.Fprintf(b, ` <a class="back" href="#%s">%s</a>`, anchor, label)
	}
	b.WriteString(`</h3><div class="code">`)
	old, new := h.coloured()
	for i, r := range h.Runs {
		if r.equal {
			h.writeEqual(b, r, old, new, i == 0, i == len(h.Runs)-1)
		} else {
			markChanged(r, old[:len(r.old)], new[:len(r.new)])
			b.WriteString(`<div class="run">`)
			writeSide(b, "old", "del", r.oldFirst, 0, r.old, old)
			writeSide(b, "new", "ins", 0, r.newFirst, r.new, new)
			b.WriteString(`</div>`)
		}
		old, new = old[len(r.old):], new[len(r.new):]
	}
	b.WriteString("</div></section>\n")
}

// writeBetween writes declarations that a step leaves as they are, folded.
func writeBetween(b *strings.Builder, same []stretch) {
	if len(same) == 0 {
		return
	}
	lines := -1
	for _, r := range same {
		lines += len(r.new) + 1
	}
	fmt.Fprintf(b, `<details class="more between"><summary>%s</summary><div class="code">`, staying(lines))
	for i, r := range same {
		if i > 0 {
			b.WriteString(`<div class="run eq">`)
			for _, side := range []string{"old", "new"} {
				writeSide(b, side, "", r.oldFirst-1, r.newFirst-1, []string{""}, []string{""})
			}
			b.WriteString(`</div>`)
		}
		h := Hunk{Runs: []stretch{r}, Change: "changed"}
		old, new := h.coloured()
		h.writeEqual(b, r, old, new, true, true)
	}
	b.WriteString("</div></details>\n")
}

func staying(lines int) string {
	if lines == 1 {
		return "1 line that stays"
	}
	return fmt.Sprintf("%d lines that stay", lines)
}

// coloured gives the lines of both sides as HTML. Colours are found for whole
// declarations, as a comment or a string may go over many lines.
func (h *Hunk) coloured() (old, new []string) {
	var a, b []string
	for _, r := range h.Runs {
		a, b = append(a, r.old...), append(b, r.new...)
	}
	colour := func(lines []string) []string {
		if len(lines) == 0 {
			return nil
		}
		out := highlight("go", strings.Join(lines, "\n")+"\n")
		for len(out) < len(lines) {
			out = append(out, "")
		}
		return out[:len(lines)]
	}
	return colour(a), colour(b)
}

// writeEqual writes lines that are the same on both sides. A long stretch in
// the middle of a change is folded.
func (h *Hunk) writeEqual(b *strings.Builder, r stretch, old, new []string, first, last bool) {
	n := len(r.new)
	part := func(from, to int) {
		if from >= to {
			return
		}
		b.WriteString(`<div class="run eq">`)
		if h.Change == "same" {
			for i := from; i < to; i++ {
				writeLine(b, `class="l"`, fmt.Sprintf(`<span class="no">%d</span>`, r.newFirst+i), r.new[i], new[i])
			}
		} else {
			writeSide(b, "old", "", r.oldFirst+from, r.newFirst+from, r.old[from:to], old[from:])
			writeSide(b, "new", "", r.oldFirst+from, r.newFirst+from, r.new[from:to], new[from:])
		}
		b.WriteString(`</div>`)
	}
	before, after := keptContext, keptContext
	if first {
		before = 0
	}
	if last {
		after = 0
	}
	if h.Change == "same" || first && last || n <= before+after+2 {
		part(0, n)
		return
	}
	part(0, before)
	fmt.Fprintf(b, `<details class="more"><summary>%s</summary>`, staying(n-before-after))
	part(before, n-after)
	b.WriteString(`</details>`)
	part(n-after, n)
}

// writeSide writes lines with their numbers in the old file and in the new one; those of a side
// that begins with 0 are left empty.
func writeSide(b *strings.Builder, side, kind string, old, new int, lines, coloured []string) {
	number := func(class string, first, i int) string {
		if first == 0 {
			return `<span class="no ` + class + `"></span>`
		}
		return fmt.Sprintf(`<span class="no %s">%d</span>`, class, first+i)
	}
	fmt.Fprintf(b, `<div class="%s">`, side)
	for i, line := range lines {
		writeLine(b, `class="l `+kind+`"`, number("o", old, i)+number("n", new, i), line, coloured[i])
	}
	b.WriteString(`</div>`)
}

// writeLine writes a line; how far it is indented decides where it goes on when it is too long.
func writeLine(b *strings.Builder, attributes, numbers, line, coloured string) {
	indent := ""
	if stops := len(line) - len(strings.TrimLeft(line, "\t")); stops > 0 {
		indent = fmt.Sprintf(` style="--in:%d"`, stops)
	}
	fmt.Fprintf(b, `<div %s>%s<code%s>%s</code></div>`, attributes, numbers, indent, coloured)
}

// tokens are words, blanks and signs.
var tokens = regexp.MustCompile(`\w+|[ \t]+|[^\w \t]`)

// span is a piece of a line, in bytes.
type span struct{ from, to int }

// markChanged marks the words by which the two sides of a stretch differ. Sides that have little in
// common are left as they are: there each word would be marked.
func markChanged(r stretch, old, new []string) {
	const little = 0.4 // of the words
	split := func(lines []string) (words []string) {
		for _, line := range lines {
			words = append(append(words, tokens.FindAllString(line, -1)...), "")
		}
		return words
	}
	before, after := strings.Join(split(r.old), "\n"), strings.Join(split(r.new), "\n")
	diff, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), 1<<20)
	if err != nil || len(diff.Hunks) != 1 || len(r.old) == 0 || len(r.new) == 0 {
		return
	}
	marks := [2][][]span{make([][]span, len(r.old)+1), make([][]span, len(r.new)+1)}
	line, at := [2]int{}, [2]int{}
	same, all := 0, 0
	for _, l := range diff.Hunks[0].Lines {
		word := strings.TrimSuffix(l.Content, "\n")
		if strings.TrimSpace(word) != "" {
			if all++; l.Kind == udiff.Equal {
				same++
			}
		}
		for side, other := range []udiff.OpKind{udiff.Insert, udiff.Delete} {
			switch {
			case l.Kind == other:
			case word == "":
				line[side], at[side] = min(line[side]+1, len(marks[side])-1), 0
			default:
				if l.Kind != udiff.Equal && strings.TrimSpace(word) != "" {
					marks[side][line[side]] = append(marks[side][line[side]], span{at[side], at[side] + len(word)})
				}
				at[side] += len(word)
			}
		}
	}
	if float64(same) < little*float64(all) {
		return
	}
	for side, lines := range [][]string{old, new} {
		plain := [][]string{r.old, r.new}[side]
		for i := range lines {
			lines[i] = markSpans(lines[i], joinSpans(plain[i], marks[side][i]))
		}
	}
}

// joinSpans makes one of pieces between which nothing but blanks stand.
func joinSpans(line string, spans []span) (joined []span) {
	for _, s := range spans {
		if last := len(joined) - 1; last >= 0 && strings.TrimSpace(line[joined[last].to:s.from]) == "" {
			joined[last].to = s.to
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

// markSpans puts marks around pieces of a line that is HTML already; they are counted in bytes of
// its text.
func markSpans(line string, spans []span) string {
	if len(spans) == 0 {
		return line
	}
	var out strings.Builder
	at, open := 0, false
	turn := func(on bool) {
		if on != open {
			out.WriteString(map[bool]string{true: "<mark>", false: "</mark>"}[on])
			open = on
		}
	}
	for i := 0; i < len(line); {
		end := i + 1
		switch line[i] {
		case '<':
			turn(false)
			end = i + strings.IndexByte(line[i:], '>') + 1
		case '&':
			end = i + strings.IndexByte(line[i:], ';') + 1
			fallthrough
		default:
			turn(slices.ContainsFunc(spans, func(s span) bool { return s.from <= at && at < s.to }))
			at++
		}
		out.WriteString(line[i:end])
		i = end
	}
	turn(false)
	return out.String()
}
