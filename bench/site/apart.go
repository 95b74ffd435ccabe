package site

import (
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Data that a page shows whole, as one table, and quotes nothing from.
const (
	rateName       = "rate"     // latency and CPU time at one rate
	networkName    = "network"  // stages over three networks
	machinesFolder = "machines" // runs of the ladder on other machines
)

// whole reads such data. Without it the page says how it is measured.
func (b *builder) whole(name string) (d *results.Document, missing string, err error) {
	d, err = results.Read(filepath.Join(b.root, "docs", "data", name+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, `<p class="measured">Not measured yet: <code>` + asTyped("ladder docs refresh --only "+name) + `</code></p>`, nil
	}
	return d, "", err
}

// madeBy says under a table how its figures came about.
func madeBy(d *results.Document) string {
	return fmt.Sprintf(`<p class="measured">Measured on %s, %s, %d CPUs, server and generator %s; medians of %d rounds. <code>%s</code></p>`,
		d.Created.Format("2 January 2006"), html.EscapeString(d.Machine.CPU), d.Machine.CPUs, html.EscapeString(d.Method.Layout), d.Method.Rounds, html.EscapeString(asTyped(d.Command)))
}

// asTyped is a command as one types it in the checkout, where make has built it.
func asTyped(command string) string {
	if strings.HasPrefix(command, "ladder ") {
		return "bench/out/bin/" + command
	}
	return command
}

// rateTable is what the stages do at one and the same rate.
func (b *builder) rateTable() (string, error) {
	d, missing, err := b.whole(rateName)
	if d == nil {
		return missing, err
	}
	w := d.Workloads[0].Name
	g := newGrid("numbers", fmt.Sprintf("%s, %s a second", html.EscapeString(w), console.Thousands(d.Method.Rate)), "server CPU", "p50", "p99", "p99.9", "CPU to "+html.EscapeString(harness.ShortName(d.Servers[0].Name)))
	for _, s := range d.Servers {
		r, ok := d.Row(s.Name, w)
		if !ok || d.IsTwin(s.Name) {
			continue
		}
		ratio := ""
		for _, x := range d.Ratios {
			if x.Kind == results.Pair && x.Head == s.Name && x.Metric == results.ServerCPU {
				ratio = spoken(x)
			}
		}
		g.row(html.EscapeString(harness.ShortName(s.Name)), microseconds(r.ServerCPUMicros.Median), microseconds(r.P50Micros.Median), microseconds(r.P99Micros.Median), microseconds(r.P999Micros.Median), ratio)
	}
	return g.String() + madeBy(d), nil
}

// networkTable is what lies between the stages and their clients, and what it costs.
func (b *builder) networkTable() (string, error) {
	d, missing, err := b.whole(networkName)
	if d == nil {
		return missing, err
	}
	g := newGrid("numbers", "", "requests per second", "to the loopback", "server CPU", "saturated")
	for _, w := range d.Workloads {
		if w.Rate > 0 {
			continue
		}
		for _, s := range d.Servers {
			r, ok := d.Row(s.Name, w.Name)
			if !ok || d.IsTwin(s.Name) {
				continue
			}
			ratio := ""
			for _, x := range d.Ratios {
				if x.Kind == results.Pair && x.Workload == w.Name && x.Head == s.Name && x.Metric == results.RequestsPerSecond && strings.HasSuffix(x.Base, " over lo") && !strings.HasSuffix(s.Name, " over lo") {
					ratio = spoken(x)
				}
			}
			g.row(html.EscapeString(w.Name+", "+shortStage(s.Name)), console.Thousands(r.RequestsPerSecond.Median), ratio, microseconds(r.ServerCPUMicros.Median), html.EscapeString(string(r.Saturated)))
		}
	}
	return g.String() + madeBy(d), nil
}

var stageName = regexp.MustCompile(`^(stage[0-9]+)(-[a-z0-9-]+)?`)

// shortStage shortens a stage's name at the head of another one.
func shortStage(name string) string { return stageName.ReplaceAllString(name, "$1") }

// machinesTable compares the steps on several machines, a row each.
func (b *builder) machinesTable() (string, error) {
	files, err := filepath.Glob(filepath.Join(b.root, "docs", "data", machinesFolder, "*.json"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("docs/data/%s holds no run: %w", machinesFolder, err)
	}
	slices.Sort(files)
	type step struct{ head, workload string }
	var steps []step
	var documents []*results.Document
	for _, file := range files {
		d, err := results.Read(file)
		if err != nil {
			return "", err
		}
		documents = append(documents, d)
		for _, r := range d.Ratios {
			s := step{r.Head, r.Workload}
			if (r.Kind == results.Step || r.Kind == results.Target) && r.Metric == results.RequestsPerSecond && !slices.Contains(steps, s) {
				steps = append(steps, s)
			}
		}
	}
	slices.SortStableFunc(steps, func(x, y step) int { return strings.Compare(x.head, y.head) })
	head := []string{"machine", "stage0, requests per second"}
	for _, s := range steps {
		head = append(head, html.EscapeString(harness.ShortName(s.head)+", "+s.workload))
	}
	g := newGrid("numbers many machines", head...)
	for i, d := range documents {
		m := d.Machine
		about := fmt.Sprintf("%s, %d CPUs, %s, %s", m.CPU, m.CPUs, strings.TrimPrefix(m.Kernel, "Linux "), d.Method.Layout)
		for _, f := range m.Facts() {
			name := f[0]
			if name != strings.ToUpper(name) { // an abbreviation stays one
				name = strings.ToLower(name[:1]) + name[1:]
			}
			about += "; " + name + " " + f[1]
		}
		cells := []string{"<strong>" + html.EscapeString(strings.TrimSuffix(filepath.Base(files[i]), ".json")) + "</strong><br><small>" + html.EscapeString(about) + "</small>", "–"}
		if r, ok := d.Row(d.Servers[0].Name, d.Workloads[0].Name); ok {
			cells[1] = console.Thousands(r.RequestsPerSecond.Median)
		}
		for _, s := range steps {
			cell := "–"
			for _, r := range d.Ratios {
				if (r.Kind == results.Step || r.Kind == results.Target) && r.Metric == results.RequestsPerSecond && r.Head == s.head && r.Workload == s.workload {
					cell = stacked(r)
				}
			}
			cells = append(cells, cell)
		}
		g.row(cells...)
	}
	return g.String(), nil
}

// mostNoise is the largest noise floor of a run that may stand for a machine: beyond it the steps on hello cannot be told.
const mostNoise = 0.2

var machineName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// AddMachine puts the run of a ladder that file holds into docs/data/machines of the repository at
// root, without its rounds, and returns the path.
func AddMachine(root, name, file string) (string, error) {
	if !machineName.MatchString(name) {
		return "", fmt.Errorf("%q is no name for a machine: use small letters, digits and hyphens, such as xeon-gold-4", name)
	}
	d, err := results.Read(file)
	if err != nil {
		return "", fmt.Errorf("%w; make ladder measures it", err)
	}
	switch {
	case !d.IsLadder():
		return "", fmt.Errorf("%s is no run of the ladder: use what make ladder has left", file)
	case d.Ended != results.Complete:
		return "", fmt.Errorf("%s did not complete: %s", file, d.Ended)
	case d.Failure() != nil:
		return "", fmt.Errorf("%s: %w", file, d.Failure())
	case d.Floor(workload.Hello, results.RequestsPerSecond) > mostNoise:
		return "", fmt.Errorf("%s: on hello a server differed from itself by more than %.0f%%, or was not measured twice: measure again when nothing else runs", file, 100*mostNoise)
	}
	folder := filepath.Join(root, "docs", "data", machinesFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(folder, name+".json")
	return path, writeWhole(d, path)
}

// writeWhole writes a document without its rounds.
func writeWhole(d *results.Document, path string) error {
	d.Measurements = nil
	return writeData(d, path)
}
