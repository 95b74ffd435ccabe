package profile

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
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

	"github.com/spf13/cobra"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func newFlame() *cobra.Command {
	var c common
	var source, running string
	cmd := &cobra.Command{
		Use:   "flame stage [stage]",
		Short: "Draw a flame graph of a stage, or of two and what differs (make flame)",
		Long: `Record a stage under load and write a flame graph: one HTML file that needs
nothing else. Times are per request, so that stages can be compared although the
faster one does more in the same time. The same data is kept as a pprof profile
for go tool pprof.

With two stages it holds a graph of each and one of the difference.

With --admin and no stage it records a server that runs already, and that somebody
else sends requests to.

There are two sources. The CPU profile of Go works everywhere; perf sees into the
kernel as well, where it is installed and allowed.`,
		Example: "  ladder flame 3 --workload browser\n  ladder flame 2 3\n  ladder flame --admin 127.0.0.1:9090",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case running != "" && len(args) > 0:
				return errors.New("--admin names a server that runs: leave the stage away")
			case running != "" && source != sourceBoth && source != sourceGo:
				return errors.New("--admin records with the profiler in the server: --source perf and auto are for a stage that this command starts")
			case running == "" && (len(args) < 1 || len(args) > 2):
				return errors.New("flame needs one stage, or two to compare: for example ladder flame 3, or ladder flame 2 3")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := workload.ByName(c.workload)
			if err != nil {
				return err
			}
			l, err := c.lab()
			if err != nil {
				return err
			}
			if running != "" {
				r, err := takeRunning(cmd.Context(), running, cmp.Or(c.seconds, goLength))
				if err != nil {
					return err
				}
				return l.writeFlame(cmd.OutOrStdout(), [][]*record{{r}})
			}
			servers, err := l.stages(cmd, args)
			if err != nil {
				return err
			}
			if len(servers) == 2 && servers[0].Name == servers[1].Name {
				return fmt.Errorf("%s differs from itself by noise only: choose two stages, or name it once", servers[0].Name)
			}
			tell := teller(cmd)
			s, err := newSampler(cmd.Context(), l, source, c.seconds, tell)
			if err != nil {
				return err
			}
			defer s.close()
			sides, err := s.takeAll(cmd.Context(), servers, w, tell)
			if err != nil {
				return err
			}
			return l.writeFlame(cmd.OutOrStdout(), sides)
		},
	}
	c.flags(cmd, "3s with perf, 5s with Go")
	cmd.Flags().StringVar(&source, "source", sourceBoth, "go, perf, auto (the better one), or both")
	cmd.Flags().StringVar(&running, "admin", "", "admin listener of a server that runs already")
	return cmd
}

// writeFlame writes the page and the profiles, and says what to do with them.
// A side has a record for each source.
func (l *lab) writeFlame(out io.Writer, sides [][]*record) error {
	names := []string{}
	for _, records := range sides {
		names = append(names, short(records[0].server))
	}
	workload := sides[0][0].workload
	newWhereTable(sides).text(out, columnsOf(out))
	page := newPage(sides, run.Revision(l.root))
	path := filepath.Join(l.out, fmt.Sprintf("flame-%s-%s.html", strings.Join(names, "-"), workload))
	if err := writeFile(path, page.write); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\n  open it in a browser\n", path)
	for _, records := range sides {
		for _, r := range records {
			path := filepath.Join(l.out, fmt.Sprintf("profile-%s-%s-%s.pb.gz", short(r.server), workload, r.tool()))
			if err := writeFile(path, r.profile.Write); err != nil {
				return err
			}
			fmt.Fprintf(out, "%s\n  go tool pprof -http=: %s\n", path, path)
		}
	}
	return nil
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
		Title: short(first.server) + " on " + first.workload, Created: time.Now().UTC().Format("2006-01-02 15:04 MST"),
		Command: strings.Join(append([]string{"ladder"}, os.Args[1:]...), " "), Revision: revision,
		Style: template.CSS(pageStyle), Script: template.JS(pageScript), index: map[frame]int{},
	}
	if len(sides) == 2 {
		p.Title = fmt.Sprintf("%s and %s on %s", short(first.server), short(sides[1][0].server), first.workload)
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
	v := pageView{Title: short(r.server), Source: r.source, Tree: p.encode(treeOf(len(records) > 1, records...))}
	about := r.about()
	v.About = strings.Join([]string{about[0], about[1], about[2]}, "; ")
	if len(records) == 2 {
		v.Title = "difference"
		v.Labels = []string{short(r.server), short(records[1].server)}
		v.About = fmt.Sprintf("%s: %s %.2f µs of server CPU per request, %s %.2f µs", r.source, v.Labels[0], r.outcome.cpu()/1e3, v.Labels[1], records[1].outcome.cpu()/1e3)
	}
	for _, r := range records {
		v.Step = append(v.Step, r.outcome.cpu()/float64(r.samples))
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
