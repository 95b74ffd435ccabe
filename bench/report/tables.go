package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/results"
)

// section is a titled table; every form for people is made of sections.
type section struct {
	title  string
	header table.Row
	rows   []table.Row
	left   int // how many columns, from the first, are text; the others are figures
}

// view is a run as it is shown.
type view struct{ *results.Document }

// Text writes the tables and notes for a terminal of 80 columns, and the same
// when piped.
func Text(out io.Writer, d *results.Document) {
	for _, s := range (view{d}).sections(false) {
		fmt.Fprintf(out, "\n%s\n\n", s.title)
		fmt.Fprintln(out, trimLines(s.writer().Render()))
	}
	fmt.Fprintln(out)
	for _, note := range d.Notes {
		fmt.Fprintln(out, console.Paragraph("· ", "  ", note))
	}
}

// Markdown writes the same as Markdown.
func Markdown(out io.Writer, run *results.Document) {
	d := view{run}
	fmt.Fprintf(out, "# %s\n\n%s, %s. `%s`\n", d.title(), d.Created.Format("2006-01-02 15:04 UTC"), d.machineLine(), d.Command)
	for _, s := range d.sections(true) {
		fmt.Fprintf(out, "\n## %s\n\n%s\n", s.title, s.writer().RenderMarkdown())
	}
	fmt.Fprintf(out, "\n## Notes\n\n")
	for _, note := range d.Notes {
		fmt.Fprintf(out, "- %s\n", note)
	}
	for _, fact := range d.Machine.Facts() {
		fmt.Fprintf(out, "- %s: %s\n", fact[0], fact[1])
	}
	for _, weakness := range d.Machine.Mitigations {
		fmt.Fprintf(out, "- Kernel mitigation: %s\n", weakness)
	}
}

func (d view) title() string {
	if d.IsLadder() {
		return "The QPS ladder"
	}
	return "A comparison"
}

func (d view) machineLine() string {
	parts := []string{d.Machine.CPU, fmt.Sprintf("%d CPUs", d.Machine.CPUs), d.Machine.Kernel, d.Machine.Go, d.Machine.Virtual}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, ", ")
}

// sections are all tables, or those that a terminal has room for.
func (d view) sections(all bool) []section {
	var out []section
	if d.IsLadder() {
		out = append(out, d.progression(), d.targets())
	} else {
		out = append(out, d.matrix()...)
	}
	for _, w := range d.Workloads {
		if rate := cmp.Or(w.Rate, d.Method.Rate); rate > 0 {
			out = append(out, d.atRate(w, rate))
		}
	}
	out = append(out, d.pairs(all), d.saturation(all))
	for _, w := range d.Workloads {
		first := w.Name == d.Workloads[0].Name
		if !all && !first && d.IsLadder() {
			continue
		}
		if all || len(d.Workloads) <= 3 || first {
			out = append(out, d.costs(w))
		}
		if all || !d.IsLadder() {
			out = append(out, d.loops(w))
		}
		if all || len(d.Workloads) == 1 {
			out = append(out, d.latencies(w), d.counters(w), d.memory(w))
		}
	}
	return slices.DeleteFunc(out, func(s section) bool { return len(s.rows) == 0 })
}

// matrixColumns is how many workloads fit beside each other in 80 columns.
const matrixColumns = 5

// matrix is requests per second of all servers on all workloads, in tables that fit a terminal.
func (d view) matrix() (out []section) {
	if d.Method.Rate > 0 {
		return nil
	}
	for chunk := range slices.Chunk(d.closed(), matrixColumns) {
		s := section{title: "Requests per second", header: table.Row{"server"}, left: 1}
		for _, w := range chunk {
			s.header = append(s.header, w.Name)
		}
		for _, server := range d.Servers {
			if d.IsTwin(server.Name) {
				continue
			}
			row := table.Row{results.Label(server.Name)}
			any := false
			for _, w := range chunk {
				text := "–"
				if r, ok := d.Row(server.Name, w.Name); ok {
					text, any = console.Thousands(r.RequestsPerSecond.Median)+mark(r), true
				}
				row = append(row, text)
			}
			if any {
				s.rows = append(s.rows, row)
			}
		}
		out = append(out, s)
	}
	return out
}

