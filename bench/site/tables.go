package site

import (
	"errors"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/stats"
)

// A grid is a table as HTML. Its cells are HTML too.
type grid struct{ b strings.Builder }

func newGrid(class string, head ...string) *grid {
	g := &grid{}
	fmt.Fprintf(&g.b, `<div class="table %s" tabindex="0"><table><thead><tr>`, class)
	for _, h := range head {
		if h == "" { // a header cell must say something
			g.b.WriteString("<td></td>")
		} else {
			g.b.WriteString(`<th scope="col">` + h + "</th>")
		}
	}
	g.b.WriteString("</tr></thead><tbody>")
	return g
}

func (g *grid) row(cells ...string) {
	g.b.WriteString("<tr>")
	for i, c := range cells {
		if i == 0 {
			g.b.WriteString(`<th scope="row">` + c + "</th>")
		} else {
			g.b.WriteString("<td>" + c + "</td>")
		}
	}
	g.b.WriteString("</tr>")
}

func (g *grid) String() string { return g.b.String() + "</tbody></table></div>" }

// shownCounters are those that countersTable shows, system calls as the manual names them.
var shownCounters = []struct{ counter, name string }{
	{"reads", "recvfrom(2)"}, {"writes", "sendto(2), sendmsg(2)"}, {"epoll_waits", "epoll_wait(2)"}, {"epoll_ctls", "epoll_ctl(2)"},
	{"timerfd_settimes", "timerfd_settime(2)"}, {"eventfd_writes", "write(2) to an eventfd"}, {"calls", "all system calls"},
	{"handoffs", "hand-offs to another thread"}, {"heap_objects_allocated", "heap objects allocated"}, {"heap_bytes_allocated", "heap bytes allocated"},
	{"body_bytes_copied", "body bytes copied"}, {"generator_waits", "waits of the generator, each ended by a wake-up"},
}

// countersTable shows what a request costs in calls, server beside server.
func (b *builder) countersTable(workload string, servers []string) (string, error) {
	d, file, err := b.results.with(workload, servers...)
	if err != nil {
		return "", err
	}
	rows := make([]results.Row, len(servers))
	head := []string{"per request on " + html.EscapeString(workload)}
	for i, s := range servers {
		rows[i], _ = d.Row(b.results.server(s), workload)
		if rows[i].Counters == nil {
			return "", fmt.Errorf("%s has no counters of %s", file, s)
		}
		head = append(head, html.EscapeString(s))
	}
	g := newGrid("numbers", head...)
	for _, c := range shownCounters {
		cells, previous := []string{c.name}, ""
		for _, row := range rows {
			value := row.Counters[c.counter]
			if c.counter == "calls" {
				value = row.SystemCalls
			}
			text := perRequest(value)
			if previous == "" || previous == text {
				cells = append(cells, text)
			} else {
				cells = append(cells, "<strong>"+text+"</strong>")
			}
			previous = text
		}
		g.row(cells...)
	}
	return g.String(), nil
}

