package site

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/lab"
	"github.com/qps-ladder/qps-ladder/bench/stats"
)

// labsName is the part of a refresh that runs the labs, the folder of docs/data with their results,
// a file for each, and what a figure of a lab begins with.
const labsName = "labs"

// labs answers what pages quote from the labs.
type labs struct {
	all     []*lab.Lab
	results map[string]*lab.Result // by name; none for a lab that was never measured
}

func readLabs(root string) (*labs, error) {
	all, err := lab.All(root)
	if err != nil {
		return nil, err
	}
	l := &labs{all: all, results: map[string]*lab.Result{}}
	for _, each := range all {
		path := labFile(root, each.Name)
		if _, err := os.Stat(path); err != nil {
			continue // a page that quotes it says so
		}
		if l.results[each.Name], err = lab.ReadResult(path); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// published are the documents' figures that labs quote, so that pages can.
func (l *labs) published() (all []published) {
	for _, each := range l.all {
		for _, p := range each.Published {
			all = append(all, published{Figure: p.Figure, In: p.In, What: p.Text})
		}
	}
	return all
}

func labFile(root, name string) string {
	return filepath.Join(root, "docs", "data", labsName, name+".json")
}

func (l *labs) find(name string) (*lab.Lab, *lab.Result, error) {
	i := slices.IndexFunc(l.all, func(x *lab.Lab) bool { return x.Name == name })
	if i < 0 {
		return nil, nil, fmt.Errorf("there is no lab %q", name)
	}
	if l.results[name] == nil {
		return nil, nil, fmt.Errorf("lab %s has no result: make docs-refresh ARGS='--only labs --lab %s' measures it", name, name)
	}
	return l.all[i], l.results[name], nil
}

// way finds a way by LAB.CASE.WAY.
func (l *labs) way(key string) (r *lab.Result, c lab.CaseResult, w lab.WayResult, err error) {
	parts := strings.Split(key, ".")
	if len(parts) < 3 {
		return nil, c, w, fmt.Errorf("want lab.case.way")
	}
	if _, r, err = l.find(parts[0]); err != nil {
		return nil, c, w, err
	}
	c, ok := r.Case(parts[1])
	i := slices.IndexFunc(c.Ways, func(w lab.WayResult) bool { return w.Name == parts[2] })
	if !ok || i < 0 {
		return nil, c, w, fmt.Errorf("lab %s has no %s/%s", parts[0], parts[1], parts[2])
	}
	return r, c, c.Ways[i], nil
}

// figure looks up LAB.CASE.WAY.METRIC: value (with its unit), ratio, ratio.short, allocs, or a unit
// of the lab's other columns.
func (l *labs) figure(key string) (figure, error) {
	r, c, w, err := l.way(key)
	parts := strings.SplitN(key, ".", 4)
	if err == nil && len(parts) < 4 {
		err = fmt.Errorf("want lab.case.way.metric")
	}
	if err != nil {
		return figure{}, fmt.Errorf("figure %q: %w", labsName+"."+key, err)
	}
	title := fmt.Sprintf("%s: %d rounds on %s, %s", key, r.Rounds, r.Created.Format("2 January 2006"), c.Verdict(w))
	switch metric := parts[3]; metric {
	case "value":
		return figure{text: labValue(w.Value.Median, r.Unit), title: title}, nil
	case "ratio", "ratio.short":
		if w.Name == c.Ways[0].Name {
			return figure{}, fmt.Errorf("figure %q: the baseline has no ratio", labsName+"."+key)
		}
		if metric == "ratio" {
			return figure{text: strings.Replace(w.Ratio.Format(), " [", "× [", 1), title: title}, nil
		}
		return figure{text: stats.Short(w.Ratio.Median) + "×", title: title}, nil
	case "allocs":
		return figure{text: lab.Amount(w.Allocs), title: title}, nil
	default:
		also, ok := w.Also[metric]
		if !ok {
			return figure{}, fmt.Errorf("figure %q: lab %s has no %s", labsName+"."+key, r.Lab, metric)
		}
		return figure{text: labValue(also.Median, metric), title: title}, nil
	}
}

// labValue writes a value with its unit: "12.3 ns".
func labValue(v float64, unit string) string {
	unit = strings.TrimSuffix(unit, "/op")
	switch {
	case unit == "ns" && v >= 1e6:
		return lab.Amount(v/1e6) + " ms"
	case unit == "ns" && v >= 1e4:
		return lab.Amount(v/1e3) + " µs"
	}
	return lab.Amount(v) + " " + unit
}

// verdict says of LAB.CASE.WAY whether it is faster or slower than the baseline.
func (l *labs) verdict(key string) (string, error) {
	_, c, w, err := l.way(key)
	if err != nil {
		return "", fmt.Errorf("verdict %q: %w", labsName+"."+key, err)
	}
	return c.Verdict(w), nil
}

// figure is one of the labs, or of the results files.
func (b *builder) figure(key string) (figure, error) {
	if rest, ok := strings.CutPrefix(key, labsName+"."); ok {
		return b.labs.figure(rest)
	}
	f, err := b.results.figure(key)
	if err == nil && b.mine.ladder != nil && !strings.HasPrefix(key, "ablation.") {
		if of, _ := b.results.fileOf(key); of == nil {
			if mine, err := b.mine.ladder.figure(key); err == nil {
				f.mine = mine.text
			}
		}
	}
	return f, err
}

// verdict is the same for a verdict.
func (b *builder) verdict(key string) (string, error) {
	if rest, ok := strings.CutPrefix(key, labsName+"."); ok {
		return b.labs.verdict(rest)
	}
	return b.results.verdict(key)
}

// labTable is the result of a lab, with what the documents say and what it is worth.
func (b *builder) labTable(name string) (string, error) {
	l, r, err := b.labs.find(name)
	if err != nil {
		return "", err
	}
	head := []string{"", html.EscapeString(r.Unit)}
	for _, unit := range l.Also {
		head = append(head, html.EscapeString(unit))
	}
	g := newGrid("numbers lab", append(head, "allocations", "to the baseline", "")...)
	for _, c := range l.Cases {
		got, ok := r.Case(c.Name)
		if !ok {
			return "", fmt.Errorf("lab %s has changed since it was measured: case %s", name, c.Name)
		}
		// The machine may not have had every way that needs an experiment.
		c.Ways = slices.DeleteFunc(slices.Clone(c.Ways), func(w lab.Way) bool {
			return w.Experiment && !slices.ContainsFunc(got.Ways, func(have lab.WayResult) bool { return have.Name == w.Name })
		})
		if len(got.Ways) != len(c.Ways) {
			return "", fmt.Errorf("lab %s has changed since it was measured: case %s", name, c.Name)
		}
		fmt.Fprintf(&g.b, `<tr><th scope="rowgroup" colspan="%d"><strong>%s</strong><br>%s</th></tr>`, len(head)+3, html.EscapeString(c.Name), inlineCode(c.Text))
		for i, w := range got.Ways {
			if w.Name != c.Ways[i].Name {
				return "", fmt.Errorf("lab %s has changed since it was measured: %s/%s", name, c.Name, w.Name)
			}
			cells := []string{
				fmt.Sprintf(`<span title="%s">%s</span>`, html.EscapeString(c.Ways[i].Text), html.EscapeString(w.Name)),
				html.EscapeString(lab.Amount(w.Value.Median)) + beside(b.mine.lab(name, c.Name, w.Name, func(_ lab.CaseResult, w lab.WayResult) string { return lab.Amount(w.Value.Median) })),
			}
			for _, unit := range l.Also {
				cells = append(cells, html.EscapeString(lab.Amount(w.Also[unit].Median)))
			}
			cells = append(cells, html.EscapeString(lab.Amount(w.Allocs)))
			if i == 0 {
				g.row(append(cells, "baseline", fmt.Sprintf(`<span title="to itself: %s">±%.1f%%</span>`, html.EscapeString(got.Noise.Format()), 100*got.Floor()))...)
				continue
			}
			class := map[string]string{"faster": "better", "slower": "worse"}[got.Verdict(w)]
			word := got.Verdict(w)
			g.row(append(cells,
				fmt.Sprintf(`<span class="%s">%s</span>`, class, ratioText(w.Ratio))+beside(b.mine.lab(name, c.Name, w.Name, func(_ lab.CaseResult, w lab.WayResult) string { return w.Ratio.Format() })),
				fmt.Sprintf(`<span class="%s">%s</span>`, class, html.EscapeString(word))+beside(b.mine.lab(name, c.Name, w.Name, lab.CaseResult.Verdict)))...)
		}
	}
	out := g.String() + fmt.Sprintf(`<p class="measured">Measured on %s, %s, %d CPUs, Go %s; %d rounds, ratios within a round, medians with intervals of at least 95%%; behind the baseline, by how much it differed from itself. <code>make lab NAME=%s</code></p>`,
		r.Created.Format("2 January 2006"), html.EscapeString(r.Machine.CPU), r.Machine.CPUs, html.EscapeString(strings.TrimPrefix(r.Machine.Go, "go")), r.Rounds, name)
	for _, p := range l.Published {
		numbers := make([]string, len(p.In))
		for i, n := range p.In {
			numbers[i] = fmt.Sprintf(`<a href="%s#document-%d">%d</a>`, sourcesPage, n, n)
		}
		out += fmt.Sprintf(`<p class="measured">Published: %s, %s [%s].</p>`, html.EscapeString(p.Figure), inlineCode(p.Text), strings.Join(numbers, ", "))
	}
	return out + fmt.Sprintf(`<p class="measured">For a request: %s</p>`, inlineCode(l.WorthWords(b.root))), nil
}

// sourcesPage lists the documents.
const sourcesPage = "sources.html"

// labList lists the labs with their questions.
func (b *builder) labList() (string, error) {
	g := newGrid("labs", "lab", "question")
	for _, l := range b.labs.all {
		name := html.EscapeString(l.Name)
		if i := slices.IndexFunc(b.pages, func(p *page) bool { return p.source == "docs/labs/"+l.Name+".md" }); i >= 0 {
			name = fmt.Sprintf(`<a href="%s">%s</a>`, b.pages[i].out, name)
		} else {
			return "", fmt.Errorf("lab %s has no page docs/labs/%s.md", l.Name, l.Name)
		}
		g.row(name, inlineCode(l.Question))
	}
	return g.String(), nil
}

// labs runs the labs, or some of them, each into a file of its own. One that lacks something on this
// machine keeps the result that it has.
func (r *refreshing) labs() error {
	all, err := lab.All(r.root)
	if err != nil {
		return err
	}
	for _, l := range all {
		if len(r.Labs) > 0 && !slices.Contains(r.Labs, l.Name) {
			continue
		}
		fmt.Fprintf(r.Out, "lab %s\n", l.Name)
		file := filepath.Join(r.work, "lab.json")
		args := []string{"lab", l.Name, "--guess=false", "--json", file}
		if r.Quick {
			args = append(args, "--quick")
		}
		if err := r.start(nil, args...); err != nil {
			if old, _ := lab.ReadResult(labFile(r.root, l.Name)); old != nil && len(r.Labs) == 0 {
				fmt.Fprintf(r.Out, "lab %s was not measured; its result of %s stays\n", l.Name, old.Created.Format("2 January 2006"))
				continue
			}
			return err
		}
		result, err := lab.ReadResult(file)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(labFile(r.root, l.Name)), 0o755); err != nil {
			return err
		}
		if err := writeData(result, labFile(r.root, l.Name)); err != nil {
			return err
		}
	}
	return nil
}
