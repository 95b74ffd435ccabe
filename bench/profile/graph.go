package profile

import (
	"cmp"
	_ "embed"
	"fmt"
	"html"
	"iter"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// FlameStyle and FlameScript are what a page needs that shows a Figure. The page gives the custom
// properties --page, --text, --quiet, --line, --raised and --accent, and a color-scheme. Without
// the script a figure can be read; with it one can zoom and search.
var (
	//go:embed page/flame.css
	FlameStyle string
	//go:embed page/flame.js
	FlameScript string
)

// A node is a frame with all that was seen below it. Values are nanoseconds per
// request: one in a graph, two in a difference.
type node struct {
	frame    frame
	values   []float64
	children map[frame]*node
	gone     bool // see Graph.MarkGone
}

func newNode(f frame, sides int) *node {
	return &node{frame: f, values: make([]float64, sides), children: map[frame]*node{}}
}

const allKinds = projectCode + 1 // the colour of the root

// add adds a stack, callers first.
func (n *node) add(stack iter.Seq[frame], value float64) {
	n.values[0] += value
	for f := range stack {
		next := n.children[f]
		if next == nil {
			next = newNode(f, 1)
			n.children[f] = next
		}
		next.values[0] += value
		n = next
	}
}

// beside merges two trees into one with a value for each; either may be nil.
func beside(a, b *node) *node {
	out := newNode(cmp.Or(a, b).frame, 2)
	names := map[frame]bool{}
	for side, n := range []*node{a, b} {
		if n != nil {
			out.values[side] = n.values[0]
			for f := range n.children {
				names[f] = true
			}
		}
	}
	for f := range names {
		var of [2]*node
		for side, n := range []*node{a, b} {
			if n != nil {
				of[side] = n.children[f]
			}
		}
		out.children[f] = beside(of[0], of[1])
	}
	return out
}

func (n *node) sum() (sum float64) {
	for _, v := range n.values {
		sum += v
	}
	return sum
}

// widest are the frames that n calls, the widest first.
func (n *node) widest() []*node {
	return slices.SortedFunc(maps.Values(n.children), func(a, b *node) int {
		return cmp.Or(cmp.Compare(b.sum(), a.sum()), strings.Compare(a.frame.name, b.frame.name), cmp.Compare(a.frame.kind, b.frame.kind))
	})
}

// all are n and what is below it, and whether to go on.
func (n *node) all(yield func(*node) bool) bool {
	if !yield(n) {
		return false
	}
	for _, c := range n.children {
		if !c.all(yield) {
			return false
		}
	}
	return true
}

// A Graph is one flame graph: a frame is as wide as the time in it, and callers are above what they
// call.
type Graph struct {
	Name   string // what it shows, such as "stage2"
	View   string // graphs with the same are shown together; Name when it is ""
	Source string // what recorded it; "" in a figure with a single source
	About  string // what was recorded, in a line

	sides []string  // the names of the two that a difference compares
	step  []float64 // nanoseconds per request that one sample stands for, of each side; 0 when unknown
	root  *node
}

// graphOf is the graph of a record. With cut, stacks begin with their category: two stages do the
// same things in differently named functions, and only what is below these is comparable.
func graphOf(r *record, cut bool) *Graph {
	g := &Graph{Name: harness.ShortName(r.server), Source: r.source, About: strings.Join(r.about()[:3], "; "), root: newNode(frame{name: "all", kind: allKinds}, 1)}
	g.step = []float64{r.outcome.cpuNanos() / float64(r.samples)}
	for _, s := range r.stacks {
		frames := s.frames
		if cut {
			c, inside := decide(frames)
			frames = append(slices.Clone(frames[:inside]), frame{name: c.String(), kind: c.kind()})
		}
		g.root.add(backward(frames), r.perRequest(s.weight))
	}
	return g
}

func backward(frames []frame) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		for _, f := range slices.Backward(frames) {
			if !yield(f) {
				return
			}
		}
	}
}

// counted is how many samples an outline says that it was made of.
var counted = regexp.MustCompile(`([\d,]+) samples`)

