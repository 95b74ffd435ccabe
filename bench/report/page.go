package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/results"
)

//go:embed page.html
var source string

//go:embed page.css
var style string

var form = template.Must(template.New("page").Parse(source))

// cell is one field of the matrix.
type cell struct {
	Text, Title string
	Share       float64 // of the best in its column, 0 to 1
}

type matrixRow struct {
	Name  string
	Cells []cell
}

// A sentence is what may be said of one ratio.
type sentence struct {
	Stage   string // its chapter, "" for none
	Head    string
	Text    string
	Verdict string
	Class   string // "better", "worse" or "same"
}

// A link leads to a section of the page.
type link struct{ ID, Title string }

type content struct {
	Document  *results.Document
	Contents  []link
	Verdicts  []sentence
	Title     string
	Machine   string
	When      string
	Style     template.CSS
	Theme     template.CSS
	Charts    []template.HTML // at the top
	Latencies []template.HTML
	Columns   []string
	Matrix    []matrixRow
	Tables    []textTable
}

// HTML writes the page: one file, which asks nobody for anything. chapter gives the address of a
// stage's chapter, "" for none.
func HTML(out io.Writer, d *results.Document, chapter func(stage string) string) error {
	shown := view{d}
	c := content{
		Document: d, Title: shown.title(), Machine: shown.machineLine(), When: d.Created.Format("2006-01-02 15:04 UTC"),
		Style: template.CSS(style), Theme: template.CSS(themes()), Tables: shown.tables(),
	}
	add := func(to *[]template.HTML, svg string) {
		if svg != "" {
			*to = append(*to, template.HTML(svg))
		}
	}
	add(&c.Charts, ratios(d, variables, "Ratios with their intervals", results.Step, results.Target, results.Pair, results.Noise))
	if d.IsLadder() || len(d.Servers) <= 9 {
		add(&c.Charts, progression(d, variables, "Requests per second"))
	}
	c.Verdicts = verdicts(d, chapter)
	for _, w := range d.Workloads {
		svg, err := latencies(d, variables, "Latency on "+w.Name, w.Name)
		if err != nil {
			return err
		}
		add(&c.Latencies, svg)
	}
	if len(shown.closed()) > 1 {
		c.fillMatrix(shown)
	}
	for _, section := range []struct {
		there     bool
		id, title string
	}{
		{len(c.Verdicts) > 0, "verdict", "Verdict"}, {len(c.Charts) > 0, "charts", "Charts"}, {len(c.Matrix) > 0, "matrix", "Servers by workloads"},
		{true, "notes", "Notes"}, {len(c.Latencies) > 0, "latency", "Latency"},
	} {
		if section.there {
			c.Contents = append(c.Contents, link{section.id, section.title})
		}
	}
	for i := range c.Tables {
		c.Tables[i].ID = fmt.Sprintf("table-%d", i+1)
	}
	if len(c.Tables) > 0 {
		c.Contents = append(c.Contents, link{c.Tables[0].ID, "Tables"})
	}
	c.Contents = append(c.Contents, link{"machine", "Machine and method"})
	return form.Execute(out, c)
}

// verdicts are what may be said of each step or comparison, in requests per second.
func verdicts(d *results.Document, chapter func(string) string) (all []sentence) {
	said := map[[3]string]bool{}
	for _, r := range d.Ratios {
		key := [3]string{r.Head, r.Base, r.Workload}
		if r.Metric != results.RequestsPerSecond || !r.Ratio.Measured() || r.Kind == results.Noise || r.Kind == results.Total || said[key] {
			continue
		}
		said[key] = true
		all = append(all, sentence{
			Stage: chapter(r.Head), Head: results.Label(r.Head), Text: fmt.Sprintf("beside %s on %s: %s times as many requests per second", results.Label(r.Base), r.Workload, r.Ratio.Format()),
			Verdict: r.Marked(), Class: [...]string{"worse", "same", "better"}[r.Better()+1],
		})
	}
	return all
}

func (c *content) fillMatrix(d view) {
	best := map[string]float64{}
	for _, w := range d.closed() {
		c.Columns = append(c.Columns, w.Name)
	}
	for _, r := range d.Rows {
		best[r.Workload] = max(best[r.Workload], r.RequestsPerSecond.Median)
	}
	for _, s := range d.Servers {
		if d.IsTwin(s.Name) {
			continue
		}
		row := matrixRow{Name: results.Label(s.Name)}
		for _, w := range d.closed() {
			r, ok := d.Row(s.Name, w.Name)
			if !ok {
				row.Cells = append(row.Cells, cell{Text: "–", Title: "not measured"})
				continue
			}
			shown := cell{Text: console.Thousands(r.RequestsPerSecond.Median), Title: fmt.Sprintf("%.2f µs of server CPU, p99 %.0f µs", r.ServerCPUMicros.Median, r.P99Micros.Median)}
			if i := r.RequestsPerSecond; i.Bounded() {
				shown.Title = fmt.Sprintf("%s to %s; %s", console.Thousands(i.Low), console.Thousands(i.High), shown.Title)
			}
			shown.Text += mark(r)
			if top := best[w.Name]; top > 0 {
				shown.Share = r.RequestsPerSecond.Median / top
			}
			row.Cells = append(row.Cells, shown)
		}
		c.Matrix = append(c.Matrix, row)
	}
}

// themes are the variables that charts and page take their colours from.
func themes() string {
	rule := func(t theme, scheme string) string {
		text := fmt.Sprintf("color-scheme:%s;--ink:%s;--paper:%s;--faint:%s;--muted:%s;", scheme, t.ink, t.paper, t.faint, t.muted)
		for i, c := range t.series {
			text += fmt.Sprintf("--s%d:%s;", i, c)
		}
		return text
	}
	return ":root{" + rule(light, "light") + "}\n@media (prefers-color-scheme:dark){:root{" + rule(dark, "dark") + "}}\n"
}