// resultTable is what a step brought: the stage before, the stage, and their
// ratio with its interval, on hello and where the step must show.
func (b *builder) resultTable(stage string) (string, error) {
	i := slices.Index(b.stages, b.results.server(stage))
	if i < 1 {
		return "", fmt.Errorf("there is no step to %q", stage)
	}
	base := b.results.short(b.stages[i-1])
	head := []string{"", base, stage, "to the one before", ""}
	if b.mine.ladder != nil {
		head = append(head, "on this machine")
	}
	g := newGrid("numbers result", head...)
	var errs []error
	add := func(label, workload, metric, ratio string) {
		before, err := b.figure(workload + "." + base + "." + metric)
		after, afterErr := b.figure(workload + "." + stage + "." + metric)
		compared, _, ratioErr := b.results.ratio(workload, stage, base, ratio)
		errs = append(errs, err, afterErr, ratioErr)
		cells := []string{label + ", " + html.EscapeString(workload), before.html(), after.html(), ratioText(compared.Ratio), verdictWord(compared)}
		if b.mine.ladder != nil {
			mine, _, err := b.mine.ladder.ratio(workload, stage, base, ratio)
			if err == nil {
				cells = append(cells, `<span class="mine">`+ratioText(mine.Ratio)+" "+verdictWord(mine)+"</span>")
			} else {
				cells = append(cells, "–") // it was not measured there
			}
		}
		g.row(cells...)
	}
	throughputAndCPU := func(workload string) {
		add("requests per second", workload, "qps", "ratio")
		add("server CPU per request", workload, "cpu", "cpu")
	}
	throughputAndCPU("hello")
	before, _ := b.results.documents[0].Row(b.stages[i-1], "hello")
	after, _ := b.results.documents[0].Row(b.stages[i], "hello")
	g.row("busy: server, generator, hello", busy(before), busy(after), "", "")
	add("median latency", "hello", "p50", "p50")
	add("99th percentile", "hello", "p99", "p99")
	for _, t := range b.results.documents[0].Ratios {
		if t.Kind != results.Target || t.Head != b.results.server(stage) || t.Workload == "hello" {
			continue
		}
		switch t.Metric {
		case results.RequestsPerSecond:
			throughputAndCPU(t.Workload)
		case results.HeldMemory:
			g.row("buffer bytes an idle connection holds, "+html.EscapeString(t.Workload), console.Thousands(t.BaseValue), console.Thousands(t.HeadValue), "", "")
		}
	}
	g.row("published by the documents, requests per second", b.documents.ofStage(base), b.documents.ofStage(stage), "", "")
	return g.String() + b.measuredLine(), errors.Join(errs...)
}

// measuredLine says under a table how its figures came about.
func (b *builder) measuredLine() string {
	d := b.results.documents[0]
	return fmt.Sprintf(`<p class="measured">Measured on %s, %s, %d CPUs, Linux %s, Go %s, server and generator %s; medians of %d rounds, ratios within a round, intervals of at least 95%%; a difference is told when its interval excludes 1 and it is beyond the noise floor. <code>%s</code></p>`,
		d.Created.Format("2 January 2006"), html.EscapeString(d.Machine.CPU), d.Machine.CPUs, html.EscapeString(strings.TrimPrefix(d.Machine.Kernel, "Linux ")),
		html.EscapeString(strings.TrimPrefix(d.Machine.Go, "go")), html.EscapeString(d.Method.Layout), d.Method.Rounds, html.EscapeString(d.Command))
}

// verdictClass says whether a ratio is "better", "worse" or the "same".
func verdictClass(r results.Ratio) string {
	return [...]string{"worse", "same", "better"}[r.Better()+1]
}

func verdictWord(r results.Ratio) string {
	return fmt.Sprintf(`<span class="%s">%s</span>`, verdictClass(r), html.EscapeString(r.Marked()))
}

// spoken is a ratio with its interval, coloured by what can be said of it; the mark says the same.
func spoken(r results.Ratio) string {
	return withVerdict(r, ratioText(r.Ratio))
}

// ratioText is a ratio with its interval, which stays in one piece where a line must be broken.
func ratioText(ratio stats.Interval) string {
	text := html.EscapeString(ratio.Format())
	if median, interval, ok := strings.Cut(text, " "); ok {
		text = median + ` <span class="interval">` + interval + "</span>"
	}
	return text
}

// stacked is spoken with the interval below the median, for tables of many columns.
func stacked(r results.Ratio) string {
	return withVerdict(r, strings.Replace(html.EscapeString(r.Ratio.Format()), " [", "<br>[", 1))
}

// withVerdict is text, which is the HTML of r's figures, with r's mark and its colour.
func withVerdict(r results.Ratio, text string) string {
	if mark, _, found := strings.Cut(r.Marked(), " "); found && r.Better() != 0 {
		text += " " + mark
	}
	return fmt.Sprintf(`<span class="%s" title="%s">%s</span>`, verdictClass(r), html.EscapeString(r.Words()), text)
}

