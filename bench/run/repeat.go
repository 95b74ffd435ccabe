package run

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// ofCapacity is the share of what the slower server serves at which servers are compared at a rate:
// all can serve that, and none is near its limit.
const ofCapacity = 0.5

// repeat plans what is to be measured again: servers whose requests per second were compared although
// one of them was not the limit. At one rate that all can serve, CPU time per request and latency can
// be compared, since both do the same work in the same time. It is false when there is nothing to do;
// else Items and Rounds are those of the repeat.
func (b *Bench) repeat(d *results.Document) bool {
	if b.NoRepeat || b.Rate > 0 {
		return false
	}
	d.Build("")
	var items []Item
	for _, w := range d.Workloads {
		var asked []results.Ratio
		var servers []string
		for _, r := range d.Ratios {
			if r.Workload != w.Name || r.Metric != results.RequestsPerSecond || r.Kind == results.Noise || w.Reconnect ||
				!d.Unlimited(r.Head, w.Name) && !d.Unlimited(r.Base, w.Name) ||
				slices.ContainsFunc(asked, func(other results.Ratio) bool { return other.Head == r.Head && other.Base == r.Base }) {
				continue
			}
			asked = append(asked, r)
			for _, name := range []string{r.Base, r.Head} {
				if !slices.Contains(servers, name) {
					servers = append(servers, name)
				}
			}
		}
		slowest := math.Inf(1)
		for _, name := range servers {
			row, _ := d.Row(name, w.Name)
			slowest = min(slowest, row.RequestsPerSecond.Median)
		}
		rate := roundDown(ofCapacity * slowest)
		if len(servers) == 0 || rate < 1 {
			continue
		}
		again := b.atRate(w.Name, servers, rate)
		if len(again) == 0 {
			continue
		}
		items = append(items, again...)
		twin := again[0]
		twin.Server.Name += Again
		items = append(items, twin)
		metrics := []results.Metric{results.ServerCPU, results.LatencyP50, results.LatencyP99}
		for _, r := range asked {
			b.Compare(results.Pair, again[0].Name, Server{Name: r.Head}, Server{Name: r.Base}, metrics...)
		}
		b.Compare(results.Noise, again[0].Name, twin.Server, again[0].Server, metrics...)
	}
	if len(items) == 0 {
		return false
	}
	d.Ratios = b.Ratios
	b.Half = nil // the repeat has all in every round
	b.Items, b.Rounds = items, max(min(d.Method.Rounds, stats.MinimumRounds), d.Method.Rounds/2)
	return true
}

// HalfOfCapacity is half of what a server serves on a workload in a closed loop: a rate at which those
// that are faster can be compared with it.
func (b *Bench) HalfOfCapacity(ctx context.Context, s Server, w workload.Workload) (float64, error) {
	const looks = 3
	var served []float64
	for range looks {
		m, err := b.measure(ctx, Item{Server: s, Workload: w})
		if err != nil {
			return 0, err
		}
		served = append(served, m.RequestsPerSecond)
	}
	rate := roundDown(ofCapacity * stats.Median(served))
	if rate < 1 {
		return 0, fmt.Errorf("%s did not answer on %s", s.Name, w.Name)
	}
	return rate, nil
}

// atRate are the items of the servers on a workload, at a rate.
func (b *Bench) atRate(name string, servers []string, rate float64) (out []Item) {
	for _, item := range b.Items {
		if item.Workload.Name == name && slices.Contains(servers, item.Server.Name) && item.Generator == "" && b.Generator == Embedded {
			item.Rate, item.Name = rate, RateName(item.Workload, rate)
			out = append(out, item)
		}
	}
	return out
}

// RateName is what a workload at a rate is called: "c1@12k".
func RateName(w workload.Workload, rate float64) string {
	if rate >= 1000 {
		return fmt.Sprintf("%s@%gk", w.Name, rate/1000)
	}
	return fmt.Sprintf("%s@%g", w.Name, rate)
}

// roundDown leaves two digits.
func roundDown(v float64) float64 {
	if v <= 0 {
		return 0
	}
	power := math.Pow(10, math.Floor(math.Log10(v))-1)
	return math.Floor(v/power) * power
}