// closed are the workloads that were measured as the run was: at a rate of its own, requests per second
// are known beforehand.
func (d view) closed() (out []results.Workload) {
	for _, w := range d.Workloads {
		if w.Rate == 0 {
			out = append(out, w)
		}
	}
	return out
}

// each adds a row for every server that was measured under w.
func (d view) each(w results.Workload, s section, row func(results.Row) table.Row) section {
	for _, server := range d.Servers {
		if r, ok := d.Row(server.Name, w.Name); ok && !d.IsTwin(server.Name) {
			s.rows = append(s.rows, append(table.Row{results.Label(server.Name)}, row(r)...))
		}
	}
	return s
}

// latencies are all percentiles, and where the CPU time went.
func (d view) latencies(w results.Workload) section {
	s := section{
		title:  "Latency and CPU time on " + w.Name + " (user, system: " + cmp.Or(d.Method.UserSystem, results.Ticks) + ")",
		header: table.Row{"stage", "p50", "p90", "p99", "p99.9", "user µs", "system µs"}, left: 1,
	}
	return d.each(w, s, func(r results.Row) table.Row {
		return table.Row{latency(r.P50Micros.Median), latency(r.P90Micros.Median), latency(r.P99Micros.Median), latency(r.P999Micros.Median),
			fmt.Sprintf("%.2f", r.UserCPUMicros.Median), fmt.Sprintf("%.2f", r.SystemCPUMicros.Median)}
	})
}

// counters are per request, of servers that have any.
func (d view) counters(w results.Workload) section {
	s := section{
		title:  "Counters per request on " + w.Name,
		header: table.Row{"stage", "reads", "EAGAIN", "writes", "waits", "req/wait", "epoll_ctl", "timers"}, left: 1,
	}
	s = d.each(w, s, func(r results.Row) table.Row {
		if r.Counters == nil {
			return nil
		}
		c := r.Counters
		return table.Row{decimal(c["reads"]), decimal(c["read_agains"]), decimal(c["writes"]), decimal(c["epoll_waits"]), fmt.Sprintf("%.1f", r.RequestsPerWait),
			decimal(c["epoll_ctls"]), decimal(c["timerfd_settimes"])}
	})
	s.rows = slices.DeleteFunc(s.rows, func(row table.Row) bool { return len(row) == 1 })
	return s
}

// memory is what a server holds, and how many connections there truly were.
func (d view) memory(w results.Workload) section {
	s := section{
		title:  "Memory, connections and what came late on " + w.Name,
		header: table.Row{"stage", "GC/s", "resident", "connections", "late", "longest"}, left: 1,
	}
	if w.Idle > 0 {
		s.title += "; of one connection"
		s.header = append(s.header, "resident of one", "Go heap of one", "buffers of one")
	}
	return d.each(w, s, func(r results.Row) table.Row {
		row := table.Row{fmt.Sprintf("%.1f", r.GCCyclesPerSecond), fmt.Sprintf("%.1f MB", r.Resident/1e6), console.Thousands(float64(r.Established)), console.Thousands(float64(r.Late)), latency(r.MaxMicros)}
		if r.Counters == nil {
			row[0] = "–"
		}
		if w.Idle > 0 {
			row = append(row, size(r.ResidentPerConnection.Median), "–", "–")
			if r.Counters != nil {
				row[6], row[7] = size(r.HeapPerConnection.Median), size(r.HeldPerConnection.Median)
			}
		}
		return row
	})
}

