package profile

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Flame records a stage, or two and what differs, and writes a flame graph of times per request and
// a pprof profile for each profiler (ProfilerBoth for all that work).
func Flame(ctx context.Context, o Options, stages []string, profiler string) (*FlameFiles, error) {
	l, servers, w, err := o.prepare(ctx, stages)
	if err != nil {
		return nil, err
	}
	s, err := newSampler(ctx, l, profiler, o.Duration, o.Tell)
	if err != nil {
		return nil, err
	}
	defer s.close()
	sides, err := s.takeAll(ctx, servers, w, o.Tell)
	if err != nil {
		return nil, err
	}
	return l.writeFlame(o.Out, sides)
}

// FlameOfRunning does the same for a server that runs already and that somebody else sends requests
// to. Its admin listener is at address.
func FlameOfRunning(ctx context.Context, o Options, address string) (*FlameFiles, error) {
	l, err := o.lab()
	if err != nil {
		return nil, err
	}
	r, err := takeRunning(ctx, address, cmp.Or(o.Duration, goLength))
	if err != nil {
		return nil, err
	}
	return l.writeFlame(o.Out, [][]*record{{r}})
}

// FlameFiles is what was recorded and written, as `ladder flame` writes it as JSON: the table that
// stands beside the graphs, of what sees most, and the files.
type FlameFiles struct {
	header
	Where    *WhereTable `json:"where"`
	Page     string      `json:"page"`
	Profiles []string    `json:"profiles"` // for go tool pprof: of each server and profiler
}

// writeFlame writes the page and the profiles, and says what to do with them.
// A side has a record for each source.
func (l *lab) writeFlame(out io.Writer, sides [][]*record) (*FlameFiles, error) {
	names := []string{}
	for _, records := range sides {
		names = append(names, harness.ShortName(records[0].server))
	}
	workload := sides[0][0].workload
	files := &FlameFiles{header: newHeader("flame"), Where: newWhereTable(sides)}
	files.Where.text(out, console.Columns(out))
	page := newPage(sides, run.Revision(l.root))
	files.Page = filepath.Join(l.out, fmt.Sprintf("flame-%s-%s.html", strings.Join(names, "-"), workload))
	if err := writeFile(files.Page, page.write); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "\n%s\n  open it in a browser\n", files.Page)
	for _, records := range sides {
		for _, r := range records {
			path := filepath.Join(l.out, fmt.Sprintf("profile-%s-%s-%s.pb.gz", harness.ShortName(r.server), workload, r.tool()))
			if err := writeFile(path, r.profile.Write); err != nil {
				return nil, err
			}
			files.Profiles = append(files.Profiles, path)
			fmt.Fprintf(out, "%s\n  go tool pprof -http=: %s\n", path, path)
		}
	}
	return files, nil
}

// tool is a word for the source, for the name of a file.
func (r *record) tool() string {
	if strings.HasPrefix(r.source, "perf") {
		return "perf"
	}
	return "go"
}

// A node is a frame with all that was seen above it. Values are nanoseconds per
// request: one in a graph, two in a difference.
type node struct {
	frame    frame
	values   []float64
	children map[frame]*node
}

func newNode(f frame, sides int) *node {
	return &node{frame: f, values: make([]float64, sides), children: map[frame]*node{}}
}

const allKinds = projectCode + 1 // the colour of the root

// treeOf merges records into one tree, callers first, with a value for each
// record. With cut, stacks begin with their category: two stages do the same
// things in differently named functions, and only below these are comparable.
func treeOf(cut bool, records ...*record) *node {
	root := newNode(frame{name: "all", kind: allKinds}, len(records))
	for side, r := range records {
		for _, s := range r.stacks {
			value := r.perRequest(s.weight)
			at := root
			at.values[side] += value
			frames := s.frames
			if cut {
				c, inside := decide(frames)
				frames = append(slices.Clone(frames[:inside]), frame{name: c.String(), kind: c.kind()})
			}
			for _, f := range slices.Backward(frames) {
				next := at.children[f]
				if next == nil {
					next = newNode(f, len(records))
					at.children[f] = next
				}
				next.values[side] += value
				at = next
			}
		}
	}
	return root
}

