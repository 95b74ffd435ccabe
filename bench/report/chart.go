// Package page makes what people look at: charts as SVG, and a page that holds
// all of a run and asks nobody for anything.
package page

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"regexp"
	"strconv"
	"strings"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/report"
	"github.com/qps-ladder/qps-ladder/bench/stats"
)

// Charts are drawn in colours that stand for others: themed puts in the ones of
// a theme, or names of CSS variables, so that one chart suits light and dark.
func series(i int) color.Color { return color.NRGBA{R: 1, G: 0, B: uint8(i % palette), A: 255} }

var (
	faint = color.NRGBA{R: 1, G: 1, B: 0, A: 255} // grid lines
	muted = color.NRGBA{R: 1, G: 1, B: 1, A: 255} // what is not ours
	ink   = color.NRGBA{R: 1, G: 1, B: 2, A: 255} // black is left out of the SVG where it fills
)

// palette is how many colours there are for servers.
const palette = 10

// theme gives the colours; ink is that of text and axes.
type theme struct {
	ink, paper, faint, muted string
	series                   [palette]string
}

var (
	light = theme{ink: "#1f2328", paper: "#ffffff", faint: "#d8dee4", muted: "#8c959f",
		series: [palette]string{"#6e7781", "#0969da", "#8250df", "#bf3989", "#bc4c00", "#1a7f37", "#9a6700", "#0b7285", "#cf222e", "#4d2d00"}}
	dark = theme{ink: "#e6edf3", paper: "#0d1117", faint: "#30363d", muted: "#8b949e",
		series: [palette]string{"#a2abb4", "#58a6ff", "#bc8cff", "#f778ba", "#ffa657", "#56d364", "#e3b341", "#56d4dd", "#ff7b72", "#d2a679"}}
	// variables leaves the choice to the page.
	variables = func() theme {
		t := theme{ink: "currentColor", paper: "none", faint: "var(--faint)", muted: "var(--muted)"}
		for i := range t.series {
			t.series[i] = fmt.Sprintf("var(--s%d)", i)
		}
		return t
	}()
)

var (
	family = regexp.MustCompile(`font-family:[^;]*;`)
	size   = regexp.MustCompile(`<svg width="([0-9.]+)pt" height="([0-9.]+)pt"`)
)

// themed puts a theme's colours into a chart. It was laid out with the widths of
// Liberation Sans, which Arial, Arimo and Helvetica share.
func (t theme) themed(svg []byte, title string) []byte {
	text := string(svg)
	if at := strings.Index(text, "<svg"); at >= 0 {
		text = text[at:]
	}
	text = family.ReplaceAllString(text, "font-family:Arial,Liberation Sans,Arimo,Helvetica,sans-serif;fill:"+t.ink+";")
	text = strings.ReplaceAll(text, "#000000", t.ink)
	for i, c := range t.series {
		text = strings.ReplaceAll(text, fmt.Sprintf("#0100%02x", i), c)
	}
	text = strings.ReplaceAll(text, "#010100", t.faint)
	text = strings.ReplaceAll(text, "#010101", t.muted)
	text = strings.ReplaceAll(text, "#010102", t.ink)
	text = size.ReplaceAllString(text, `<svg role="img" width="${1}" height="${2}"`)
	text = strings.Replace(text, ">\n<g", ">\n<title>"+escape(title)+"</title>\n"+t.background()+"<g", 1)
	return []byte(text)
}

// background is for charts that stand alone, on a page of who knows what colour.
func (t theme) background() string {
	if t.paper == "none" {
		return ""
	}
	return `<rect width="100%" height="100%" fill="` + t.paper + `"/>` + "\n"
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

func sans(size float64) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
}

