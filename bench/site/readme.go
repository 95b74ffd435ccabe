package site

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/results"
)

// ladderTable is the table of all stages, in Markdown.
func (b *builder) ladderTable() (string, error) {
	d := b.results.documents[0]
	var out strings.Builder
	virtual := ""
	if d.Machine.Virtual != "" {
		virtual = "a virtual machine with "
	}
	fmt.Fprintf(&out, "\nMeasured on %s with `make docs-refresh` on %s%d CPUs (%s, Linux %s, Go %s), server and generator\n%s, 100 connections, %d rounds; `docs/data/ladder.json` has more of it.\n\n",
		d.Created.Format("2006-01-02"), virtual, d.Machine.CPUs, d.Machine.CPU, strings.TrimPrefix(d.Machine.Kernel, "Linux "), strings.TrimPrefix(d.Machine.Go, "go"), d.Method.Layout, d.Method.Rounds)
	out.WriteString("| stage | req/s, hello | busy | to the one before | on its target, to the one before | server CPU µs | p50 | p99 | calls | allocations | published |\n")
	out.WriteString("| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |\n")
	var errs []error
	ratio := func(head, base, metric string) string {
		compared, _, err := b.results.ratio("hello", head, base, metric)
		errs = append(errs, err)
		return compared.Ratio.Format()
	}
	for i, stage := range b.stages {
		row, ok := d.Row(stage, "hello")
		if !ok {
			return "", fmt.Errorf("ladder.json has no %s on hello", stage)
		}
		number, name, _ := strings.Cut(strings.TrimPrefix(stage, "stage"), "-")
		step, target := "", ""
		if i > 0 {
			step, target = ratio(stage, b.stages[i-1], "ratio"), targets(d, stage)
		}
		published := "–"
		if at := slices.IndexFunc(d.Servers, func(s results.Server) bool { return s.Name == stage }); at >= 0 && d.Servers[at].Published != "" {
			published = d.Servers[at].Published
		}
		fmt.Fprintf(&out, "| %s %s | %s | %s | %s | %s | %.2f | %s | %s | %.2f | %.0f | %s |\n", number, name, console.Thousands(row.RequestsPerSecond.Median), busy(row), step, target,
			row.ServerCPUMicros.Median, microseconds(row.P50Micros.Median), microseconds(row.P99Micros.Median), row.SystemCalls, row.Counters["heap_objects_allocated"], published)
	}
	first, last := b.stages[0], b.stages[len(b.stages)-1]
	if row, ok := d.Row("bare-c", "hello"); ok {
		fmt.Fprintf(&out, "| a bare C loop that parses nothing | %s | %s | stage5 to it: %s | | %.2f | %s | %s | | | |\n", console.Thousands(row.RequestsPerSecond.Median), busy(row), ratio(last, "bare-c", "ratio"),
			row.ServerCPUMicros.Median, microseconds(row.P50Micros.Median), microseconds(row.P99Micros.Median))
	}
	fmt.Fprintf(&out, "\nstage5 to stage0: %s in requests, %s in server CPU per request. stage5 against itself, the noise floor:\n%s. *Busy*: the server, the generator. Where both have no time left, requests per second are the limit of both, and\nserver CPU per request says more.\n",
		ratio(last, first, "ratio"), ratio(last, first, "cpu"), ratio(last+" again", last, "ratio"))
	return out.String(), errors.Join(errs...)
}

// busy is how much of their CPUs' time server and generator had work, as results.Saturation judges it.
func busy(r results.Row) string {
	return fmt.Sprintf("%.0f%%, %.0f%%", 100*r.Busy, 100*r.ClientBusy)
}

// targets says what a step brought where it must show.
func targets(d *results.Document, stage string) string {
	var out []string
	for _, r := range d.Ratios {
		switch {
		case r.Kind != results.Target || r.Head != stage:
		case r.Metric == results.HeldMemory:
			out = append(out, fmt.Sprintf("idle buffer %s B → %s B", console.Thousands(r.BaseValue), console.Thousands(r.HeadValue)))
		case r.Metric == results.RequestsPerSecond && r.Workload == "hello":
			out = append(out, "hello: see left")
		case r.Metric == results.RequestsPerSecond:
			out = append(out, r.Workload+": "+r.Ratio.Format())
		}
	}
	return strings.Join(out, "; ")
}
