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

type content struct {
	Document  *results.Document
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

// HTML writes the page: one file, which asks nobody for anything.
func HTML(out io.Writer, d *results.Document) error {
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
	if d.IsLadder() || len(d.Servers) <= 9 {
		add(&c.Charts, progression(d, variables, "Requests per second"))
	}
	add(&c.Charts, ratios(d, variables, "Ratios with their intervals", results.Target, results.Pair, results.Noise))
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
	return form.Execute(out, c)
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
