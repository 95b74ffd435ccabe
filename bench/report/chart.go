package report

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/stats"
)

// kilo writes a count in thousands: "132 K"; one below a thousand as it is.
func kilo(v float64) string {
	if v < 1000 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v/1000, 'f', -1, 64) + " K"
}

// bar is a named one in a chart, and what stands over it. A median that is not a number leaves a
// gap.
type bar struct {
	name, label, fill string
	value             stats.Interval
}

// highest is where the scale of bars ends.
func highest(all []bar) float64 {
	high := 1.0
	for _, b := range all {
		high = max(high, b.value.High)
		if !math.IsNaN(b.value.Median) {
			high = max(high, b.value.Median)
		}
	}
	return high
}

// bars draws bars with their intervals, between left and right, on a scale that ends at highest.
func (d *drawing) bars(title string, left, right, highest float64, all []bar) {
	const top, bottom, axis, width = 40.0, 235.0, 50.0, 40.0
	d.heading((left+right)/2, title)
	y := func(v float64) float64 { return bottom - (bottom-top)*v/(1.12*highest) }
	step := niceStep(highest / 4)
	for v := 0.0; y(v) >= top; v += step {
		d.line(left+axis, y(v), right, y(v), 0.8, d.faint)
		d.text(left+axis-6, y(v)+4, "end", kilo(v))
	}
	each := (right - left - axis) / float64(len(all))
	for i, b := range all {
		middle := left + axis + each*(float64(i)+0.5)
		v, over := b.value, bottom
		draw := func() {
			if !math.IsNaN(v.Median) {
				over = y(v.Median)
				d.bar(middle-width/2, over, width, bottom-over, b.fill)
			}
			if v.Bounded() {
				over = y(v.High)
				d.line(middle, y(v.Low), middle, over, 1.6, d.ink)
				d.line(middle-5, y(v.Low), middle+5, y(v.Low), 1.6, d.ink)
				d.line(middle-5, over, middle+5, over, 1.6, d.ink)
			}
			d.over(middle, over-6, "middle", b.label)
		}
		if v.Bounded() {
			d.value(middle, 100, "middle", []string{strings.ReplaceAll(b.name, "\n", " "), b.label + " requests per second", console.Thousands(v.Low) + " to " + console.Thousands(v.High)}, draw)
		} else {
			draw()
		}
		d.text(middle, bottom+16, "middle", b.name)
	}
	d.line(left+axis, bottom, right, bottom, 1, d.ink)
}

// niceStep is the least of 1, 2 and 5 times a power of ten that is not below v.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5} {
		if n*power >= v {
			return n * power
		}
	}
	return 10 * power
}

var leading = regexp.MustCompile(`^[0-9.]+`)

// shades are the colours of servers: a stage has its own wherever it appears, the others those that
// are left.
func shades(run *results.Document) map[string]int {
	const stages = 6
	shade, taken := map[string]int{}, map[int]bool{}
	next := stages
	for _, s := range run.Servers {
		if run.IsTwin(s.Name) {
			continue
		}
		if n := stageNumber(s.Name); n >= 0 && !taken[n] {
			shade[s.Name], taken[n] = n, true
			continue
		}
		shade[s.Name] = stages + (next-stages)%(palette-stages)
		next++
	}
	return shade
}

// stageNumber is 3 for "stage3-native-parser", and -1 for what is no stage.
func stageNumber(server string) int {
	digits, found := strings.CutPrefix(server, "stage")
	if !found || digits == "" || digits[0] < '0' || digits[0] > '5' {
		return -1
	}
	return int(digits[0] - '0')
}