// ablationTable shows the variants of a chapter.
func (b *builder) ablationTable(chapter string) (string, error) {
	g := newGrid("ablation", "workload", "against", "requests per second", "server CPU")
	found := false
	for _, v := range b.ablation.Variants {
		if v.Chapter != chapter {
			continue
		}
		found = true
		fmt.Fprintf(&g.b, `<tr><th scope="rowgroup" colspan="4"><strong>%s</strong><br>%s</th></tr>`, html.EscapeString(v.Name), inlineCode(v.What))
		for _, c := range v.Compare {
			if _, _, err := b.results.with(c.Workload, v.Name, c.With); err != nil { // it is newer than the figures
				g.row(html.EscapeString(c.Workload), html.EscapeString(c.With), "not measured yet", "–")
				continue
			}
			throughput, _, err := b.results.ratio(c.Workload, v.Name, c.With, "ratio")
			if err != nil {
				return "", fmt.Errorf("variant %s: %w", v.Name, err)
			}
			cpu, _, err := b.results.ratio(c.Workload, v.Name, c.With, "cpu")
			if err != nil {
				return "", fmt.Errorf("variant %s: %w", v.Name, err)
			}
			g.row(html.EscapeString(c.Workload), html.EscapeString(c.With), spoken(throughput), spoken(cpu))
		}
	}
	if !found {
		return "", fmt.Errorf("no variant belongs to the chapter of %q", chapter)
	}
	d := b.results.documents[1]
	return g.String() + fmt.Sprintf(`<p class="measured">Measured on %s, %s, %d CPUs; %d rounds. What each variant changes stands in <code>bench/variants/ablation.yaml</code>.</p>`,
		d.Created.Format("2 January 2006"), html.EscapeString(d.Machine.CPU), d.Machine.CPUs, d.Method.Rounds), nil
}

// notMeasured stands in the place of a table whose file is not there yet.
const notMeasured = `<p class="measured">Not measured yet: <code>make docs-refresh</code> does.</p>`

// summitTable shows what each part of the summit brings to the stage, and what they add up to: requests per second, and below
// them CPU per request, on each workload; and the summit beside other servers.
func (b *builder) summitTable() (string, error) {
	of := b.results.named[summitName]
	if len(of.documents) == 0 {
		return notMeasured, nil
	}
	g := newGrid("numbers", append([]string{"beside stage5"}, summitWorkloads...)...)
	for _, v := range b.summit.Variants {
		cells := []string{html.EscapeString(v.Name)}
		for _, c := range v.Compare {
			speed, _, err := of.ratio(c.Workload, v.Name, c.With, "ratio")
			if err != nil {
				return "", err
			}
			cpu, _, err := of.ratio(c.Workload, v.Name, c.With, "cpu")
			if err != nil {
				return "", err
			}
			cells = append(cells, spoken(speed)+"<br>"+spoken(cpu))
		}
		g.row(cells...)
	}
	out := g.String() + measuredOn(of.documents[0])
	if peers := b.results.named[peersName]; peers.has(summitName) {
		beside, err := b.peersTable(summitName, strings.Split(peersWorkloads, ","))
		return out + beside, err
	}
	return out, nil
}

// elsewhereTable shows the rows beside the ladder: what a server does on each workload, and what a connection holds of memory.
func (b *builder) elsewhereTable() (string, error) {
	of := b.results.named[elsewhereName]
	if len(of.documents) == 0 {
		return notMeasured, nil
	}
	d := of.documents[0]
	g := newGrid("numbers named", "workload", "server", "requests per second", "server CPU", "99% within", "resident bytes per connection", "connections answered")
	for _, w := range d.Workloads {
		for _, s := range d.Servers {
			row, ok := d.Row(s.Name, w.Name)
			if !ok {
				continue
			}
			g.row(html.EscapeString(w.Name), html.EscapeString(of.short(s.Name)), kilo(row.RequestsPerSecond.Median), microseconds(row.ServerCPUMicros.Median),
				microseconds(row.P99Micros.Median), console.Thousands(row.ResidentPerConnection.Median), console.Thousands(row.Established))
		}
	}
	return g.String() + measuredOn(d), nil
}