//go:embed page/page.html
var pageSource string

//go:embed page/page.css
var pageStyle string

//go:embed page/page.js
var pageScript string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// page is what the template is filled with.
type page struct {
	Title    string
	Created  string
	Command  string
	Revision string
	Style    template.CSS
	Script   template.JS
	Data     template.JS

	data  pageData
	index map[frame]int
}

// pageData is what page.js reads.
type pageData struct {
	Names [][2]any   `json:"names"` // name and kind
	Views []pageView `json:"views"`
}

type pageView struct {
	Title  string    `json:"title"`
	Source string    `json:"source"`
	About  string    `json:"about"`
	Labels []string  `json:"labels,omitempty"` // of the two sides of a difference
	Step   []float64 `json:"step"`             // nanoseconds per request that one sample stands for, of each side
	Tree   any       `json:"tree"`
}

func newPage(sides [][]*record, revision string) *page {
	first := sides[0][0]
	p := &page{
		Title: harness.ShortName(first.server) + " on " + first.workload, Created: time.Now().UTC().Format("2006-01-02 15:04 MST"),
		Command: strings.Join(append([]string{"ladder"}, os.Args[1:]...), " "), Revision: revision,
		Style: template.CSS(pageStyle), Script: template.JS(pageScript), index: map[frame]int{},
	}
	if len(sides) == 2 {
		p.Title = fmt.Sprintf("%s and %s on %s", harness.ShortName(first.server), harness.ShortName(sides[1][0].server), first.workload)
	}
	// What sees more comes first.
	for source := len(sides[0]) - 1; source >= 0; source-- {
		if len(sides) == 2 {
			p.add(sides[0][source], sides[1][source])
		}
		for _, records := range sides {
			p.add(records[source])
		}
	}
	return p
}

// add adds a graph of one record, or the difference of two.
func (p *page) add(records ...*record) {
	r := records[0]
	v := pageView{Title: harness.ShortName(r.server), Source: r.source, Tree: p.encode(treeOf(len(records) > 1, records...))}
	about := r.about()
	v.About = strings.Join([]string{about[0], about[1], about[2]}, "; ")
	if len(records) == 2 {
		v.Title = "difference"
		v.Labels = []string{harness.ShortName(r.server), harness.ShortName(records[1].server)}
		v.About = fmt.Sprintf("%s: %s %.2f µs of server CPU per request, %s %.2f µs", r.source, v.Labels[0], r.outcome.cpuMicros(), v.Labels[1], records[1].outcome.cpuMicros())
	}
	for _, r := range records {
		v.Step = append(v.Step, r.outcome.cpuNanos()/float64(r.samples))
	}
	p.data.Views = append(p.data.Views, v)
}

// encode turns a tree into arrays, which are a third of the size of objects.
func (p *page) encode(n *node) []any {
	i, ok := p.index[n.frame]
	if !ok {
		i = len(p.data.Names)
		p.index[n.frame] = i
		p.data.Names = append(p.data.Names, [2]any{n.frame.name, n.frame.kind})
	}
	values := make([]float64, len(n.values))
	for side, v := range n.values {
		values[side] = math.Round(v*100) / 100
	}
	out := []any{i, values}
	if len(n.children) > 0 {
		// By name, so that a frame has its place wherever it appears.
		children := slices.SortedFunc(maps.Values(n.children), func(a, b *node) int {
			return cmp.Or(strings.Compare(a.frame.name, b.frame.name), cmp.Compare(a.frame.kind, b.frame.kind))
		})
		inner := make([]any, len(children))
		for c, child := range children {
			inner[c] = p.encode(child)
		}
		out = append(out, inner)
	}
	return out
}

func (p *page) write(out io.Writer) error {
	// json.Marshal spells < as \u003c, so that no name can end the element it stands in.
	b, err := json.Marshal(p.data)
	if err != nil {
		return err
	}
	p.Data = template.JS(b)
	return pageTemplate.Execute(out, p)
}