// progression is the ladder as bars: what was measured here, and beside it, on the same scale,
// what was published for another machine. "" is for nothing to show, as with the other charts.
func progression(run *results.Document, t theme, title string) string {
	if len(run.Workloads) == 0 {
		return ""
	}
	first := run.Workloads[0].Name
	var measured, published []bar
	shade := shades(run)
	for _, s := range run.Servers {
		r, ok := run.Row(s.Name, first)
		if !ok || run.IsTwin(s.Name) {
			continue
		}
		measured = append(measured, bar{split(s.Name), console.Thousands(r.RequestsPerSecond.Median), t.series[shade[s.Name]], r.RequestsPerSecond})
		if s.Published == "" || !run.IsLadder() {
			continue
		}
		short, _, _ := strings.Cut(s.Name, "-")
		b := bar{name: short, label: "–", fill: t.muted, value: stats.Interval{Median: math.NaN()}}
		if v, err := strconv.ParseFloat(leading.FindString(s.Published), 64); err == nil {
			b.label, b.value.Median = kilo(1000*v), 1000*v
		}
		published = append(published, b)
	}
	if len(measured) == 0 {
		return ""
	}
	const height = 300
	d := drawing{theme: t}
	width := math.Max(420, 110*float64(len(measured)))
	high, right := highest(slices.Concat(measured, published)), width-10
	if len(published) > 0 {
		width, right = 1080, 650
		d.bars("Published, another machine", 680, width-10, high, published)
	}
	d.bars("Requests per second on "+first+", here", 10, right, high, measured)
	return d.svg(width, height, title)
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

// scale maps values to pixels, by their logarithms.
func scale(low, high, from, to float64) func(float64) float64 {
	return func(v float64) float64 { return from + (to-from)*math.Log(v/low)/math.Log(high/low) }
}

// ratios shows ratios with their intervals beside the line at which nothing has changed.
func ratios(run *results.Document, t theme, title string, kinds ...results.Kind) string {
	var shown []results.Ratio
	low, high := 0.8, 1.2
	for _, r := range run.Ratios {
		again := slices.ContainsFunc(shown, func(s results.Ratio) bool { // a step is measured on its target, which may be the first workload
			return s.Head == r.Head && s.Base == r.Base && s.Workload == r.Workload
		})
		if !again && slices.Contains(kinds, r.Kind) && r.Ratio.Bounded() && r.Metric == results.RequestsPerSecond {
			shown = append(shown, r)
			low, high = min(low, r.Ratio.Low), max(high, r.Ratio.High)
		}
	}
	if len(shown) == 0 || len(shown) > 40 || low <= 0 {
		return ""
	}
	const width, left, top, each = 990.0, 420.0, 36.0, 24.0
	d := drawing{theme: t}
	d.heading(width/2, "Requests per second, as a ratio with its interval")
	x := scale(low, 1.05*high, left, width-30)
	bottom := top + each*float64(len(shown))
	for _, v := range []float64{0.01, 0.1, 0.25, 0.5, 0.8, 1, 1.25, 1.5, 2, 3, 5, 8, 12, 20, 50, 100} {
		near := v == 0.8 || v == 1.25 || v == 1.5
		if v < low || v > 1.05*high || near && high/low > 8 {
			continue
		}
		stroke := d.faint
		if v == 1 {
			stroke = d.ink
		}
		d.line(x(v), top, x(v), bottom, 1, stroke)
		d.text(x(v), bottom+18, "middle", strconv.FormatFloat(v, 'f', -1, 64))
	}
	for i, r := range shown {
		y := top + each*(float64(i)+0.5)
		head, base := results.Label(r.Head), results.Label(r.Base)
		if r.Kind == results.Noise {
			head, base = base, "itself"
		}
		stroke := d.muted
		switch r.Better() {
		case 1:
			stroke = d.series[5]
		case -1:
			stroke = d.series[8]
		}
		d.text(left-12, y+4, "end", head+" to "+base+", "+r.Workload+": "+r.Marked())
		d.value(width-20, y+10, "end", []string{r.Ratio.Format() + ", " + r.Words()}, func() {
			d.bar(left, y-each/2, width-30-left, each, "transparent")
			d.line(x(r.Ratio.Low), y, x(r.Ratio.High), y, 6, stroke)
			d.dot(x(r.Ratio.Median), y, 3.5, d.ink)
		})
	}
	return d.svg(width, bottom+34, title)
}

// latencies draws how long requests took, from the quickest to the slowest: x is the logarithm of
// the share that was slower.
func latencies(run *results.Document, t theme, title, workload string) (string, error) {
	const width, left, right, top, bottom, nines = 990.0, 80.0, 960.0, 36.0, 320.0, 4.0
	type server struct {
		name, stroke string
		points       [][2]float64 // nines and nanoseconds
	}
	var shown []server
	low, high, shade := math.Inf(1), 0.0, shades(run)
	for _, s := range run.Servers {
		if run.IsTwin(s.Name) {
			continue
		}
		all := load.NewHistogram()
		for _, m := range run.Measurements {
			if m.Server == s.Name && m.Workload == workload && m.Histogram != "" {
				h, err := load.DecodeHistogram(m.Histogram)
				if err != nil {
					return "", err
				}
				all.Merge(h)
			}
		}
		if points := percentiles(all, nines); len(points) >= 2 {
			shown = append(shown, server{results.Label(s.Name), t.series[shade[s.Name]], points})
			low, high = min(low, points[0][1]), max(high, points[len(points)-1][1])
		}
	}
	if len(shown) == 0 {
		return "", nil
	}
	high = max(high, 1.1*low)
	d := drawing{theme: t}
	d.heading(width/2, "Latency on "+workload)
	x := func(v float64) float64 { return left + (right-left)*v/nines }
	y := scale(low, high, bottom, top)
	for _, v := range durations(low, high) {
		d.line(left, y(v), right, y(v), 0.8, d.faint)
		d.text(left-8, y(v)+4, "end", duration(v))
	}
	d.line(left, bottom, right, bottom, 1, d.ink)
	shares := []string{"50%", "90%", "99%", "99.9%", "99.99%"}
	at := func(i int) float64 { return max(float64(i), math.Log10(2)) }
	for i, share := range shares {
		d.text(x(at(i)), bottom+18, "middle", share)
	}
	d.text((left+right)/2, bottom+40, "middle", "share of the requests that were answered by then")
	for i, s := range shown {
		line := make([][2]float64, len(s.points))
		for k, p := range s.points {
			line[k] = [2]float64{x(p[0]), y(p[1])}
		}
		d.curve(line, s.stroke)
		row := top + 12 + 18*float64(i)
		d.line(left+12, row, left+36, row, 2, s.stroke)
		d.text(left+42, row+4, "start", s.name)
	}
	for i, share := range shares { // last, so that what is asked for lies over the curves
		lines := []string{share + " within"}
		for _, s := range shown {
			for _, p := range s.points {
				if math.Abs(p[0]-at(i)) < 0.026 {
					lines = append(lines, s.name+": "+duration(p[1]))
					break
				}
			}
		}
		anchor := "start"
		if i > 2 {
			anchor = "end"
		}
		d.value(x(at(i)), top+4, anchor, lines, func() { d.bar(x(at(i))-40, top, 80, bottom-top, "transparent") })
	}
	return d.svg(width, bottom+54, title), nil
}

// percentiles reads a histogram at as many nines as its number of values allows.
func percentiles(h *hdr.Histogram, nines float64) (points [][2]float64) {
	for n := 0.0; n <= nines+0.001; n += 0.05 {
		slower := math.Pow(10, -n)
		if float64(h.TotalCount())*slower < 5 {
			break
		}
		if v := h.ValueAtPercentile(100 * (1 - slower)); v > 0 {
			points = append(points, [2]float64{n, float64(v)})
		}
	}
	return points
}

// durations are nanoseconds to mark on a logarithmic axis.
func durations(low, high float64) (marks []float64) {
	for decade := 1e2; decade <= 1e12; decade *= 10 {
		for _, n := range []float64{1, 2, 5} {
			if v := n * decade; v >= low && v <= high && (n == 1 || high/low <= 200) {
				marks = append(marks, v)
			}
		}
	}
	return marks
}

// duration writes nanoseconds in three digits.
func duration(v float64) string {
	unit := " µs"
	switch v /= 1e3; {
	case v >= 1e6:
		v, unit = v/1e6, " s"
	case v >= 1e3:
		v, unit = v/1e3, " ms"
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + unit
}