// Graph is the graph of an outline. Its stacks share the µs of server CPU that a request was
// measured to cost.
func (o *Outline) Graph(name string, micros float64) *Graph {
	g := &Graph{Name: name, About: o.About, root: newNode(frame{name: "all", kind: allKinds}, 1), step: []float64{0}}
	var whole int64
	for _, time := range o.Time {
		whole += time
	}
	for _, stack := range slices.Sorted(maps.Keys(o.Time)) { // so that the same profile makes the same sums
		time := o.Time[stack]
		g.root.add(func(yield func(frame) bool) {
			for name := range strings.SplitSeq(stack, ";") {
				if !yield(frame{name, kindOf(name, strings.HasPrefix(name, inKernel))}) {
					return
				}
			}
		}, 1e3*micros*float64(time)/float64(whole))
	}
	if m := counted.FindStringSubmatch(o.About); m != nil {
		if n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", "")); err == nil && n > 0 {
			g.step[0] = 1e3 * micros / float64(n)
		}
	}
	return g
}

// Difference compares two graphs, frame by frame.
func Difference(a, b *Graph) *Graph {
	return &Graph{
		Name: "difference", Source: a.Source, root: beside(a.root, b.root), sides: []string{a.Name, b.Name}, step: []float64{a.step[0], b.step[0]},
		About: fmt.Sprintf("%s %.2f µs of server CPU per request, %s %.2f µs; a frame is as wide as both together", a.Name, a.root.values[0]/1e3, b.Name, b.root.values[0]/1e3),
	}
}

// MarkGone outlines the frames whose function is nowhere in after, and returns each with its share
// of the whole, the largest first. What is below least is left out, and so is what such a frame
// calls, system calls apart.
func (g *Graph) MarkGone(after *Graph, least float64) (names []string, shares []float64) {
	left := map[string]bool{}
	after.root.all(func(n *node) bool { left[n.frame.name] = true; return true })
	found := map[string]float64{}
	var look func(n *node, within bool)
	look = func(n *node, within bool) {
		for _, c := range n.widest() {
			gone := !left[c.frame.name] && c.sum() >= least*g.root.sum() && (!within || c.frame.kind == kernelCode)
			if gone {
				c.gone = true
				found[c.frame.name] += c.sum() / g.root.sum()
			}
			look(c, within || gone)
		}
	}
	look(g.root, false)
	names = slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(cmp.Compare(found[b], found[a]), strings.Compare(a, b))
	})
	for _, name := range names {
		shares = append(shares, found[name])
	}
	return names, shares
}

// tooNarrow is the share of a graph below which a frame cannot be seen before one zooms in.
const tooNarrow = 0.001

// A Figure is graphs of which a reader chooses. Without JavaScript all of them are shown.
type Figure struct {
	ID      string                       // of the element; the state of what is shown follows it in the address
	Caption string                       // HTML
	Graphs  []*Graph                     // in the order of their buttons
	Code    func(function string) string // the address of a function's code, "" for none; may be nil
	Whole   bool                         // the page is about nothing else
}

// HTML is the figure element.
func (f *Figure) HTML() string {
	var out strings.Builder
	class := "flame"
	if f.Whole {
		class += " whole"
	}
	fmt.Fprintf(&out, `<figure class="%s" id="%s">`, class, html.EscapeString(f.ID))
	for _, g := range f.Graphs {
		f.graph(&out, g)
	}
	if f.Caption != "" {
		out.WriteString("<figcaption>" + f.Caption + "</figcaption>")
	}
	out.WriteString("</figure>\n")
	return out.String()
}

func (f *Figure) graph(out *strings.Builder, g *Graph) {
	step := make([]string, len(g.step))
	for i, s := range g.step {
		step[i] = number(s)
	}
	fmt.Fprintf(out, `<div class="graph" data-name="%s" data-view="%s" data-source="%s" data-sides="%s" data-step="%s">`, html.EscapeString(g.Name), html.EscapeString(cmp.Or(g.View, g.Name)),
		html.EscapeString(g.Source), html.EscapeString(strings.Join(g.sides, ",")), strings.Join(step, " "))
	fmt.Fprintf(out, `<p class="about">%s</p>`, html.EscapeString(g.About))
	out.WriteString(`<ul class="legend">`)
	for _, entry := range g.legend() {
		fmt.Fprintf(out, `<li><i class="%s"></i>%s</li>`, entry[0], html.EscapeString(entry[1]))
	}
	fmt.Fprintf(out, `</ul><div class="frames" tabindex="0" role="group" aria-label="Flame graph, %s: callers are above what they call, width is CPU time">`, html.EscapeString(g.Name))
	f.frame(out, g, g.root, 1)
	out.WriteString("</div></div>\n")
}

// legend are classes of frames, and what each says.
func (g *Graph) legend() [][2]string {
	if len(g.sides) == 2 {
		return [][2]string{{"grew", "more in " + g.sides[1]}, {"shrank", "less in " + g.sides[1]}, {"same", "no difference that these samples can tell"}}
	}
	return [][2]string{{"kernel", "Linux kernel"}, {"runtime", "Go's runtime"}, {"library", "Go's library and modules"}, {"project", "this project"}}
}

