package site

import (
	"fmt"
	"html"
	"html/template"
	"strings"
)

// keptContext is how many equal lines are shown around a change; a longer
// stretch is folded.
const keptContext = 4

// html is the pane of a step: its files, each foldable, with their hunks.
func (s *Step) html() template.HTML {
	var b strings.Builder
	for _, f := range s.Files {
		count := ""
		if s.From != "" {
			count = fmt.Sprintf(` <span class="count"><ins>+%d</ins> <del>−%d</del></span>`, f.Added, f.Removed)
		}
		fmt.Fprintf(&b, `<details class="file" open id="f-%s"><summary><span class="name">%s</span>%s</summary>`, f.Name, f.Name, count)
		for _, h := range f.Hunks {
			h.write(&b)
		}
		b.WriteString("</details>\n")
	}
	return template.HTML(b.String())
}

func (h *Hunk) write(b *strings.Builder) {
	fmt.Fprintf(b, `<section class="hunk %s" id="%s"><h4><a class="permalink" href="#%s">%s</a>`, h.Change, h.ID, h.ID, html.EscapeString(h.Name))
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
	b.WriteString(`</h4><div class="code">`)
	old, new := h.coloured()
	for i, r := range h.Runs {
		if r.equal {
			h.writeEqual(b, r, old, new, i == 0, i == len(h.Runs)-1)
		} else {
			b.WriteString(`<div class="run">`)
			writeSide(b, "old", "del", r.oldFirst, old[:len(r.old)])
			writeSide(b, "new", "ins", r.newFirst, new[:len(r.new)])
			b.WriteString(`</div>`)
		}
		old, new = old[len(r.old):], new[len(r.new):]
	}
	b.WriteString("</div></section>\n")
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
		if h.Change != "same" {
			writeSide(b, "old", "", r.oldFirst+from, old[from:to])
		}
		writeSide(b, "new", "", r.newFirst+from, new[from:to])
		b.WriteString(`</div>`)
	}
	before, after := keptContext, keptContext
	if first {
		before = 0
	}
	if last {
		after = 0
	}
	if h.Change == "same" || n <= before+after+2 {
		part(0, n)
		return
	}
	part(0, before)
	fmt.Fprintf(b, `<details class="more"><summary>%d lines that stay</summary>`, n-before-after)
	part(before, n-after)
	b.WriteString(`</details>`)
	part(n-after, n)
}

func writeSide(b *strings.Builder, side, kind string, first int, lines []string) {
	fmt.Fprintf(b, `<div class="%s">`, side)
	for i, l := range lines {
		fmt.Fprintf(b, `<div class="l %s"><span class="no">%d</span><code>%s</code></div>`, kind, first+i, l)
	}
	b.WriteString(`</div>`)
}
