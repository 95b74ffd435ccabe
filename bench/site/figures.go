package site

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// The results files in docs/data, in the order in which they are asked.
var resultFiles = []string{"ladder.json", "ablation.json"}

// Files that are asked only by keys that begin with their name and a dot.
const (
	sharedName    = "shared"    // stage0 and stage1 on one CPU together with the generator
	loopsName     = "loops"     // the same with two loops and two CPUs, which the generator shares
	peersName     = "peers"     // servers of other libraries beside the stages
	elsewhereName = "elsewhere" // rows beside the ladder
	summitName    = "summit"    // what the parts of the summit bring
	uringName     = "uring"     // the stage and the bare C loop, each beside its twin with io_uring
)

const ablationName = "ablation" // one of resultFiles

var namedFiles = []string{sharedName, loopsName, peersName, summitName, elsewhereName, uringName}

// results answers what chapters quote from the results files.
type dataFiles struct {
	documents []*results.Document
	files     []string
	stages    []string              // folders
	named     map[string]*dataFiles // of namedFiles; empty in each of them
}

func readResults(root string, stages []string) (*dataFiles, error) {
	r := &dataFiles{stages: stages, named: map[string]*dataFiles{}}
	for _, file := range resultFiles {
		if err := r.read(root, file); err != nil {
			return nil, err
		}
	}
	for _, name := range namedFiles {
		r.named[name] = &dataFiles{stages: stages}
		err := r.named[name].read(root, name+".json")
		if later := name == summitName || name == elsewhereName || name == uringName; later && errors.Is(err, fs.ErrNotExist) {
			continue // their tables say so
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *dataFiles) read(root, file string) error {
	d, err := results.Read(filepath.Join(root, "docs", "data", file))
	if err != nil {
		return fmt.Errorf("no figures to quote: %w; make docs-refresh measures them", err)
	}
	if len(d.Measurements) > 0 {
		// Just measured: of the pairs those stay that ratio is asked for, see prune.
		d.Ratios = slices.DeleteFunc(d.Ratios, func(x results.Ratio) bool { return x.Kind == results.Pair })
	}
	r.documents = append(r.documents, d)
	r.files = append(r.files, file)
	return nil
}

// fileOf finds the file that a key begins with, and the rest of the key.
func (r *dataFiles) fileOf(key string) (of *dataFiles, rest string) {
	name, rest, _ := strings.Cut(key, ".")
	return r.named[name], rest
}

// A figure is one quoted value.
type figure struct {
	text  string // as a reader sees it
	title string // where it comes from
	mine  string // the same on this machine, "" when nobody has measured it
}

// html is the figure as it stands in a page.
func (f figure) html() string {
	mine := ""
	if f.mine != "" {
		mine = ` data-mine="` + html.EscapeString(f.mine) + `"`
	}
	return `<span class="figure" title="` + html.EscapeString(f.title) + `"` + mine + `>` + html.EscapeString(f.text) + `</span>`
}

// has says whether a server stands in a document.
func (r *dataFiles) has(server string) bool {
	return slices.ContainsFunc(r.documents, func(d *results.Document) bool {
		return slices.ContainsFunc(d.Servers, func(s results.Server) bool { return s.Name == server })
	})
}

// server spells a short name out: "stage1" is the stage's folder, and
// "stage5 again" the second appearance of one.
func (r *dataFiles) server(short string) string {
	for _, d := range r.documents {
		if slices.ContainsFunc(d.Servers, func(s results.Server) bool { return s.Name == short }) {
			return short
		}
	}
	word, again, _ := strings.Cut(short, " ")
	if i := slices.IndexFunc(r.stages, func(s string) bool { return harness.ShortName(s) == word }); i >= 0 {
		return strings.TrimSpace(r.stages[i] + " " + again)
	}
	return short
}

// short is the other way round: "stage1" for a stage's folder.
func (r *dataFiles) short(server string) string {
	if slices.Contains(r.stages, server) {
		return harness.ShortName(server)
	}
	return server
}

// with finds the first document that has all the servers under a workload.
func (r *dataFiles) with(workload string, servers ...string) (*results.Document, string, error) {
	for i, d := range r.documents {
		if !slices.ContainsFunc(servers, func(s string) bool {
			_, ok := d.Row(r.server(s), workload)
			return !ok
		}) {
			return d, r.files[i], nil
		}
	}
	return nil, "", fmt.Errorf("none of %s has %s on %s", strings.Join(r.files, ", "), strings.Join(servers, " and "), workload)
}

// figure looks a key up. docs/README.md lists the keys:
//
//	machine.kernel               about the run
//	hello.stage1.qps             workload, server, metric
//	hello.stage1/stage0.ratio    one server to another, paired round by round
//	shared.hello.stage1/stage0.ratio  the same, from shared.json: one of namedFiles
//
// A further ".short" leaves the interval out, ".percent" writes a ratio as a
// change in percent, ".interval" gives a metric its interval.
func (r *dataFiles) figure(key string) (figure, error) {
	if of, rest := r.fileOf(key); of != nil {
		return of.figure(rest)
	}
	parts := strings.Split(key, ".")
	if len(parts) >= 2 && slices.Contains([]string{"machine", "run", "ablation"}, parts[0]) {
		text, err := r.about(parts[0], strings.Join(parts[1:], "."))
		return figure{text: text, title: key}, err
	}
	form := ""
	if n := len(parts); n > 3 && slices.Contains([]string{"short", "percent", "interval"}, parts[n-1]) {
		form, parts = parts[n-1], parts[:n-1]
	}
	if len(parts) < 3 {
		return figure{}, fmt.Errorf("figure %q: want workload.server.metric", key)
	}
	workload, servers, metric := parts[0], parts[1], strings.Join(parts[2:], ".")
	if head, base, pair := strings.Cut(servers, "/"); pair {
		ratio, file, err := r.ratio(workload, head, base, metric)
		if err != nil {
			return figure{}, fmt.Errorf("figure %q: %w", key, err)
		}
		interval := ratio.Ratio
		text := interval.Format()
		switch form {
		case "short":
			text = stats.Short(interval.Median)
		case "percent":
			text = percent(interval.Median)
		}
		return figure{text: text, title: fmt.Sprintf("%s: %s; %d rounds, from %s", key, interval.Format(), interval.Rounds, file)}, nil
	}
	d, file, err := r.with(workload, servers)
	if err != nil {
		return figure{}, fmt.Errorf("figure %q: %w", key, err)
	}
	row, _ := d.Row(r.server(servers), workload)
	m, known := metrics[metric]
	if _, counted := row.Counters[metric]; !known && !counted {
		return figure{}, fmt.Errorf("figure %q: there is no metric or counter %q", key, metric)
	} else if !known {
		return figure{text: perRequest(row.Counters[metric]), title: source(key, file, d)}, nil
	}
	value := m.of(row)
	text := "–" // it was not measured
	if value.Measured() {
		text = m.write(value.Median)
	}
	if form == "interval" && value.Bounded() {
		text += fmt.Sprintf(" [%s–%s]", m.write(value.Low), m.write(value.High))
	}
	return figure{text: text, title: source(key, file, d)}, nil
}

// source says where a figure comes from.
func source(key, file string, d *results.Document) string {
	return fmt.Sprintf("%s, from %s of %s", key, file, d.Created.Format(time.DateOnly))
}

// metrics are those of a row, and how each is written.
var metrics = map[string]struct {
	of    func(results.Row) stats.Interval
	write func(float64) string
}{
	"qps":        {func(r results.Row) stats.Interval { return r.RequestsPerSecond }, kilo},
	"cpu":        {func(r results.Row) stats.Interval { return r.ServerCPUMicros }, microseconds},
	"client-cpu": {func(r results.Row) stats.Interval { return r.ClientCPUMicros }, microseconds},
	"p50":        {func(r results.Row) stats.Interval { return r.P50Micros }, microseconds},
	"p90":        {func(r results.Row) stats.Interval { return r.P90Micros }, microseconds},
	"p99":        {func(r results.Row) stats.Interval { return r.P99Micros }, microseconds},
	"p99.9":      {func(r results.Row) stats.Interval { return r.P999Micros }, microseconds},
	"calls":      {func(r results.Row) stats.Interval { return exact(r.SystemCalls) }, perRequest},
	"server-switches": {func(r results.Row) stats.Interval {
		return perThousand(r.Counters, "server_waits", "server_preemptions")
	}, perRequest},
	"generator-switches": {func(r results.Row) stats.Interval {
		return perThousand(r.Counters, "generator_waits", "generator_preemptions")
	}, perRequest},
	"per-wait":    {func(r results.Row) stats.Interval { return perWait(r.Counters) }, perRequest},
	"gc":          {func(r results.Row) stats.Interval { return exact(r.GCCyclesPerSecond) }, perRequest},
	"held":        {func(r results.Row) stats.Interval { return r.HeldPerConnection }, console.Thousands[float64]},
	"resident":    {func(r results.Row) stats.Interval { return r.ResidentPerConnection }, console.Thousands[float64]},
	"established": {func(r results.Row) stats.Interval { return exact(float64(r.Established)) }, console.Thousands[float64]},
}

// perThousand adds counters up, for a thousand requests.
func perThousand(counters map[string]float64, names ...string) stats.Interval {
	sum := 0.0
	for _, name := range names {
		n, counted := counters[name]
		if !counted {
			return stats.Interval{}
		}
		sum += 1000 * n
	}
	return exact(sum)
}

// perWait is how many requests a server finds each time that it waits for some.
func perWait(counters map[string]float64) stats.Interval {
	if counters["epoll_waits"] == 0 {
		return stats.Interval{}
	}
	return exact(1 / counters["epoll_waits"])
}

func exact(v float64) stats.Interval { return stats.Interval{Median: v, Rounds: 1} }

// ratios are what two servers can be compared by.
var ratios = map[string]results.Metric{
	"ratio": results.RequestsPerSecond, "cpu": results.ServerCPU, "client-cpu": results.ClientCPU, "p50": results.LatencyP50, "p99": results.LatencyP99,
}

// ratio is head over base, paired round by round. A document that still has its rounds gets those
// that are asked for; a pruned one has those that were.
func (r *dataFiles) ratio(workload, head, base, metric string) (results.Ratio, string, error) {
	d, file, err := r.with(workload, head, base)
	if err != nil {
		return results.Ratio{}, "", err
	}
	wanted := results.Ratio{Kind: results.Pair, Workload: workload, Metric: ratios[metric], Head: r.server(head), Base: r.server(base)}
	if wanted.Metric == "" {
		return results.Ratio{}, "", fmt.Errorf("there is no ratio of %q", metric)
	}
	if x, ok := d.Compared(wanted.Head, wanted.Base, workload, wanted.Metric); ok {
		return x, file, nil
	}
	wanted = d.Compare(wanted)
	if !wanted.Ratio.Measured() {
		return wanted, "", fmt.Errorf("%s does not compare %s with %s by %s: make docs-refresh measures what the pages ask for", file, head, base, wanted.Metric)
	}
	d.Ratios = append(d.Ratios, wanted)
	return wanted, file, nil
}

// verdict puts into words what a ratio allows to be said.
func (r *dataFiles) verdict(key string) (string, error) {
	if of, rest := r.fileOf(key); of != nil {
		return of.verdict(rest)
	}
	parts := strings.Split(key, ".")
	if len(parts) != 3 || strings.Count(parts[1], "/") != 1 {
		return "", fmt.Errorf("verdict %q: want workload.head/base.metric", key)
	}
	head, base, _ := strings.Cut(parts[1], "/")
	ratio, _, err := r.ratio(parts[0], head, base, parts[2])
	if err != nil {
		return "", fmt.Errorf("verdict %q: %w", key, err)
	}
	return ratio.Words(), nil
}

// about answers what is not a measured value: the machine and the method.
func (r *dataFiles) about(which, name string) (string, error) {
	d := r.documents[0]
	if which == "ablation" && len(r.documents) > 1 {
		d = r.documents[1]
	}
	text, known := map[string]string{
		"cpu":       d.Machine.CPU,
		"cpus":      fmt.Sprint(d.Machine.CPUs),
		"kernel":    strings.TrimPrefix(d.Machine.Kernel, "Linux "),
		"go":        strings.TrimPrefix(d.Machine.Go, "go"),
		"virtual":   cmp.Or(d.Machine.Virtual, "none that could be found"),
		"date":      d.Created.Format("2 January 2006"),
		"command":   d.Command,
		"rounds":    fmt.Sprint(d.Method.Rounds),
		"seconds":   stats.Short(d.Method.Seconds),
		"layout":    d.Method.Layout,
		"workers":   fmt.Sprint(d.Method.Workers),
		"generator": d.Method.Generator,
		"steal":     fmt.Sprintf("%.1f%%", 100*d.Method.Steal),
		"others":    fmt.Sprintf("%.1f%%", 100*d.Method.Others),
	}[name]
	if !known {
		return "", fmt.Errorf("figure %q: nothing like this is known", which+"."+name)
	}
	return text, nil
}

// kilo writes requests per second as the documents do: 68.2 K.
func kilo(v float64) string {
	if v < 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	if v >= 99_950 {
		return fmt.Sprintf("%.0f K", v/1e3)
	}
	return fmt.Sprintf("%.1f K", v/1e3)
}

// microseconds writes a time given in µs.
func microseconds(v float64) string {
	switch {
	case v >= 9995:
		return fmt.Sprintf("%.1f ms", v/1e3)
	case v >= 999.5:
		return fmt.Sprintf("%.2f ms", v/1e3)
	case v >= 99.95:
		return fmt.Sprintf("%.0f µs", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f µs", v)
	}
	return fmt.Sprintf("%.2f µs", v)
}

func perRequest(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return console.Thousands(v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v < 0.01:
		return "under 0.01"
	}
	return fmt.Sprintf("%.2f", v)
}

// percent writes a ratio as a change: 1.33 is +33%.
func percent(ratio float64) string {
	change := 100 * (ratio - 1)
	text := fmt.Sprintf("%.0f%%", math.Abs(change))
	if math.Abs(change) < 9.95 {
		text = fmt.Sprintf("%.1f%%", math.Abs(change))
	}
	if change < 0 {
		return "−" + text
	}
	return "+" + text
}