// loops is how the connections came to be spread, where a server has several loops.
func (d view) loops(w results.Workload) section {
	s := section{
		title:  "Connections of each loop on " + w.Name + ", fewest first",
		header: table.Row{"server", "loops", "connections", "most to fewest"}, left: 1,
	}
	for _, server := range d.Servers {
		r, ok := d.Row(server.Name, w.Name)
		n := len(r.LoopConnections)
		// Where one thread opens and another closes, no loop's own number tells anything.
		if !ok || n < 2 || d.IsTwin(server.Name) || r.Counters["handoffs"] > 0.01 || r.LoopConnections[0] < 0 {
			continue
		}
		var texts []string
		for _, v := range r.LoopConnections {
			texts = append(texts, console.Thousands(v))
		}
		if n > 8 {
			texts = append(append(texts[:3:3], "…"), texts[n-3:]...)
		}
		uneven := "–"
		if r.LoopConnections[0] > 0 {
			uneven = fmt.Sprintf("%.1f", r.LoopConnections[n-1]/r.LoopConnections[0])
		}
		s.rows = append(s.rows, table.Row{results.Label(server.Name), n, strings.Join(texts, " "), uneven})
	}
	return s
}

// progression is the ladder itself.
func (d view) progression() section {
	first := d.Workloads[0].Name
	s := section{
		title:  "Requests per second on " + first,
		header: table.Row{"stage", "req/s", "to the one before", "to stage0", "published"}, left: 1,
	}
	for _, server := range d.Servers {
		r, ok := d.Row(server.Name, first)
		if !ok || d.IsTwin(server.Name) {
			continue
		}
		step, _ := d.Find(results.Step, server.Name)
		total, _ := d.Find(results.Total, server.Name)
		s.rows = append(s.rows, table.Row{results.Label(server.Name), console.Thousands(r.RequestsPerSecond.Median) + mark(r), step.Ratio.Format(), total.Ratio.Format(), server.Published})
	}
	return s
}

// targets is each stage where its step must show.
func (d view) targets() section {
	s := section{
		title:  "Each step on its own target, to the one before",
		header: table.Row{"stage", "target", "what", "ratio", "verdict"}, left: 3,
	}
	for _, r := range d.Ratios {
		if r.Kind != results.Target {
			continue
		}
		ratio := r.Ratio.Format()
		if r.Metric == results.HeldMemory {
			ratio = size(r.BaseValue) + " → " + size(r.HeadValue)
		}
		s.rows = append(s.rows, table.Row{results.Label(r.Head), r.Workload, r.Metric.Short(), ratio, r.Marked()})
	}
	return s
}

// pairs are the ratios that were asked for, and the noise floor.
func (d view) pairs(all bool) section {
	s := section{title: "Compared", header: table.Row{"this", "to this", "what", "ratio", "verdict"}, left: 3}
	// A terminal has no room for every metric of many servers and workloads.
	const many = 16
	brief := !all && len(d.Workloads) > 1 && (len(d.Ratios) > many || d.IsLadder())
	for _, r := range d.Ratios {
		if (r.Kind == results.Pair || r.Kind == results.Noise) && !(brief && r.Metric != results.RequestsPerSecond) {
			what := r.Metric.Short()
			if len(d.Workloads) > 1 {
				what += ", " + r.Workload
			}
			head, base := results.Label(r.Head), results.Label(r.Base)
			if r.Kind == results.Noise {
				head, base = base, "itself"
			}
			s.rows = append(s.rows, table.Row{head, base, what, r.Ratio.Format(), r.Marked()})
		}
	}
	return s
}

// atRate is what servers do that all have the same to do.
func (d view) atRate(w results.Workload, rate float64) section {
	s := section{
		title:  fmt.Sprintf("At %s requests per second, %s", console.Thousands(rate), cmp.Or(w.Repeats, w.Name)),
		header: table.Row{"server", "CPU µs", "p50", "p99", "p99.9", "max", "saturated"}, left: 1,
	}
	return d.each(w, s, func(r results.Row) table.Row {
		return table.Row{fmt.Sprintf("%.2f", r.ServerCPUMicros.Median), latency(r.P50Micros.Median), latency(r.P99Micros.Median), latency(r.P999Micros.Median), latency(r.MaxMicros), r.Saturated}
	})
}

