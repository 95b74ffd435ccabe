package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"

	"github.com/qps-ladder/qps-ladder/bench/report"
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
	Document  *report.Document
	Title     string
	Machine   string
	When      string
	Style     template.CSS
	Theme     template.CSS
	Charts    []template.HTML // at the top
	Latencies []template.HTML
	Columns   []string
	Matrix    []matrixRow
	Tables    []report.Table
}

// HTML writes the page: one file, which asks nobody for anything.
func HTML(out io.Writer, d *report.Document) error {
	c := content{
		Document: d, Title: d.Title(), Machine: d.MachineLine(), When: d.Created.Format("2006-01-02 15:04 UTC"),
		Style: template.CSS(style), Theme: template.CSS(themes()), Tables: d.Tables(),
	}
	add := func(to *[]template.HTML, svg []byte, err error, title string) error {
		if err == nil && svg != nil {
			*to = append(*to, template.HTML(variables.themed(svg, title)))
		}
		return err
	}
	if d.IsLadder() || len(d.Servers) <= 9 {
		svg, err := progression(d)
		if err := add(&c.Charts, svg, err, "Requests per second"); err != nil {
			return err
		}
	}
	svg, err := ratios(d, report.Target, report.Pair, report.Noise)
	if err := add(&c.Charts, svg, err, "Ratios with their intervals"); err != nil {
		return err
	}
	for _, w := range d.Workloads {
		svg, err := latencies(d, w.Name)
		if err := add(&c.Latencies, svg, err, "Latency on "+w.Name); err != nil {
			return err
		}
	}
	if len(d.Workloads) > 1 {
		c.fillMatrix(d)
	}
	return form.Execute(out, c)
}

func (c *content) fillMatrix(d *report.Document) {
	best := map[string]float64{}
	for _, w := range d.Workloads {
		c.Columns = append(c.Columns, w.Name)
	}
	for _, r := range d.Rows {
		best[r.Workload] = max(best[r.Workload], r.RequestsPerSecond.Median)
	}
	for _, s := range d.Servers {
		if d.IsTwin(s.Name) {
			continue
		}
		row := matrixRow{Name: report.Label(s.Name)}
		for _, w := range d.Workloads {
			r, ok := d.Row(s.Name, w.Name)
			if !ok {
				row.Cells = append(row.Cells, cell{Text: "–", Title: "not measured"})
				continue
			}
			each := cell{Text: report.Number(r.RequestsPerSecond.Median), Title: fmt.Sprintf("%.2f µs of server CPU, p99 %.0f µs", r.ServerCPU.Median, r.P99.Median)}
			if i := r.RequestsPerSecond; i.Bounded() {
				each.Title = fmt.Sprintf("%s to %s; %s", report.Number(i.Low), report.Number(i.High), each.Title)
			}
			if r.ClientBound {
				each.Text += "*"
			}
			if len(r.Errors) > 0 {
				each.Text += "!"
			}
			if top := best[w.Name]; top > 0 {
				each.Share = r.RequestsPerSecond.Median / top
			}
			row.Cells = append(row.Cells, each)
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

// Write leaves name.html and name.csv in folder, and for the ladder its
// progression as two SVG files, for light and dark pages. A run that did not
// complete is called name-partial, as in report.Write.
func Write(d *report.Document, folder, name string) (paths []string, err error) {
	if d.Ended != report.Complete {
		name += "-partial"
	}
	write := func(path string, content []byte) {
		if err == nil {
			path = filepath.Join(folder, path)
			if err = os.WriteFile(path, content, 0o644); err == nil {
				paths = append(paths, path)
			}
		}
	}
	var page, figures bytes.Buffer
	if err := HTML(&page, d); err != nil {
		return nil, fmt.Errorf("cannot make the page: %w", err)
	}
	if err := d.CSV(&figures); err != nil {
		return nil, err
	}
	write(name+".html", page.Bytes())
	write(name+".csv", figures.Bytes())
	if d.IsLadder() {
		svg, chartErr := progression(d)
		if chartErr != nil {
			return paths, chartErr
		}
		if svg != nil {
			write(name+"-light.svg", light.themed(svg, "Requests per second of each stage"))
			write(name+"-dark.svg", dark.themed(svg, "Requests per second of each stage"))
		}
	}
	return paths, err
}
