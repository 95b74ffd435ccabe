package report

import (
	"fmt"
	"html"
	"strings"
)

// palette is how many colours there are for servers.
const palette = 10

// theme gives the colours; ink is that of text and axes.
type theme struct {
	ink, paper, faint, muted string
	series                   [palette]string
}

var (
	light = theme{ink: "#1f2328", paper: "#ffffff", faint: "#d8dee4", muted: "#656d76",
		series: [palette]string{"#6e7781", "#0969da", "#8250df", "#bf3989", "#bc4c00", "#1a7f37", "#9a6700", "#0b7285", "#cf222e", "#4d2d00"}}
	dark = theme{ink: "#e6edf3", paper: "#0d1117", faint: "#30363d", muted: "#9aa4ae",
		series: [palette]string{"#a2abb4", "#58a6ff", "#bc8cff", "#f778ba", "#ffa657", "#56d364", "#e3b341", "#56d4dd", "#ff7b72", "#d2a679"}}
	// variables leaves the choice to the page.
	variables = func() theme {
		t := theme{ink: "currentColor", paper: "none", faint: "var(--faint)", muted: "var(--muted)"}
		for i := range t.series {
			t.series[i] = fmt.Sprintf("var(--s%d)", i)
		}
		return t
	}()
)

// drawing is an SVG picture under way. Lengths are in pixels, from the left and from the top.
type drawing struct {
	theme
	body  strings.Builder
	asked bool // something in it answers to the pointer, the keyboard and a touch
}

// value writes what does: what draw draws, and lines that the page shows only then, from a place
// on.
func (d *drawing) value(x, y float64, anchor string, lines []string, draw func()) {
	if d.paper != "none" { // a picture in a file answers to nobody
		draw()
		return
	}
	d.asked = true
	fmt.Fprintf(&d.body, `<g class="asked" tabindex="0" role="img" aria-label="%s">`+"\n", html.EscapeString(strings.Join(lines, "; ")))
	draw()
	const step = 16.0
	wide := 0
	for _, line := range lines {
		wide = max(wide, len([]rune(line)))
	}
	box := 7*float64(wide) + 12
	left := map[string]float64{"start": x, "middle": x - box/2, "end": x - box}[anchor]
	fmt.Fprintf(&d.body, `<g class="answer"><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="4" fill="var(--paper)" stroke="%s"/>`+"\n", left, y, box, step*float64(len(lines))+8, d.muted)
	for i, line := range lines {
		d.textOf(13, left+6, y+step*float64(i+1)+1, "start", line)
	}
	d.body.WriteString("</g></g>\n")
}

func (d *drawing) bar(x, y, width, height float64, fill string) {
	fmt.Fprintf(&d.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, width, height, fill)
}

func (d *drawing) line(x1, y1, x2, y2, width float64, stroke string) {
	fmt.Fprintf(&d.body, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f"/>`+"\n", x1, y1, x2, y2, stroke, width)
}

func (d *drawing) dot(x, y, radius float64, fill string) {
	fmt.Fprintf(&d.body, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"/>`+"\n", x, y, radius, fill)
}

func (d *drawing) curve(points [][2]float64, stroke string) {
	var list strings.Builder
	for _, p := range points {
		fmt.Fprintf(&list, "%.1f,%.1f ", p[0], p[1])
	}
	fmt.Fprintf(&d.body, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.TrimSpace(list.String()), stroke)
}

// text writes lines, the first with its foot at y. anchor is "start", "middle" or "end".
func (d *drawing) text(x, y float64, anchor, text string) { d.textOf(13, x, y, anchor, text) }

// over writes a text that lines behind it do not cross.
func (d *drawing) over(x, y float64, anchor, text string) {
	behind := d.paper
	if behind == "none" {
		behind = "var(--paper)"
	}
	fmt.Fprintf(&d.body, `<g paint-order="stroke" stroke="%s" stroke-width="4" stroke-linejoin="round">`, behind)
	d.text(x, y, anchor, text)
	d.body.WriteString("</g>\n")
}

// heading is a text over a chart.
func (d *drawing) heading(x float64, text string) { d.textOf(16, x, 18, "middle", text) }

func (d *drawing) textOf(size, x, y float64, anchor, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(&d.body, `<text x="%.1f" y="%.1f" font-size="%.0f" text-anchor="%s">%s</text>`+"\n",
			x, y, size, anchor, html.EscapeString(strings.TrimSpace(line)))
		y += 1.2 * size
	}
}

// svg is the whole picture; title is for those who cannot see it. It has a background if the theme
// has one: then it stands alone, on a page of who knows what colour.
func (d *drawing) svg(width, height float64, title string) string {
	background := ""
	if d.paper != "none" {
		background = `<rect width="100%" height="100%" fill="` + d.paper + `"/>` + "\n"
	}
	role, label := "img", ""
	if d.asked {
		role, label = "group", fmt.Sprintf(` aria-label="%s"`, html.EscapeString(title))
	}
	return fmt.Sprintf(`<svg role="%[6]s"%[7]s xmlns="http://www.w3.org/2000/svg" width="%[1]g" height="%[2]g" viewBox="0 0 %[1]g %[2]g" font-family="Arial,Liberation Sans,Arimo,Helvetica,sans-serif" fill="%[3]s">
<title>%[4]s</title>
%[5]s%[8]s</svg>
`, width, height, d.ink, html.EscapeString(title), background, role, label, d.body.String())
}