// saturation is which side was at its limit in every row, and what has to be known beside a ratio of
// CPU time: requests per epoll_wait, since a fuller batch makes each cheaper.
func (d view) saturation(all bool) section {
	const many = 24 // rows, for a terminal
	s := section{
		title:  "Saturated, layout " + d.Method.Layout + "; busy: server, generator",
		header: table.Row{"server", "workload", "saturated", "busy", "req/CPU s", "req/wait"}, left: 3,
	}
	for _, w := range d.Workloads {
		for _, server := range d.Servers {
			r, ok := d.Row(server.Name, w.Name)
			if !ok || r.Saturated == "" || d.IsTwin(server.Name) || !all && len(d.Rows) > many && w.Name != d.Workloads[0].Name {
				continue
			}
			wait := "–"
			if r.RequestsPerWait > 0 {
				wait = fmt.Sprintf("%.1f", r.RequestsPerWait)
			}
			s.rows = append(s.rows, table.Row{results.Label(server.Name), w.Name, r.Saturated, fmt.Sprintf("%.0f%%, %.0f%%", 100*r.Busy, 100*r.ClientBusy),
				console.Thousands(r.RequestsPerCPUSecond.Median), wait})
		}
	}
	return s
}

// costs is what a request costs.
func (d view) costs(w results.Workload) section {
	s := section{
		title:  "What a request costs on " + w.Name,
		header: table.Row{"stage", "CPU µs", "p50", "p99", "calls", "hand-offs", "allocations"}, left: 1,
	}
	return d.each(w, s, func(r results.Row) table.Row {
		row := table.Row{fmt.Sprintf("%.2f", r.ServerCPUMicros.Median), latency(r.P50Micros.Median), latency(r.P99Micros.Median), "–", "–", "–"}
		if r.Counters != nil {
			row[3], row[4], row[5] = decimal(r.SystemCalls), decimal(r.Counters["handoffs"]), decimal(r.Counters["heap_objects_allocated"])
		}
		return row
	})
}

// mark says of a row what stands behind its figure: which side was saturated, and ! for errors.
func mark(r results.Row) string {
	text := ""
	if side := r.Saturated.Mark(); side != "" {
		text = " " + side
	}
	if len(r.Errors) > 0 {
		text += "!"
	}
	return text
}

// decimal writes a count per request; what is nearly nothing is written as such.
func decimal(v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.Abs(v) < 0.005:
		return "0.00"
	}
	return fmt.Sprintf("%.2f", v)
}

// latency writes microseconds; 0 stands for "not known": wrk cannot tell the
// percentiles of pipelined requests.
func latency(us float64) string {
	if us == 0 {
		return "–"
	}
	switch {
	case us < 995:
		return fmt.Sprintf("%.0f µs", us)
	case us >= 995_000:
		return fmt.Sprintf("%.2f s", us/1e6)
	}
	digits := 2
	if us >= 99_950 {
		digits = 0
	} else if us >= 9_995 {
		digits = 1
	}
	return fmt.Sprintf("%.*f ms", digits, us/1000)
}

func size(bytes float64) string { return console.Thousands(bytes) + " B" }

func (s section) writer() table.Writer {
	t := table.NewWriter()
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.AppendHeader(s.header)
	var columns []table.ColumnConfig
	for i := range s.header {
		align := text.AlignRight
		if i < s.left || s.header[i] == "verdict" || s.header[i] == "published" {
			align = text.AlignLeft
		}
		columns = append(columns, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	t.SetColumnConfigs(columns)
	for _, row := range s.rows {
		t.AppendRow(row)
	}
	return t
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// textTable is one of them for the page.
type textTable struct {
	ID     string
	Title  string
	Header []string
	Rows   [][]string
	Left   int // how many columns, from the first, are text; the others are figures
}

// tables are those that the Markdown has, cell by cell.
func (d view) tables() (out []textTable) {
	for _, s := range d.sections(true) {
		t := textTable{Title: s.title, Left: s.left}
		for _, cell := range s.header {
			t.Header = append(t.Header, fmt.Sprint(cell))
		}
		for _, row := range s.rows {
			var cells []string
			for _, cell := range row {
				cells = append(cells, fmt.Sprint(cell))
			}
			t.Rows = append(t.Rows, cells)
		}
		out = append(out, t)
	}
	return out
}
