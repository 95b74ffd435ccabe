package site

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/profile"
)

// whereTable shows where the CPU time of a request goes, stage by stage.
func (b *builder) whereTable(stages ...string) (string, error) {
	w, err := profile.ReadWhere(filepath.Join(b.root, "docs", "data", "where.json"))
	if err != nil {
		return "", fmt.Errorf("%w; make docs-refresh measures it", err)
	}
	head := []string{"µs of server CPU per request on hello"}
	var columns []int
	for _, s := range stages {
		i := slices.IndexFunc(w.Servers, func(x profile.WhereServer) bool { return x.Server == b.results.server(s) })
		if i < 0 {
			return "", fmt.Errorf("where.json has no %s", s)
		}
		columns = append(columns, i)
		head = append(head, html.EscapeString(s))
	}
	g := newGrid("numbers where", head...)
	const tooSmall = 0.002
	for r, row := range w.Servers[columns[0]].Rows {
		cells, any := []string{html.EscapeString(row.Category)}, false
		for _, i := range columns {
			c := w.Servers[i].Rows[r]
			if c.Share < tooSmall {
				cells = append(cells, "–")
				continue
			}
			any = true
			cells = append(cells, fmt.Sprintf(`<span title="for nothing, it would bring %.0f%% more requests at most">%.1f <small>%.0f%%</small></span>`, 100*c.Ceiling, c.CPUMicros, 100*c.Share))
		}
		if any {
			g.row(cells...)
		}
	}
	cells := []string{"<strong>all</strong>"}
	for _, i := range columns {
		cells = append(cells, fmt.Sprintf("<strong>%.1f</strong>", w.Servers[i].CPUMicros))
	}
	g.row(cells...)
	return g.String() + fmt.Sprintf(`<p class="measured">The whole is the kernel's account of the process, the parts are shares of samples, by %s. <code>make where</code></p>`, html.EscapeString(w.Source)), nil
}

// flame draws the profiles of one or two stages as flame graphs: width is CPU
// time, callers are above what they call.
func (b *builder) flame(stages ...string) (string, error) {
	var out strings.Builder
	for _, s := range stages {
		o, err := readProfile(b.root, b.results.short(b.results.server(s)))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, `<figure class="flame"><figcaption>%s</figcaption>`, html.EscapeString(o.About))
		out.WriteString(`<div class="frames" tabindex="0">`)
		root := frameTree(o)
		root.draw(&out, root)
		out.WriteString("</div></figure>\n")
	}
	return strings.TrimSpace(out.String()), nil
}

// frame is one function of a flame graph, with what it calls.
type frame struct {
	name     string
	time     int64 // with what it calls
	children map[string]*frame
}

func frameTree(o *profile.Outline) *frame {
	root := &frame{children: map[string]*frame{}}
	for stack, n := range o.Time {
		root.time += n
		at := root
		for name := range strings.SplitSeq(stack, ";") {
			next := at.children[name]
			if next == nil {
				next = &frame{name: name, children: map[string]*frame{}}
				at.children[name] = next
			}
			next.time += n
			at = next
		}
	}
	return root
}

// tooNarrow says whether a frame is not worth drawing in the graph of root.
func (f *frame) tooNarrow(root *frame) bool { return float64(f.time) < 0.004*float64(root.time) }

// draw draws what f calls and, inside each frame, the levels below it.
func (f *frame) draw(out *strings.Builder, root *frame) {
	for _, c := range slices.SortedFunc(maps.Values(f.children), func(a, b *frame) int {
		return cmp.Or(cmp.Compare(b.time, a.time), strings.Compare(a.name, b.name))
	}) {
		if c.tooNarrow(root) {
			continue
		}
		fmt.Fprintf(out, `<div class="fr" style="width:%.2f%%"><span class="%s" title="%s: %.1f%%">%s</span>`,
			100*float64(c.time)/float64(f.time), profile.Class(c.name), html.EscapeString(c.name), 100*float64(c.time)/float64(root.time), html.EscapeString(frameLabel(c.name)))
		if len(c.children) > 0 {
			out.WriteString(`<div class="row">`)
			c.draw(out, root)
			out.WriteString(`</div>`)
		}
		out.WriteString(`</div>`)
	}
}

// frameLabel is a frame's name without its folder and decoration.
func frameLabel(name string) string {
	if call, ok := strings.CutPrefix(name, "[kernel] "); ok {
		return call
	}
	name = strings.TrimPrefix(name[strings.LastIndexByte(name, '/')+1:], "main.")
	return strings.NewReplacer("(*", "", ")", "").Replace(name)
}