// newPlot is an empty chart with room for text, and no background.
func newPlot(title, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.Text, p.Y.Label.Text = title, y
	p.Title.Padding = vg.Points(10)
	for _, style := range []*draw.TextStyle{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font = sans(11)
	}
	p.Title.TextStyle.Font.Size = vg.Points(13)
	p.Y.LineStyle.Width = 0
	p.Y.Tick.LineStyle.Width = 0
	p.X.Tick.LineStyle.Width = 0
	return p
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Width = 0
	g.Horizontal.Color = faint
	g.Horizontal.Dashes = nil
	g.Horizontal.Width = vg.Points(0.6)
	return g
}

// canvas draws plots beside each other, the first as wide as share says.
func canvas(width, height float64, share float64, plots ...*plot.Plot) ([]byte, error) {
	c := vgsvg.New(vg.Points(width), vg.Points(height))
	area := draw.New(c)
	if len(plots) == 1 {
		plots[0].Draw(draw.Crop(area, 2, -14, 2, -2))
	} else {
		cut := vg.Points(width * share)
		plots[0].Draw(draw.Crop(area, 2, cut-vg.Points(width)-10, 2, -2))
		plots[1].Draw(draw.Crop(area, cut+10, -4, 2, -2))
	}
	var out bytes.Buffer
	_, err := c.WriteTo(&out)
	return out.Bytes(), err
}

// thousands labels an axis of counts.
func thousands(p *plot.Plot) {
	base := plot.DefaultTicks{}
	p.Y.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		ticks := base.Ticks(low, high)
		kept := ticks[:0]
		for _, t := range ticks {
			if t.Label != "" {
				if t.Value != 0 {
					t.Label = strconv.FormatFloat(t.Value/1000, 'f', -1, 64) + " K"
				}
				kept = append(kept, t)
			}
		}
		return kept
	})
}

// bars draws one bar for each value, with its interval. A NaN leaves a gap with a dash.
func bars(p *plot.Plot, names []string, values []stats.Interval, fill func(i int) color.Color, label func(i int) string) error {
	labels := plotter.XYLabels{}
	for i, v := range values {
		// A bar each: a chart of bars has one colour.
		height := v.Median
		if math.IsNaN(height) {
			height = 0
		}
		bar, err := plotter.NewBarChart(plotter.Values{height}, vg.Points(30))
		if err != nil {
			return err
		}
		bar.XMin, bar.Color, bar.LineStyle.Width = float64(i), fill(i), 0
		p.Add(bar)
		top := height
		if v.Bounded() {
			errors, err := plotter.NewYErrorBars(interval{{float64(i), v}})
			if err != nil {
				return err
			}
			errors.LineStyle.Width = vg.Points(1.2)
			p.Add(errors)
			top = v.High
		}
		labels.XYs = append(labels.XYs, plotter.XY{X: float64(i), Y: top})
		labels.Labels = append(labels.Labels, label(i))
	}
	text, err := plotter.NewLabels(labels)
	if err != nil {
		return err
	}
	for i := range text.TextStyle {
		text.TextStyle[i].Font = sans(10.5)
		text.TextStyle[i].XAlign = draw.XCenter
	}
	text.Offset = vg.Point{Y: vg.Points(4)}
	p.Add(text)
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.6, float64(len(values))-0.4
	p.Y.Min = 0
	p.Y.Max *= 1.12
	return nil
}

// interval is a list of figures with bounds, as the plotters want it.
type interval []struct {
	x float64
	v stats.Interval
}

func (l interval) Len() int                { return len(l) }
func (l interval) XY(i int) (x, y float64) { return l[i].x, l[i].v.Median }
func (l interval) YError(i int) (low, up float64) {
	return l[i].v.Median - l[i].v.Low, l[i].v.High - l[i].v.Median
}

var leading = regexp.MustCompile(`^[0-9.]+`)

