package report

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/qps-ladder/qps-ladder/bench/console"
)

// Part is one of the things that a request's CPU time goes to, coarser than the categories of a
// profile: what the picture of the ladder has colours for.
type Part int

// The parts, in the order in which they are stacked.
const (
	Send Part = iota
	Receive
	Wait
	Timers
	EpollCtl
	HandOff
	Parser
	Head
	Memory
	App
	Rest
	Parts int = iota
)

var parts = [Parts]struct {
	name   string
	letter byte // in a terminal
	fill   string
	ansi   int // of the 256 colours of terminals
}{
	Send:     {"send", 'S', "#f0a860", 215},
	Receive:  {"receive", 'R', "#f5cf6b", 221},
	Wait:     {"wait", 'W', "#d3d67c", 186},
	Timers:   {"timers", 'T', "#f28b7d", 210},
	EpollCtl: {"epoll_ctl", 'E', "#f0a0c8", 218},
	HandOff:  {"hand-off", 'H', "#c3a5f0", 183},
	Parser:   {"parser", 'P', "#8fbcf0", 117},
	Head:     {"head", 'D', "#7fd4e6", 123},
	Memory:   {"memory", 'M', "#b5bfcc", 250},
	App:      {"app", 'A', "#8fd6a0", 115},
	Rest:     {"rest", '.', "#e3e7ec", 255},
}

// Cost is what a request costs a server, and on what it goes: a bar of the picture of the ladder.
type Cost struct {
	Name      string
	Micros    float64        // of server CPU
	Shares    [Parts]float64 // of it, by Part; none when nobody has looked into it
	Same      bool           // a run cannot tell it from the one before
	Apart     bool           // it is no step from the one before
	Mine      float64        // µs on this machine, beside those of another; 0 without
	Here      string         // requests per second, for people; so is Published
	Published string
}

// split tells whether it is known on what the time goes.
func (c Cost) split() bool { return c.Shares != [Parts]float64{} }

// taken says what a step has brought, and, where that is less, which parts have become smaller.
func taken(before, after Cost) (text string, by []Part) {
	if after.Apart {
		return "", nil
	}
	delta := after.Micros - before.Micros
	if after.Same {
		return "no difference that a run can tell", nil
	}
	text = signed(delta) + " µs"
	if delta > 0 || !before.split() || !after.split() {
		return text, nil
	}
	less := func(p Part) float64 { return before.Micros*before.Shares[p] - after.Micros*after.Shares[p] }
	for p := range Part(Parts) {
		if less(p) > -delta/10 {
			by = append(by, p)
		}
	}
	slices.SortStableFunc(by, func(a, b Part) int { return cmp.Compare(less(b), less(a)) })
	by = by[:min(3, len(by))]
	var names []string
	for _, p := range by {
		names = append(names, fmt.Sprintf("%s %s", parts[p].name, signed(-less(p))))
	}
	if len(names) > 0 {
		text += ": " + strings.Join(names, ", ")
	}
	return text, by
}

// signed writes µs with their sign.
func signed(v float64) string {
	sign := "+"
	if v < 0 {
		sign = "−"
	}
	return sign + fmt.Sprintf("%.1f", math.Abs(v))
}

// Schemes of a picture: for a light page, a dark one, or with the custom properties --faint and
// --muted of the page it stands in.
const (
	LightScheme = "light"
	DarkScheme  = "dark"
	PageScheme  = "page"
)

