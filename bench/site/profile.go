package site

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/profile"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// whereTable shows where the CPU time of a request goes, stage by stage: of what the ladder
// measured it to cost, the shares that the profile found. While a profiler looks on, a request
// costs more, and that would be a second price for it.
func (b *builder) whereTable(stages ...string) (string, error) {
	w, err := readWhere(b.root)
	if err != nil {
		return "", err
	}
	head := []string{"µs of server CPU per request on hello"}
	var columns []int
	var prices []float64
	for _, s := range stages {
		row, ok := b.results.documents[0].Row(b.results.server(s), w.Workload)
		if !ok {
			return "", fmt.Errorf("ladder.json has no %s on %s", s, w.Workload)
		}
		prices = append(prices, row.ServerCPUMicros.Median)
		i := slices.IndexFunc(w.Servers, func(x profile.WhereServer) bool { return x.Server == b.results.server(s) })
		if i < 0 {
			return "", fmt.Errorf("where.json has no %s", s)
		}
		columns = append(columns, i)
		head = append(head, html.EscapeString(s))
	}
	g := newGrid("numbers where", head...)
	const tooSmall = 0.002
	for r, row := range w.Servers[columns[0]].Rows {
		cells, any := []string{html.EscapeString(row.Category)}, false
		for k, i := range columns {
			c := w.Servers[i].Rows[r]
			if c.Share < tooSmall {
				cells = append(cells, "–")
				continue
			}
			any = true
			mine := ""
			if price, share := b.mine.where(w.Servers[i].Server, w.Workload, row.Category); price > 0 {
				mine = fmt.Sprintf("%.1f <small>%.0f%%</small>", price*share, 100*share)
			}
			cells = append(cells, fmt.Sprintf(`<span title="for nothing, it would bring %.0f%% more requests at most">%.1f <small>%.0f%%</small></span>`, 100*c.Ceiling, prices[k]*c.Share, 100*c.Share)+beside(mine))
		}
		if any {
			g.row(cells...)
		}
	}
	cells := []string{"<strong>all</strong>"}
	for k, price := range prices {
		mine := ""
		if price, _ := b.mine.where(w.Servers[columns[k]].Server, w.Workload, ""); price > 0 {
			mine = fmt.Sprintf("%.1f", price)
		}
		cells = append(cells, fmt.Sprintf("<strong>%.1f</strong>", price)+beside(mine))
	}
	g.row(cells...)
	return g.String() + fmt.Sprintf(`<p class="measured">The whole is what the ladder measured, the parts are the shares that a profile found, by %s. <code>make where</code></p>`, html.EscapeString(w.Source)), nil
}

// leastGone is the share from which on a frame that a step takes away is outlined and named: below
// it, it may be missing by chance.
const leastGone = 0.01

// flame draws the profiles of a stage as a flame graph, or of two, what the second no longer has,
// and what differs. The stage that a chapter arrives at stands below the one that it came from.
func (b *builder) flame(p *page, stages ...string) (string, error) {
	if p.Step != "" && len(stages) == 1 && b.results.server(stages[0]) == p.step.To {
		stages = []string{b.results.short(p.step.From), stages[0]}
	}
	figure := profile.Figure{ID: "flame-" + strings.Join(stages, "-"), Code: p.codeOf}
	for _, s := range stages {
		g, err := b.graph(s)
		if err != nil {
			return "", err
		}
		g.View = strings.Join(stages, " and ")
		figure.Graphs = append(figure.Graphs, g)
	}
	if len(stages) == 2 {
		before, after := figure.Graphs[0], figure.Graphs[1]
		var gone []string
		names, shares := before.MarkGone(after, leastGone)
		for i, name := range names {
			gone = append(gone, fmt.Sprintf("<code>%s</code> %.1f%%", html.EscapeString(name), 100*shares[i]))
		}
		if len(gone) > 0 {
			figure.Caption = fmt.Sprintf("Outlined is what %s has and %s has not: %s. ", stages[0], stages[1], strings.Join(gone, ", "))
		}
		figure.Graphs = append(figure.Graphs, profile.Difference(before, after))
	}
	if p.step != nil {
		figure.Caption += "A click on a function that is underlined shows its code."
	}
	return strings.TrimSpace(figure.HTML()), nil
}

// graph is the flame graph of a stage: of what the ladder measured a request to cost, the shares
// that the profile has.
func (b *builder) graph(stage string) (*profile.Graph, error) {
	server := b.results.server(stage)
	o, err := readProfile(b.root, b.results.short(server))
	if err != nil {
		return nil, err
	}
	row, ok := b.results.documents[0].Row(server, workload.Hello)
	if !ok {
		return nil, fmt.Errorf("ladder.json has no %s on hello", stage)
	}
	return o.Graph(stage, row.ServerCPUMicros.Median), nil
}

// codeOf is where the page shows the code of a function, which has the name that a profile gives
// it.
func (p *page) codeOf(function string) string {
	name, ours := strings.CutPrefix(function, "main.")
	if p.step == nil || !ours {
		return ""
	}
	name = strings.NewReplacer("(*", "", ")", "").Replace(name)
	for _, f := range p.step.Files {
		for _, h := range f.Hunks {
			if h.Name == name || h.WasName == name {
				return "#" + h.ID
			}
		}
	}
	return ""
}