// progression is the ladder as bars: what was measured here, and beside it, on a
// scale of its own, what was published for another machine.
func progression(d *report.Document) ([]byte, error) {
	if len(d.Workloads) == 0 {
		return nil, nil
	}
	first := d.Workloads[0].Name
	var names, stages []string
	var values, published []stats.Interval
	for _, s := range d.Servers {
		r, ok := d.Row(s.Name, first)
		if !ok || d.IsTwin(s.Name) {
			continue
		}
		names = append(names, split(s.Name))
		values = append(values, r.RequestsPerSecond)
		if s.Published != "" && d.IsLadder() {
			short, _, _ := strings.Cut(s.Name, "-")
			stages = append(stages, short)
			v := math.NaN()
			if text := leading.FindString(s.Published); text != "" {
				v, _ = strconv.ParseFloat(text, 64)
			}
			published = append(published, stats.Interval{Median: v * 1000})
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	here := newPlot("Requests per second on "+first+", here", "")
	here.Add(grid())
	thousands(here)
	err := bars(here, names, values, series, func(i int) string { return report.Number(values[i].Median) })
	if err != nil {
		return nil, err
	}
	if len(stages) == 0 {
		return canvas(math.Max(420, 110*float64(len(names))), 290, 1, here)
	}
	there := newPlot("Published, another machine", "")
	there.Add(grid())
	thousands(there)
	err = bars(there, stages, published, func(int) color.Color { return muted }, func(i int) string {
		if v := published[i].Median; !math.IsNaN(v) {
			return strconv.FormatFloat(v/1000, 'f', -1, 64) + " K"
		}
		return "–"
	})
	if err != nil {
		return nil, err
	}
	return canvas(980, 290, 0.60, here, there)
}

// split breaks a name into lines that fit below a bar.
func split(name string) string {
	head, rest, ok := strings.Cut(name, "-")
	if !ok || !strings.HasPrefix(name, "stage") {
		return strings.Replace(name, " ", "\n", 1)
	}
	if i := strings.LastIndex(rest, "-"); i > 6 {
		rest = rest[:i+1] + "\n" + rest[i+1:]
	}
	return head + "\n" + rest
}

// ratios shows ratios with their intervals beside the line at which nothing has changed.
func ratios(d *report.Document, kinds ...report.Kind) ([]byte, error) {
	var list interval
	var names []string
	all := d.Ratios
	for i := len(all) - 1; i >= 0; i-- { // from the top down
		r := all[i]
		wanted := false
		for _, kind := range kinds {
			wanted = wanted || r.Kind == kind
		}
		if !wanted || !r.Ratio.Bounded() || r.Metric != report.Speed {
			continue
		}
		list = append(list, struct {
			x float64
			v stats.Interval
		}{float64(len(list)), r.Ratio})
		head, base := report.Label(r.Head), report.Label(r.Base)
		if r.Kind == report.Noise {
			head, base = base, "itself"
		}
		names = append(names, head+" to "+base+", "+r.Workload)
	}
	if len(list) == 0 || len(list) > 40 {
		return nil, nil
	}
	p := newPlot("Requests per second, as a ratio with its interval", "")
	p.X.Tick.Marker = plot.TickerFunc(func(low, high float64) (out []plot.Tick) {
		for _, v := range []float64{0.01, 0.1, 0.25, 0.5, 0.8, 1, 1.25, 1.5, 2, 3, 5, 8, 12, 20, 50, 100} {
			near := v == 0.8 || v == 1.25 || v == 1.5
			if v >= low && v <= high && !(near && high/low > 8) {
				out = append(out, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', -1, 64) + "×"})
			}
		}
		return out
	})
	p.X.Scale = plot.LogScale{}
	lines := plotter.NewGrid()
	lines.Horizontal.Width, lines.Vertical.Color, lines.Vertical.Dashes, lines.Vertical.Width = 0, faint, nil, vg.Points(0.6)
	p.Add(lines)
	one, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.5}, {X: 1, Y: float64(len(list)) - 0.5}})
	if err != nil {
		return nil, err
	}
	one.Width = vg.Points(1)
	p.Add(one)
	for _, each := range list {
		bar, err := plotter.NewLine(plotter.XYs{{X: each.v.Low, Y: each.x}, {X: each.v.High, Y: each.x}})
		if err != nil {
			return nil, err
		}
		shade := color.Color(muted)
		switch stats.Judge(each.v) {
		case stats.Higher:
			shade = series(5)
		case stats.Lower:
			shade = series(8)
		}
		bar.Color, bar.Width = shade, vg.Points(5)
		dot, err := plotter.NewScatter(plotter.XYs{{X: each.v.Median, Y: each.x}})
		if err != nil {
			return nil, err
		}
		dot.GlyphStyle = draw.GlyphStyle{Shape: draw.CircleGlyph{}, Radius: vg.Points(3), Color: ink}
		p.Add(bar, dot)
	}
	p.NominalY(names...)
	p.Y.LineStyle.Width, p.Y.Tick.LineStyle.Width = 0, 0
	p.Y.Min, p.Y.Max = -0.6, float64(len(list))-0.4
	p.X.Min, p.X.Max = math.Min(p.X.Min, 0.8), math.Max(p.X.Max*1.05, 1.25)
	return canvas(900, 80+22*float64(len(list)), 1, p)
}

