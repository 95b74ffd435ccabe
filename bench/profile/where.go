package profile

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/report"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Where records stages under load and prints on what each spends its CPU time, per request. The
// table is written to o.Folder too, and returned. With guess it asks on in first what will be the
// largest part. profiler is any but ProfilerBoth. No stages means all. Beside
// all stages the C loop is recorded too, where it can be seen into.
func Where(ctx context.Context, o Options, stages []string, profiler string, guess bool, in io.Reader) (*WhereTable, error) {
	l, servers, w, err := o.prepare(ctx, stages)
	if err != nil {
		return nil, err
	}
	s, err := newSampler(ctx, l, profiler, o.Duration, o.Tell)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var guesses map[string]category
	if guess {
		if guesses, err = ask(ctx, in, o.Out, servers, w); err != nil {
			return nil, err
		}
	}
	all, err := harness.Stages(l.root)
	if err != nil {
		return nil, err
	}
	if len(servers) == len(all) && s.perf != nil { // only perf sees into a program that has no profiler of its own
		bare, ok, err := run.BuildBareC(ctx, l.root, l.bin)
		if err != nil {
			return nil, err
		}
		if ok && bare.Can(w) {
			servers = append(servers, bare)
		}
	}
	sides, err := s.takeAll(ctx, servers, w, o.step)
	if err != nil {
		return nil, err
	}
	table := newWhereTable(sides)
	table.picture(o.Out)
	table.text(o.Out, console.Columns(o.Out))
	table.judge(o.Out, guesses)
	return table, table.write(l.out, o.Tell)
}

// WhereTable is where the time goes, by server and category: what `ladder where`
// writes as JSON.
type WhereTable struct {
	header
	Workload string        `json:"workload"`
	Source   string        `json:"source"`
	Servers  []WhereServer `json:"servers"`
}

// WhereServer is one server's CPU time, in µs per request.
type WhereServer struct {
	Server    string     `json:"server"`
	Requests  int64      `json:"requests"`
	Samples   int64      `json:"samples"`
	CPUMicros float64    `json:"cpu_us_per_request"`
	Rows      []WhereRow `json:"rows"` // of every category, in their order
}

// WhereRow is what one server spends on one category.
type WhereRow struct {
	Category  string  `json:"category"`
	CPUMicros float64 `json:"cpu_us_per_request"`
	Share     float64 `json:"share"`   // of the server's CPU time
	Ceiling   float64 `json:"ceiling"` // what the server would gain if this cost nothing: 0.25 is a quarter
	Error     float64 `json:"error"`   // of the share, two standard errors
}

// ReadWhere reads a table that `ladder where` has written.
func ReadWhere(path string) (*WhereTable, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := &WhereTable{}
	if err := json.Unmarshal(b, t); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if want := newHeader("where"); t.Schema != want.Schema || t.Version != want.Version {
		return nil, fmt.Errorf("%s: schema %q version %d is not understood, only %s version %d", path, t.Schema, t.Version, want.Schema, want.Version)
	}
	return t, nil
}

// newWhereTable makes the table of what sees most on each side.
func newWhereTable(sides [][]*record) *WhereTable {
	t := &WhereTable{header: newHeader("where")}
	for _, records := range sides {
		r := records[len(records)-1]
		t.Workload, t.Source = r.workload, r.source
		c := WhereServer{Server: r.server, Requests: r.outcome.requests, Samples: r.samples, CPUMicros: r.outcome.cpuMicros()}
		for i, part := range r.split() {
			share := part / r.outcome.cpuNanos()
			c.Rows = append(c.Rows, WhereRow{
				Category: category(i).String(), CPUMicros: part / 1e3, Share: share, Ceiling: ceiling(share),
				Error: 2 * math.Sqrt(share*(1-share)/float64(r.samples)),
			})
		}
		t.Servers = append(t.Servers, c)
	}
	return t
}

// largest is the category on which most is spent.
func (c WhereServer) largest() category {
	best := category(0)
	for i, row := range c.Rows {
		if row.Share > c.Rows[best].Share {
			best = category(i)
		}
	}
	return best
}

// shown are the categories that anybody spends anything on.
func (t *WhereTable) shown() (out []category) {
	for i := range categories {
		if slices.ContainsFunc(t.Servers, func(c WhereServer) bool { return c.Rows[i].CPUMicros > 0 }) {
			out = append(out, category(i))
		}
	}
	return out
}

