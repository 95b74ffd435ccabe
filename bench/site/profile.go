package site

import (
	"cmp"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/profile"
)

// readProfile reads docs/data/profiles/<stage>.folded: a line that begins with #
// says what it is, the others hold a stack and its time.
func readProfile(root, stage string) (*profile.Outline, error) {
	path := filepath.Join(root, "docs", "data", "profiles", stage+".folded")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("no profile of %s: %w; make docs-refresh records it", stage, err)
	}
	o, total := &profile.Outline{Time: map[string]int64{}}, int64(0)
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if about, ok := strings.CutPrefix(line, "# "); ok {
			o.About = about
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		if i < 0 {
			return nil, fmt.Errorf("%s: %q is no stack with its time", path, line)
		}
		n, err := strconv.ParseInt(line[i+1:], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		o.Time[line[:i]] += n
		total += n
	}
	if total == 0 {
		return nil, fmt.Errorf("%s holds no sample", path)
	}
	return o, nil
}

// writeProfile writes what readProfile reads.
func writeProfile(o *profile.Outline, path string) error {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", o.About)
	for _, stack := range slices.Sorted(maps.Keys(o.Time)) {
		fmt.Fprintf(&out, "%s %d\n", stack, o.Time[stack])
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(out.String()), fs.FileMode(0o644))
}

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
		drawFlame(&out, o)
		out.WriteString("</div></figure>\n")
	}
	return strings.TrimSpace(out.String()), nil
}

type frame struct {
	name     string
	time     int64
	children map[string]*frame
}

func drawFlame(out *strings.Builder, o *profile.Outline) {
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
	root.drawChildren(out, root.time, root.time)
}

// drawChildren draws one level and, inside each frame, the levels below it.
func (f *frame) drawChildren(out *strings.Builder, parent, total int64) {
	const tooNarrow = 0.004 // of the whole
	children := slices.SortedFunc(maps.Values(f.children), func(a, b *frame) int {
		return cmp.Or(cmp.Compare(b.time, a.time), strings.Compare(a.name, b.name))
	})
	for _, c := range children {
		share := float64(c.time) / float64(total)
		if share < tooNarrow {
			continue
		}
		fmt.Fprintf(out, `<div class="fr" style="width:%.2f%%"><span class="%s" title="%s: %.1f%%">%s</span>`,
			100*float64(c.time)/float64(parent), profile.Class(c.name), html.EscapeString(c.name), 100*share, html.EscapeString(frameLabel(c.name)))
		if len(c.children) > 0 {
			out.WriteString(`<div class="row">`)
			c.drawChildren(out, c.time, total)
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
