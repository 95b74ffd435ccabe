package run

import (
	"fmt"
	"slices"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// Fit looks beforehand at what this machine sets to the number of connections.
// A workload that cannot be had is left out; that, and what is capped, goes into
// b.Remarks. It is an error when nothing is left.
func (b *Bench) Fit(limits load.Limits) error {
	var first error
	skipped := map[string]bool{}
	seen := map[string]bool{}
	for _, item := range b.Items {
		w := item.Workload
		if seen[w.Name] {
			continue
		}
		seen[w.Name] = true
		if err := limits.CheckDescriptors(w); err != nil {
			skipped[w.Name] = true
			err = fmt.Errorf("workload %s: %w", w.Name, err)
			if first == nil {
				first = err
			}
			b.Remarks = append(b.Remarks, fmt.Sprintf("Skipped: %v.", err))
			continue
		}
		b.Remarks = append(b.Remarks, limits.Capped(w, max(1, b.loadThreads(w)), true)...)
	}
	b.Items = slices.DeleteFunc(b.Items, func(i Item) bool { return skipped[i.Workload.Name] })
	b.Ratios = slices.DeleteFunc(b.Ratios, func(r results.Ratio) bool { return skipped[r.Workload] })
	if len(b.Items) == 0 && first != nil {
		return first
	}
	return nil
}

// Grid puts every server on every workload into b, where it can serve it, with a
// ratio of each head to each base; the first head appears twice, as the noise floor.
func (b *Bench) Grid(servers []Server, workloads []workload.Workload, heads, bases []Server) {
	for _, w := range workloads {
		has := map[string]bool{}
		put := func(s Server) {
			if s.Can == nil || s.Can(w) {
				has[s.Name] = true
				b.Items = append(b.Items, Item{Server: s, Workload: w})
			}
		}
		for _, s := range servers {
			put(s)
		}
		for _, head := range heads {
			for _, base := range bases {
				if head.Name == base.Name || !has[head.Name] || !has[base.Name] {
					continue
				}
				b.Compare(results.Pair, w.Name, head, base, b.metrics()...)
			}
		}
		if len(heads) > 0 && has[heads[0].Name] {
			twin := heads[0]
			twin.Name += Again
			put(twin)
			b.Compare(results.Noise, w.Name, twin, heads[0], b.metrics()...)
		}
	}
}

// FloorOfEach puts the first server of every workload into b once more, as the noise floor.
func (b *Bench) FloorOfEach() {
	seen := map[string]bool{}
	for _, item := range b.Items {
		if !seen[item.Workload.Name] {
			seen[item.Workload.Name] = true
			twin := item
			twin.Server.Name += Again
			b.Items = append(b.Items, twin)
			b.Compare(results.Noise, item.Workload.Name, twin.Server, item.Server, b.metrics()...)
		}
	}
}

// metrics are what a comparison looks at: at a given rate the requests per second are known
// beforehand.
func (b *Bench) metrics() []results.Metric {
	if b.Rate > 0 {
		return []results.Metric{results.ServerCPU, results.LatencyP50, results.LatencyP99}
	}
	return []results.Metric{results.RequestsPerSecond, results.ServerCPU}
}

// Scale puts stages with several numbers of workers into b, each against the
// same stage with the first number, and the stages against the first of them.
func (b *Bench) Scale(stages []Server, workers []int, workloads []workload.Workload) {
	with := func(s Server, n int) Server {
		s.Name, s.Workers = fmt.Sprintf("%s ×%d", s.Name, n), n
		return s
	}
	for _, w := range workloads {
		for _, s := range stages {
			first := with(s, workers[0])
			for _, n := range workers {
				each := with(s, n)
				b.Items = append(b.Items, Item{Server: each, Workload: w})
				if each.Name != first.Name {
					b.Compare(results.Pair, w.Name, each, first, results.RequestsPerSecond)
				}
				if s.Name != stages[0].Name {
					b.Compare(results.Pair, w.Name, each, with(stages[0], n), results.RequestsPerSecond)
				}
			}
		}
		twin := with(stages[0], workers[0])
		twin.Name += Again
		b.Items = append(b.Items, Item{Server: twin, Workload: w})
		b.Compare(results.Noise, w.Name, twin, with(stages[0], workers[0]), results.RequestsPerSecond)
	}
}
