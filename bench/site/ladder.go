package site

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/profile"
	"github.com/qps-ladder/qps-ladder/bench/report"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

const costTitle = "µs of server CPU per request on hello"

// ladderFiles are where Markdown has the picture of the ladder from, by scheme.
var ladderFiles = map[string]string{report.LightScheme: "docs/data/ladder-light.svg", report.DarkScheme: "docs/data/ladder-dark.svg"}

// costs are the bars of the picture of the ladder: what a request was measured to cost each stage
// and the C loop, and the shares that a profile found in it.
func (b *builder) costs() ([]report.Cost, error) {
	where, err := readWhere(b.root)
	if err != nil {
		return nil, err
	}
	d := b.results.documents[0]
	var out []report.Cost
	for i, server := range append(slices.Clone(b.stages), run.BareC) {
		row, ok := d.Row(server, workload.Hello)
		if !ok {
			if server == run.BareC { // where there is no C compiler
				continue
			}
			return nil, fmt.Errorf("ladder.json has no %s on hello", server)
		}
		c := report.Cost{Name: strings.Replace(strings.TrimPrefix(server, "stage"), "-", " ", 1), Micros: row.ServerCPUMicros.Median, Here: kilo(row.RequestsPerSecond.Median), Published: "–"}
		if at := slices.IndexFunc(d.Servers, func(s results.Server) bool { return s.Name == server }); at >= 0 && d.Servers[at].Published != "" {
			c.Published = d.Servers[at].Published
		}
		if server == run.BareC {
			c.Name, c.Apart = "bare C loop", true
		} else if i > 0 {
			compared, _, err := b.results.ratio(workload.Hello, server, b.stages[i-1], "cpu")
			if err != nil {
				return nil, err
			}
			c.Same = compared.Better() == 0
		}
		if b.mine.ladder != nil {
			if row, ok := b.mine.ladder.documents[0].Row(server, workload.Hello); ok {
				c.Mine = row.ServerCPUMicros.Median
			}
		}
		if at := slices.IndexFunc(where.Servers, func(s profile.WhereServer) bool { return s.Server == server }); at >= 0 {
			c.Shares = where.Servers[at].Shares()
		}
		out = append(out, c)
	}
	return out, nil
}

// readWhere reads the table of where the CPU time goes.
func readWhere(root string) (*profile.WhereTable, error) {
	w, err := profile.ReadWhere(filepath.Join(root, "docs", "data", "where.json"))
	if err != nil {
		return nil, fmt.Errorf("%w; make docs-refresh measures it", err)
	}
	return w, nil
}

// progression is the picture of the whole ladder.
func (b *builder) progression() (string, error) {
	costs, err := b.costs()
	if err != nil {
		return "", err
	}
	return "<figure class=\"diagram\" tabindex=\"0\">\n" + strings.TrimSpace(report.CostSVG(costs, report.PageScheme, costTitle)) + "\n</figure>" + b.measuredLine(), nil
}