// percent writes a share in at most four characters before the sign.
func percent(share float64) string {
	if share < 0.0995 {
		return fmt.Sprintf("%.1f%%", 100*share)
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}

// micro writes µs in at most four characters.
func micro(v float64) string {
	switch {
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// gain writes a ceiling in at most four characters: a percentage, or from twice as fast on a
// factor.
func gain(ceiling float64) string {
	switch {
	case ceiling < 0.005:
		return "–"
	case ceiling < 0.995:
		return fmt.Sprintf("+%.0f%%", 100*ceiling)
	}
	return fmt.Sprintf("%.1f×", 1+ceiling)
}

const (
	nameWidth    = 22
	figuresWidth = 16 // of one server's three figures: six stages fit in 120 columns
)

// stages are the servers without the C loop, which the picture has.
func (t *WhereTable) stages() []WhereServer {
	return slices.DeleteFunc(slices.Clone(t.Servers), func(s WhereServer) bool { return s.Server == run.BareC })
}

// partOf says which part of the picture of the ladder a category belongs to.
var partOf = [categories]report.Part{
	kernelSend: report.Send, kernelSoftirq: report.Send, kernelReceive: report.Receive, kernelWake: report.HandOff, kernelEpollWait: report.Wait,
	kernelEpollControl: report.EpollCtl, kernelTimer: report.Timers, kernelConnection: report.Rest, kernelOther: report.Rest,
	goScheduler: report.HandOff, goCollector: report.Memory, goMemory: report.Memory,
	judging: report.Parser, parsing: report.Parser, headMaking: report.Head, handling: report.App, bodyCopying: report.App,
	looping: report.Rest, rest: report.Rest,
}

// Shares are the parts of the picture of the ladder, of a server's CPU time.
func (c WhereServer) Shares() (shares [report.Parts]float64) {
	for i, row := range c.Rows {
		shares[partOf[i]] += row.Share
	}
	return shares
}

// picture draws what each server spends.
func (t *WhereTable) picture(out io.Writer) {
	var costs []report.Cost
	for _, c := range t.Servers {
		cost := report.Cost{Name: harness.ShortName(c.Server), Micros: c.CPUMicros, Shares: c.Shares()}
		if c.Server == run.BareC {
			cost.Name, cost.Apart = c.Server, true
		}
		costs = append(costs, cost)
	}
	if len(costs) > 1 {
		report.CostText(out, costs, console.Columns(out), console.Colour(out))
		fmt.Fprintln(out)
	}
}

// text prints the table. Where not all servers fit into so many columns they come
// in several tables, one below the other; 0 is as many as it takes.
func (t *WhereTable) text(out io.Writer, columns int) {
	fmt.Fprintf(out, "Server CPU time per request on %s, by %s\n\n", t.Workload, t.Source)
	servers := t.stages()
	beside := len(servers)
	if columns > 0 {
		beside = min(beside, max(1, (columns-nameWidth)/figuresWidth))
	}
	for some := range slices.Chunk(servers, beside) {
		t.part(out, some)
		fmt.Fprintln(out)
	}
	for _, line := range t.notes() {
		say(out, "", "  ", line)
	}
}

// differs is what a row of the second of two servers has more than that of the first, in µs; ""
// where the samples cannot tell.
func differs(a, b WhereServer, row int) string {
	delta := b.Rows[row].CPUMicros - a.Rows[row].CPUMicros
	if math.Abs(delta) <= math.Hypot(a.Rows[row].Error*a.CPUMicros, b.Rows[row].Error*b.CPUMicros) {
		return ""
	}
	return signedMicro(delta)
}

func signedMicro(v float64) string {
	if v < 0 {
		return "−" + micro(-v)
	}
	return "+" + micro(v)
}

// part prints the table of some of the servers, and of two what differs.
func (t *WhereTable) part(out io.Writer, servers []WhereServer) {
	two := len(t.stages()) == 2 && len(servers) == 2
	line := func(name string, cells []string, difference string) {
		text := fmt.Sprintf("%-*s%s", nameWidth, name, strings.Join(cells, ""))
		if two {
			text += fmt.Sprintf("  %8s", difference)
		}
		fmt.Fprintln(out, strings.TrimRight(text, " "))
	}
	figures := func(micros, part, gain string) string { return fmt.Sprintf("  %4s %4s %4s", micros, part, gain) }
	var names, units, whole []string
	for _, c := range servers {
		names = append(names, fmt.Sprintf("  %14s", harness.ShortName(c.Server)))
		units = append(units, figures("µs", "part", "gain"))
		whole = append(whole, figures(micro(c.CPUMicros), "100%", ""))
	}
	line("", names, "differs")
	line("", units, "by µs")
	for _, i := range t.shown() {
		var cells []string
		for _, c := range servers {
			row := c.Rows[i]
			if row.CPUMicros == 0 {
				cells = append(cells, figures("–", "", ""))
				continue
			}
			cells = append(cells, figures(micro(row.CPUMicros), percent(row.Share), gain(row.Ceiling)))
		}
		difference := ""
		if two {
			difference = differs(servers[0], servers[1], int(i))
		}
		line(i.String(), cells, difference)
	}
	difference := ""
	if two {
		difference = signedMicro(servers[1].CPUMicros - servers[0].CPUMicros)
	}
	line("all", whole, difference)
	for _, g := range groups {
		var cells []string
		for _, c := range servers {
			part := c.sum(g.has)
			cells = append(cells, figures(micro(part), percent(part/c.CPUMicros), ""))
		}
		line(g.name, cells, "")
	}
}

// groups are sums over the rows.
var groups = []struct {
	name string
	has  func(category) bool
}{
	{"  of it kernel", category.isKernel},
	{"  of it Go's runtime", category.isRuntime},
	{"  of it the server", func(c category) bool { return !c.isKernel() && !c.isRuntime() }},
}

// sum is what a group of categories comes to, in µs per request.
func (c WhereServer) sum(has func(category) bool) (sum float64) {
	for i, row := range c.Rows {
		if has(category(i)) {
			sum += row.CPUMicros
		}
	}
	return sum
}

// fewSamples is when a part of one percent rests on five of them.
const fewSamples = 500

// notes are what a reader must know to read the table.
func (t *WhereTable) notes() []string {
	least, worst := t.Servers[0].Samples, 0.0
	for _, c := range t.Servers {
		least = min(least, c.Samples)
		for _, row := range c.Rows {
			worst = max(worst, row.Error)
		}
	}
	out := []string{
		"gain: how much faster the server would be if that part cost nothing at all (Amdahl). No change to it can bring more.",
		fmt.Sprintf("The whole is the kernel's clock, the parts are samples: %s at the least, so a part is good to ±%.1f points.", console.Thousands(least), 100*worst),
	}
	if len(t.stages()) == 2 {
		out = append(out, "differs: only where these samples can tell a difference. Each column is a recording of its own; what a step brings, make compare measures.")
	}
	if least < fewSamples {
		out = append(out, "These are few samples, too few for the small parts: --duration 20s takes more.")
	}
	if t.Source == goSource {
		out = append(out, "The CPU profile of Go does not see into the kernel: TCP send holds its softirq and wake-ups.")
	} else {
		out = append(out, "softirq: the client's receiving, which over loopback runs within the server's send.")
	}
	return out
}

// markdown is the table for a document: µs and part of each server.
func (t *WhereTable) markdown(out io.Writer) error {
	fmt.Fprintf(out, "Server CPU time per request on %s, by %s: µs, part of the whole, and the ceiling of what a change there can bring.\n\n| |", t.Workload, t.Source)
	servers := t.stages()
	for _, c := range servers {
		fmt.Fprintf(out, " %s |", harness.ShortName(c.Server))
	}
	fmt.Fprint(out, "\n| --- |"+strings.Repeat(" ---: |", len(servers))+"\n")
	for _, i := range t.shown() {
		fmt.Fprintf(out, "| %s |", i)
		for _, c := range servers {
			row := c.Rows[i]
			fmt.Fprintf(out, " %.2f (%s, +%s) |", row.CPUMicros, percent(row.Share), percent(row.Ceiling))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprint(out, "| **all** |")
	for _, c := range servers {
		fmt.Fprintf(out, " **%.2f** |", c.CPUMicros)
	}
	fmt.Fprintln(out)
	for _, line := range t.notes() {
		fmt.Fprintf(out, "\n%s\n", line)
	}
	return nil
}

func (t *WhereTable) write(folder string, tell func(string, ...any)) error {
	path := filepath.Join(folder, "where-"+t.Workload)
	err := writeFile(path+".json", func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(t)
	})
	if err == nil {
		err = writeFile(path+".md", t.markdown)
	}
	if err == nil {
		tell("written: %s.json and .md", path)
	}
	return err
}

// ask has the learner predict, for the first and the last server, before
// anything is measured. No answer is no guess. Its error is that of ctx.
func ask(ctx context.Context, in io.Reader, out io.Writer, servers []run.Server, w workload.Workload) (map[string]category, error) {
	fmt.Fprintf(out, "Where will the CPU time of a request go, on %s?\n\n", w.Name)
	for i := range categories {
		say(out, fmt.Sprintf("%3d  %-*s ", i+1, nameWidth, category(i)), strings.Repeat(" ", nameWidth+6), categoryNotes[i])
	}
	fmt.Fprintln(out)
	asked := []string{servers[0].Name}
	if last := servers[len(servers)-1].Name; last != asked[0] {
		asked = append(asked, last)
	}
	guesses := map[string]category{}
	lines := console.Lines(ctx, in)
	for _, name := range asked {
		n, err := console.Choose(ctx, lines, out, "The largest part of "+name, categories)
		if n == 0 {
			return guesses, err
		}
		guesses[name] = category(n - 1)
	}
	return guesses, nil
}

// judge says how good the guesses were.
func (t *WhereTable) judge(out io.Writer, guesses map[string]category) {
	if len(guesses) == 0 {
		return
	}
	fmt.Fprintln(out)
	for _, c := range t.Servers {
		guessed, ok := guesses[c.Server]
		if !ok {
			continue
		}
		largest := c.largest()
		if guessed == largest {
			say(out, "", "  ", fmt.Sprintf("%s: right, %s is the largest, with %s.", harness.ShortName(c.Server), largest, percent(c.Rows[largest].Share)))
			continue
		}
		place := 1
		for _, row := range c.Rows {
			if row.Share > c.Rows[guessed].Share {
				place++
			}
		}
		say(out, "", "  ", fmt.Sprintf("%s: the largest is %s, with %s. You guessed %s: %s, number %d. An optimisation of it could bring at most +%s.",
			harness.ShortName(c.Server), largest, percent(c.Rows[largest].Share), guessed, percent(c.Rows[guessed].Share), place, percent(c.Rows[guessed].Ceiling)))
	}
}