// percentiles of a latency curve: as many nines as there were requests for.
var percentiles = func() (out []float64) {
	for nines := 0.0; nines <= 4.001; nines += 0.05 {
		out = append(out, 100*(1-math.Pow(10, -nines)))
	}
	return out
}()

// latencies draws how long requests took, from the quickest to the slowest.
func latencies(d *report.Document, workload string) ([]byte, error) {
	p := newPlot("Latency on "+workload, "")
	p.X.Label.Text = "share of the requests that were answered by then"
	p.X.Tick.Marker = plot.ConstantTicks{{Value: 0.30103, Label: "50%"}, {Value: 1, Label: "90%"}, {Value: 2, Label: "99%"}, {Value: 3, Label: "99.9%"}, {Value: 4, Label: "99.99%"}}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(durations)
	p.Add(grid())
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(3)
	drawn, shade := 0, -1
	for _, s := range d.Servers {
		if d.IsTwin(s.Name) {
			continue
		}
		if _, ok := d.Row(s.Name, d.Workloads[0].Name); ok {
			shade++ // the colour of its bar
		}
		all := load.NewHistogram()
		for _, m := range d.Measurements {
			if m.Server == s.Name && m.Workload == workload && m.Histogram != "" {
				h, err := load.DecodeHistogram(m.Histogram)
				if err != nil {
					return nil, err
				}
				all.Merge(h)
			}
		}
		points := curve(all)
		if len(points) < 2 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = series(max(shade, 0)), vg.Points(1.6)
		p.Add(line)
		p.Legend.Add(report.Label(s.Name), line)
		drawn++
	}
	if drawn == 0 {
		return nil, nil
	}
	p.X.Min, p.X.Max = 0, 4
	return canvas(900, 340, 1, p)
}

// curve reads a histogram at the percentiles that its number of values allows.
func curve(h *hdr.Histogram) (out plotter.XYs) {
	for _, percent := range percentiles {
		if float64(h.TotalCount())*(1-percent/100) < 5 {
			break
		}
		if v := h.ValueAtPercentile(percent); v > 0 {
			out = append(out, plotter.XY{X: -math.Log10(1 - percent/100), Y: float64(v)})
		}
	}
	return out
}

// durations are ticks of nanoseconds on a logarithmic axis.
func durations(low, high float64) (out []plot.Tick) {
	wide := high/low > 200
	for decade := 1e2; decade <= 1e12; decade *= 10 {
		for _, step := range []float64{1, 2, 5} {
			v := decade * step
			if v < low || v > high || wide && step != 1 {
				continue
			}
			label := ""
			switch {
			case v < 1e6:
				label = strconv.FormatFloat(v/1e3, 'g', 3, 64) + " µs"
			case v < 1e9:
				label = strconv.FormatFloat(v/1e6, 'g', 3, 64) + " ms"
			default:
				label = strconv.FormatFloat(v/1e9, 'g', 3, 64) + " s"
			}
			out = append(out, plot.Tick{Value: v, Label: label})
		}
	}
	return out
}
