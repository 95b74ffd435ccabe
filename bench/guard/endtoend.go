package guard

import (
	"context"
	"slices"

	"github.com/qps-ladder/qps-ladder/bench/report"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// EndToEnd drives every stage at both commits, on hello and where its step must
// show. A wrong answer at head is an error, whatever it does to the speed.
func EndToEnd(ctx context.Context, b *run.Bench, base, head []run.Server) ([]Change, *report.Document, error) {
	for i, after := range head {
		for _, name := range run.Targets(after.Name) {
			w, err := workload.ByName(name)
			if err != nil {
				return nil, nil, err
			}
			before := base[i]
			before.Name, after.Name = "base "+run.Short(base[i].Name), "head "+run.Short(head[i].Name)
			b.Items = append(b.Items, run.Item{Server: before, Workload: w}, run.Item{Server: after, Workload: w})
			for _, metric := range []report.Metric{report.Speed, report.CPU} {
				b.Ratios = append(b.Ratios, report.Ratio{Kind: report.Pair, Workload: w.Name, Metric: metric, Head: after.Name, Base: before.Name})
			}
		}
	}
	items := b.Items
	d, err := b.Run(ctx)
	if err != nil {
		return nil, d, err
	}
	found := changes(d)
	// As with the benchmarks: what seems worse has to seem so twice.
	doubtful := map[string]bool{}
	for i, c := range found {
		if c.Past() {
			doubtful[d.Ratios[i].Head+" "+d.Ratios[i].Workload], doubtful[d.Ratios[i].Base+" "+d.Ratios[i].Workload] = true, true
		}
	}
	if len(doubtful) == 0 || d.Failure() != nil {
		return found, d, d.Failure()
	}
	second := *b
	second.Ratios = slices.Clone(b.Ratios)
	second.Items = slices.DeleteFunc(slices.Clone(items), func(i run.Item) bool { return !doubtful[i.Server.Name+" "+i.Workload.Name] })
	again, err := second.Run(ctx)
	if err != nil {
		return nil, d, err
	}
	return confirm(found, slices.DeleteFunc(changes(again), func(c Change) bool { return !c.Ratio.Measured() })), d, again.Failure()
}

func changes(d *report.Document) (out []Change) {
	for _, r := range d.Ratios {
		out = append(out, Change{
			Layer: "end to end", Name: r.Head[len("head "):] + " on " + r.Workload, What: string(r.Metric), Rises: !r.Metric.LessIsBetter(), Ratio: r.Ratio, Limit: EndToEndLimit,
		})
	}
	return out
}
