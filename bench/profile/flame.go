package profile

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
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
	sides, err := s.takeAll(ctx, servers, w, o.step)
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

//go:embed page/page.html
var pageSource string

//go:embed page/page.css
var pageStyle string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// page is what the template is filled with.
type page struct {
	Title    string
	Created  string
	Command  string
	Revision string
	Style    template.CSS
	Script   template.JS
	Figure   template.HTML
}

func newPage(sides [][]*record, revision string) *page {
	first := sides[0][0]
	p := &page{
		Title: harness.ShortName(first.server) + " on " + first.workload, Created: time.Now().UTC().Format("2006-01-02 15:04 MST"),
		Command: strings.Join(append([]string{"ladder"}, os.Args[1:]...), " "), Revision: revision,
		Style: template.CSS(pageStyle + FlameStyle), Script: template.JS(FlameScript),
	}
	if len(sides) == 2 {
		p.Title = fmt.Sprintf("%s and %s on %s", harness.ShortName(first.server), harness.ShortName(sides[1][0].server), first.workload)
	}
	figure := Figure{ID: "flame", Whole: true}
	// What sees more comes first.
	for source := len(sides[0]) - 1; source >= 0; source-- {
		if len(sides) == 2 {
			figure.Graphs = append(figure.Graphs, Difference(graphOf(sides[0][source], true), graphOf(sides[1][source], true)))
		}
		for _, records := range sides {
			figure.Graphs = append(figure.Graphs, graphOf(records[source], false))
		}
	}
	p.Figure = template.HTML(figure.HTML())
	return p
}

func (p *page) write(out io.Writer) error { return pageTemplate.Execute(out, p) }