var kindClasses = [...]string{kernelCode: "kernel", runtimeCode: "runtime", libraryCode: "library", projectCode: "project", allKinds: "all"}

// frame writes one frame and, below it, those that it calls, the widest first. share is its width
// as a part of the frame above it.
func (f *Figure) frame(out *strings.Builder, g *Graph, n *node, share float64) {
	thin, class, style := "", kindClasses[n.frame.kind], ""
	if n.sum() < tooNarrow*g.root.sum() {
		thin = " thin"
	}
	title := fmt.Sprintf("%s: %s", n.frame.name, percent(n.sum()/g.root.sum()))
	if len(n.values) == 2 {
		class, style = g.change(n)
		title = fmt.Sprintf("%s: %.2f and %.2f µs", n.frame.name, n.values[0]/1e3, n.values[1]/1e3)
	}
	if n.gone {
		class += " gone"
	}
	values := make([]string, len(n.values))
	for i, v := range n.values {
		values[i] = number(v)
	}
	element, href := "span", ""
	if f.Code != nil {
		if to := f.Code(n.frame.name); to != "" {
			element, href = "a", ` href="`+html.EscapeString(to)+`"`
		}
	}
	fmt.Fprintf(out, `<div class="fr%s" style="width:%.2f%%"><%s%s class="%s"%s data-v="%s" title="%s">%s</%s>`, thin, 100*share, element, href, class, style,
		strings.Join(values, " "), html.EscapeString(title), html.EscapeString(frameLabel(n.frame.name)), element)
	if len(n.children) > 0 {
		out.WriteString(`<div class="row">`)
		for _, c := range n.widest() {
			f.frame(out, g, c, c.sum()/n.sum())
		}
		out.WriteString(`</div>`)
	}
	out.WriteString(`</div>`)
}

// change is the class and style of a frame of a difference. It counts when it is past what samples
// scatter: twice the standard error of both counts together.
func (g *Graph) change(n *node) (class, style string) {
	a, b := n.values[0], n.values[1]
	if math.Abs(b-a) <= 2*math.Sqrt(a*g.step[0]+b*g.step[1]) {
		return "same", ""
	}
	class = "grew"
	if b < a {
		class = "shrank"
	}
	return class, fmt.Sprintf(` style="--by:%.0f%%"`, 20+60*math.Abs(b-a)/max(a, b))
}

// number writes a value with three digits, which is what samples know.
func number(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// frameLabel is a frame's name without its folder and decoration.
func frameLabel(name string) string {
	if call, ok := strings.CutPrefix(name, inKernel); ok {
		return call
	}
	return plainName(name)
}

// SVG draws the graph as a picture that stands alone: what can be seen before one zooms in.
func (g *Graph) SVG() string {
	const width, step, letter, seen = 960.0, 18, 6.7, 0.004
	var out strings.Builder
	depth := 0
	var draw func(within *node, x float64, level int)
	draw = func(within *node, x float64, level int) {
		for _, n := range within.widest() {
			share := n.sum() / g.root.sum()
			if share < seen {
				continue
			}
			w := width * share
			depth = max(depth, level+1)
			fmt.Fprintf(&out, `<g class="%s"><title>%s: %s</title><rect x="%.1f" y="%d" width="%.1f" height="%d"/>`,
				kindClasses[n.frame.kind], html.EscapeString(n.frame.name), percent(share), x, level*step, w-0.8, step-1)
			label := []rune(frameLabel(n.frame.name))
			if fits := int((w - 5) / letter); fits < len(label) {
				label = append(label[:max(fits-1, 0)], '…')
			}
			if len(label) > 1 {
				fmt.Fprintf(&out, `<text x="%.1f" y="%d">%s</text>`, x+3, level*step+13, html.EscapeString(string(label)))
			}
			out.WriteString("</g>\n")
			draw(n, x, level+1)
			x += w
		}
	}
	draw(g.root, 0, 0)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img" aria-label="%s">`+"\n"+
		`<style>.kernel{fill:#e8b04b}.runtime{fill:#b9a3e0}.library{fill:#a9c7de}.project{fill:#97cfa0}text{fill:#16181c;font:11px ui-monospace,Menlo,Consolas,monospace}</style>`+"\n%s</svg>\n",
		width, depth*step, html.EscapeString(g.About), out.String())
}