// CostSVG is the picture of the ladder: a bar for what a request costs each server, stacked by what
// it goes to, the part that a step takes away dashed, and between two bars what that is. title says
// what it is of.
func CostSVG(costs []Cost, scheme, title string) string {
	const width, left, bar, gap, top = 760.0, 140.0, 24.0, 21.0, 46.0
	t := map[string]theme{LightScheme: light, DarkScheme: dark, PageScheme: variables}[scheme]
	d := drawing{theme: t}
	right, most := 650.0, 0.0
	for _, c := range costs {
		most = max(most, c.Micros, c.Mine)
		if c.Here != "" {
			right = 520
		}
	}
	x := func(micros float64) float64 { return left + (right-left)*micros/most }
	d.textOf(13, left, 16, "start", title)
	if right < 600 {
		d.textOf(12, width, 16, "end", "requests per second")
		d.textOf(12, 664, 34, "end", "here")
		d.textOf(12, width, 34, "end", "published")
	}
	y := top
	var said []string
	for i, c := range costs {
		if i > 0 {
			text, by := taken(costs[i-1], c)
			if text != "" {
				d.textOf(12, left, y+14, "start", text)
			}
			for k, p := range by {
				d.bar(left-14-12*float64(len(by)-1-k), y+5, 10, 10, parts[p].fill)
			}
			y += gap
		}
		d.textOf(13, left-8, y+17, "end", c.Name)
		price, beside := fmt.Sprintf("%.1f µs", c.Micros), x(c.Micros)
		if i > 0 && !c.Apart && costs[i-1].Micros > c.Micros {
			if before := x(costs[i-1].Micros); before-beside < 12+7.5*float64(len([]rune(price))) {
				beside = before // no room for it within the dashes
			}
			fmt.Fprintf(&d.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="none" stroke="%s" stroke-dasharray="3 3"/>`+"\n", x(c.Micros), y+0.5, x(costs[i-1].Micros)-x(c.Micros), bar-1, t.muted)
		}
		said = append(said, fmt.Sprintf("%s %.1f µs", c.Name, c.Micros))
		if !c.split() {
			d.bar(left, y, x(c.Micros)-left, bar, t.muted)
		}
		for p, from := Part(0), left; int(p) < Parts; p++ {
			wide := (x(c.Micros) - left) * c.Shares[p]
			if wide > 0 {
				name := fmt.Sprintf("%s: %.2f µs, %.0f%%", parts[p].name, c.Micros*c.Shares[p], 100*c.Shares[p])
				fmt.Fprintf(&d.body, `<g><title>%s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, html.EscapeString(name), from, y, max(0.3, wide-0.8), bar, parts[p].fill)
				if name := parts[p].name; wide > 7*float64(len(name))+4 {
					fmt.Fprintf(&d.body, `<text x="%.1f" y="%.1f" font-size="12" text-anchor="middle" fill="#14181f">%s</text>`, from+wide/2, y+16, name)
				}
				d.body.WriteString("</g>\n")
			}
			from += wide
		}
		if c.Mine > 0 {
			fmt.Fprintf(&d.body, `<g class="mine"><title>%s on this machine: %.1f µs</title>`, html.EscapeString(c.Name), c.Mine)
			d.bar(left, y+bar-4, x(c.Mine)-left, 4, "var(--accent)")
			d.body.WriteString("</g>\n")
		}
		d.textOf(13, beside+6, y+17, "start", price)
		d.textOf(13, 664, y+17, "end", c.Here)
		d.textOf(13, width, y+17, "end", c.Published)
		y += bar
	}
	y += 26
	at := 4.0
	for _, p := range parts {
		long := 32 + 7.2*float64(len(p.name))
		if at+long > width {
			at, y = 4, y+20
		}
		d.bar(at, y-11, 12, 12, p.fill)
		d.textOf(12, at+17, y, "start", p.name)
		at += long
	}
	return d.svg(width, y+10, title+": "+strings.Join(said, ", "))
}

// CostText writes the same picture for a terminal of so many columns, 0 for a file.
func CostText(out io.Writer, costs []Cost, columns int, colour bool) {
	if columns == 0 {
		columns = console.Width
	}
	most, wide := 0.0, 0
	for _, c := range costs {
		most, wide = max(most, c.Micros), max(wide, runewidth.StringWidth(c.Name))
	}
	room := max(10, min(columns, 120)-wide-12)
	paint := func(p Part, cells int) string {
		text := strings.Repeat(string(parts[p].letter), cells)
		if !colour || cells == 0 {
			return text
		}
		return fmt.Sprintf("\x1b[38;5;16;48;5;%dm%s\x1b[0m", parts[p].ansi, text)
	}
	for i, c := range costs {
		if i > 0 {
			if text, _ := taken(costs[i-1], c); text != "" {
				hang := strings.Repeat(" ", wide+2)
				fmt.Fprintln(out, strings.Join(console.Wrap(hang+text, columns, hang), "\n"))
			}
		}
		fmt.Fprintf(out, "%s  ", runewidth.FillRight(c.Name, wide))
		scale, so, drawn := float64(room)*c.Micros/most, 0.0, 0
		if !c.split() {
			fmt.Fprint(out, strings.Repeat("#", int(math.Round(scale))))
		}
		for p := range Part(Parts) {
			so += scale * c.Shares[p]
			cells := int(math.Round(so)) - drawn
			fmt.Fprint(out, paint(p, cells))
			drawn += cells
		}
		fmt.Fprintf(out, " %.1f µs\n", c.Micros)
	}
	line, long := "", 0
	for p := range Part(Parts) {
		n := len(parts[p].name) + 4
		if long+n > columns+2 {
			fmt.Fprintln(out, strings.TrimRight(line, " "))
			line, long = "", 0
		}
		line, long = line+paint(p, 1)+" "+parts[p].name+"  ", long+n
	}
	fmt.Fprintln(out, strings.TrimRight(line, " "))
}
