package guard

import (
	"context"
	"slices"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Plan puts every stage at both commits into b, on hello and where its step must
// show, as far as this machine allows: see run.Bench.Fit.
func Plan(b *run.Bench, base, head []run.Server) error {
	for i, after := range head {
		for _, name := range run.Targets(after.Name) {
			w, err := workload.ByName(name)
			if err != nil {
				return err
			}
			before := base[i]
			before.Name, after.Name = "base "+harness.ShortName(base[i].Name), "head "+harness.ShortName(head[i].Name)
			b.Items = append(b.Items, run.Item{Server: before, Workload: w}, run.Item{Server: after, Workload: w})
			b.Compare(results.Pair, w.Name, after, before, results.RequestsPerSecond, results.ServerCPU)
		}
	}
	return b.Fit(load.ReadLimits())
}

// EndToEnd drives what Plan has planned. A wrong answer at head is an error,
// whatever it does to the speed. What was measured before an error is returned
// with it; the document is never nil.
func EndToEnd(ctx context.Context, b *run.Bench) ([]Change, *results.Document, error) {
	items := b.Items
	d, err := b.Run(ctx)
	found := changes(d)
	if err != nil {
		return found, d, err
	}
	// As with the benchmarks: what seems worse has to seem so twice.
	doubtful := map[string]bool{}
	for _, r := range d.Ratios {
		if change(r).Past() {
			doubtful[r.Head+" "+r.Workload], doubtful[r.Base+" "+r.Workload] = true, true
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
		return found, d, err
	}
	return confirm(found, changes(again)), d, again.Failure()
}

// changes are those that were measured.
func changes(d *results.Document) (out []Change) {
	for _, r := range d.Ratios {
		if r.Ratio.Measured() {
			out = append(out, change(r))
		}
	}
	return out
}

func change(r results.Ratio) Change {
	return Change{
		Layer: "end to end", Name: r.Head[len("head "):] + " on " + r.Workload, What: string(r.Metric), Rises: !r.Metric.LessIsBetter(), Ratio: r.Ratio, Limit: EndToEndLimit,
	}
}