// uringTable is the reference of exercise 24 beside its stage, and the C loop with io_uring beside the one with epoll: requests per
// second and, below them, CPU per request; and how many calls a request needs.
func (b *builder) uringTable() (string, error) {
	of := b.results.named[uringName]
	if len(of.documents) == 0 {
		return notMeasured, nil
	}
	d := of.documents[0]
	g := newGrid("numbers", "workload", "stage5 with io_uring to stage5", "system calls per request", "C loop with io_uring to the C loop")
	for _, w := range d.Workloads {
		cells := []string{html.EscapeString(w.Name)}
		for _, pair := range [][2]string{{"stage5-uring", "stage5"}, {"uring-c", "bare-c"}} {
			head, ok := d.Row(of.server(pair[0]), w.Name)
			if !ok {
				cells = append(cells, "–") // not measured: the C loops send the same bytes for every read
				if len(cells) == 2 {
					cells = append(cells, "–") // and no calls of it either
				}
				continue
			}
			speed, _, err := of.ratio(w.Name, pair[0], pair[1], "ratio")
			if err != nil {
				return "", err
			}
			cpu, _, err := of.ratio(w.Name, pair[0], pair[1], "cpu")
			if err != nil {
				return "", err
			}
			cells = append(cells, spoken(speed)+"<br>"+spoken(cpu))
			if base, ok := d.Row(of.server(pair[1]), w.Name); ok && len(cells) == 2 {
				cells = append(cells, fmt.Sprintf("%.2f, and %.2f", head.SystemCalls, base.SystemCalls))
			}
		}
		g.row(cells...)
	}
	return g.String() + measuredOn(d), nil
}

func measuredOn(d *results.Document) string {
	return fmt.Sprintf(`<p class="measured">Measured on %s, %s, %d CPUs; %d rounds.</p>`,
		d.Created.Format("2 January 2006"), html.EscapeString(d.Machine.CPU), d.Machine.CPUs, d.Method.Rounds)
}

// peersTable is a server beside those of other libraries: its requests per
// second to theirs, and what a request on the first workload costs each.
func (b *builder) peersTable(stage string, workloads []string) (string, error) {
	of := b.results.named[peersName]
	d := of.documents[0]
	head := append([]string{html.EscapeString(stage) + " to …"}, workloads...)
	g := newGrid("numbers many", append(head, "its CPU on "+workloads[0])...)
	for _, s := range d.Servers {
		other := of.short(s.Name)
		if s.Name == of.server(stage) || strings.HasPrefix(s.Name, of.server(stage)+" ") {
			continue
		}
		cells := []string{html.EscapeString(other)}
		for _, w := range workloads {
			if _, ok := d.Row(s.Name, w); !ok {
				cells = append(cells, "–") // it does not serve that
				continue
			}
			compared, _, err := of.ratio(w, stage, s.Name, "ratio")
			if err != nil {
				return "", err
			}
			mine := ""
			if b.mine.peers != nil {
				if compared, _, err := b.mine.peers.ratio(w, stage, s.Name, "ratio"); err == nil {
					mine = stacked(compared)
				}
			}
			cells = append(cells, stacked(compared)+beside(mine))
		}
		row, _ := d.Row(s.Name, workloads[0])
		mine := ""
		if b.mine.peers != nil {
			if row, ok := b.mine.peers.documents[0].Row(s.Name, workloads[0]); ok {
				mine = microseconds(row.ServerCPUMicros.Median)
			}
		}
		g.row(append(cells, microseconds(row.ServerCPUMicros.Median)+beside(mine))...)
	}
	return g.String(), nil
}

// inlineCode is text in which backquotes mark code.
func inlineCode(text string) string {
	parts := strings.Split(html.EscapeString(text), "`")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = "<code>" + parts[i] + "</code>"
	}
	return strings.Join(parts, "")
}

// documentList lists the sources with what each says.
func (b *builder) documentList() (string, error) {
	var out strings.Builder
	for _, d := range b.documents.Documents {
		fmt.Fprintf(&out, `<section class="document" id="document-%d"><p><strong>%d. <span lang="zh">%s</span></strong><br>%s<br><small>%s</small></p><p>%s</p></section>`,
			d.Number, d.Number, html.EscapeString(d.Title), html.EscapeString(d.Means), html.EscapeString(d.Author), html.EscapeString(d.Says))
	}
	return out.String(), nil
}

// publishedTable lists every figure that may be quoted.
func (b *builder) publishedTable() (string, error) {
	g := newGrid("published", "what", "figure", "in document")
	for _, p := range b.documents.Published {
		var in []string
		for _, n := range p.In {
			in = append(in, fmt.Sprintf(`<a href="#document-%d">%d</a>`, n, n))
		}
		g.row(html.EscapeString(p.What), html.EscapeString(p.Figure), strings.Join(in, ", "))
	}
	return g.String(), nil
}
