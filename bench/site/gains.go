package site

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/stats"
)

// gains are the documents' order of gains at the level of code, from the largest on, and the case of
// the lab about code that stands for each; low and high are the documents' range, as factors.
var gains = []struct {
	what, key string
	low, high float64
}{
	{"copies", "code.copies.pointer", 2, 5},
	{"layout", "code.layout.tight", 1.1, 1.3},
	{"branches", "code.branches.likely-first", 1.05, 1.15},
	{"calls", "code.calls.direct", 1, 1.05},
	{"unrolling", "code.loops.unchecked", 1, 1.05},
}

// What is said of the picture, in its place and below it.
const (
	gainsAbout   = "The documents' order of gains at the level of code, and ours"
	gainsCaption = "How many times as fast: the documents' range (box), and what one example of the lab about code gave (dot, with its interval). The scale doubles from line to line."
)

// gainsPicture is gainsSVG in a page.
func (b *builder) gainsPicture() (string, error) {
	svg, err := b.gainsSVG()
	return fmt.Sprintf("<figure class=\"diagram\" tabindex=\"0\">\n%s<figcaption>%s</figcaption></figure>", svg, gainsCaption), err
}

// gainsSVG draws the documents' ranges, and our gains with their intervals, on a logarithmic scale.
func (b *builder) gainsSVG() (string, error) {
	const left, width, step, least, most = 110.0, 560.0, 34.0, 0.5, 32.0
	x := func(gain float64) float64 {
		gain = math.Max(least, math.Min(most, gain))
		return left + width*math.Log(gain/least)/math.Log(most/least)
	}
	bottom := step * float64(len(gains)+1)
	var out, said strings.Builder
	for tick := least; tick <= most; tick *= 2 {
		fmt.Fprintf(&out, `<line x1="%.0f" x2="%.0f" y1="8" y2="%.0f" stroke="var(--line)" stroke-width="%d"/>`, x(tick), x(tick), bottom-14, map[bool]int{true: 3, false: 1}[tick == 1])
		fmt.Fprintf(&out, `<text x="%.0f" y="%.0f" text-anchor="middle" font-size="13" fill="var(--quiet)">%g×</text>`+"\n", x(tick), bottom+4, tick)
	}
	for i, g := range gains {
		r, c, w, err := b.labs.way(g.key)
		if err != nil {
			return "", err
		}
		y := step*float64(i) + 24
		gain := 1 / w.Ratio.Median
		label := fmt.Sprintf("%s: %s× (%s, %d rounds); published %g to %g×", g.what, stats.Short(gain), c.Verdict(w), r.Rounds, g.low, g.high)
		fmt.Fprintf(&said, "%s. ", label)
		fmt.Fprintf(&out, `<g><title>%s</title><text x="%.0f" y="%.0f" text-anchor="end" font-size="15" fill="var(--text)">%s</text>`, html.EscapeString(label), left-12, y+5, g.what)
		fmt.Fprintf(&out, `<rect x="%.1f" y="%.0f" width="%.1f" height="20" rx="3" fill="var(--mark)" stroke="var(--quiet)"/>`, x(g.low), y-10, x(g.high)-x(g.low))
		if w.Ratio.Bounded() {
			fmt.Fprintf(&out, `<line x1="%.1f" x2="%.1f" y1="%.0f" y2="%.0f" stroke="var(--accent)" stroke-width="3"/>`, x(1/w.Ratio.High), x(1/w.Ratio.Low), y, y)
		}
		fmt.Fprintf(&out, `<circle cx="%.1f" cy="%.0f" r="6" fill="var(--accent)"/></g>`+"\n", x(gain), y)
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 700 %.0f\" font-family=\"system-ui, sans-serif\" role=\"img\" aria-label=\"%s\">\n%s</svg>\n",
		bottom+14, html.EscapeString(strings.TrimSpace(said.String())), out.String()), nil
}
