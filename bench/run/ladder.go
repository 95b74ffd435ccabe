package run

import (
	"fmt"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// target is where a step must show.
type target struct {
	workload string
	metric   results.Metric
}

// idleWorkload is where the memory of idle connections is looked at.
const idleWorkload = "idle1k"

var targets = map[string][]target{
	"stage1": {{workload.Hello, results.RequestsPerSecond}},
	"stage2": {{workload.Hello, results.RequestsPerSecond}},
	"stage3": {{workload.Hello, results.RequestsPerSecond}, {"browser", results.RequestsPerSecond}},
	"stage4": {{"pipelined", results.RequestsPerSecond}, {"body64k", results.RequestsPerSecond}},
	"stage5": {{workload.Hello, results.RequestsPerSecond}, {idleWorkload, results.HeldMemory}},
}

// Again is what the second appearance of a server is called, for the noise floor.
const Again = " again"

// Ladder puts the main job into b: every stage on hello, and each stage and the one before it on
// the stage's target workloads; on each workload one of them twice, for the noise floor, on hello two. The steps
// on hello are the smaller ones and have every round, the other workloads every second.
// ceiling may be nil.
func (b *Bench) Ladder(stages []Server, ceiling *Server) error {
	b.showPublished = true
	seen := map[string]bool{}
	put := func(s Server, name string) error {
		w, err := workload.ByName(name)
		if err != nil {
			return err
		}
		if key := s.Name + " " + name; !seen[key] {
			seen[key] = true
			b.Items = append(b.Items, Item{Server: s, Workload: w})
		}
		return nil
	}
	for _, s := range stages {
		if err := put(s, workload.Hello); err != nil {
			return err
		}
	}
	last := stages[len(stages)-1]
	// The slowest is not as steady as the fastest, and its steps are among those that are judged.
	for _, s := range []Server{last, stages[0]} {
		if err := b.twice(s, workload.Hello, put); err != nil {
			return err
		}
	}
	if ceiling != nil {
		if err := put(*ceiling, workload.Hello); err != nil {
			return err
		}
		b.Compare(results.Pair, workload.Hello, last, *ceiling, results.RequestsPerSecond)
	}
	for i, s := range stages {
		if i == 0 {
			continue
		}
		b.Compare(results.Step, workload.Hello, s, stages[i-1], results.RequestsPerSecond, results.ServerCPU)
		b.Compare(results.Total, workload.Hello, s, stages[0], results.RequestsPerSecond, results.ServerCPU)
		for _, t := range targets[harness.ShortName(s.Name)] {
			if b.Brief && t.workload != workload.Hello {
				continue
			}
			if b.Generator == Wrk {
				if w, err := workload.ByName(t.workload); err == nil && WrkCan(w) != nil {
					continue
				}
			}
			for _, side := range []Server{stages[i-1], s} {
				if err := put(side, t.workload); err != nil {
					return err
				}
			}
			if t.workload != workload.Hello {
				b.Half = append(b.Half, t.workload)
				if t.metric == results.RequestsPerSecond {
					if err := b.twice(s, t.workload, put); err != nil {
						return err
					}
				}
			}
			b.Compare(results.Target, t.workload, s, stages[i-1], t.metric)
		}
	}
	return nil
}

// twice puts a server into b a second time, for the noise floor of a workload.
func (b *Bench) twice(s Server, workload string, put func(Server, string) error) error {
	twin := s
	twin.Name += Again
	b.Compare(results.Noise, workload, twin, s, b.metrics()...)
	return put(twin, workload)
}

// Pair puts the comparison of two servers under one workload into b.
func (b *Bench) Pair(base, head Server, w workload.Workload) {
	twin := base
	twin.Name += Again
	for _, s := range []Server{base, head, twin} {
		b.Items = append(b.Items, Item{Server: s, Workload: w})
	}
	b.Compare(results.Pair, w.Name, head, base, b.metrics()...)
	b.Compare(results.Noise, w.Name, twin, base, b.metrics()...)
}

// Generators puts the comparison of the embedded generator with wrk into b: the
// CPU time that each needs for a request, on one and the same server.
func (b *Bench) Generators(s Server, workloads []workload.Workload) {
	b.Generator = Embedded + " and " + Wrk
	embedded, wrk := s, s
	embedded.Name, wrk.Name = Embedded, Wrk
	for _, w := range workloads {
		again := embedded
		again.Name += Again
		b.Items = append(b.Items, Item{Server: embedded, Workload: w, Generator: Embedded}, Item{Server: wrk, Workload: w, Generator: Wrk},
			Item{Server: again, Workload: w, Generator: Embedded})
		b.Compare(results.Noise, w.Name, again, embedded, results.ClientCPU, results.RequestsPerSecond, results.ServerCPU)
		b.Compare(results.Pair, w.Name, embedded, wrk, results.ClientCPU, results.RequestsPerSecond, results.ServerCPU)
	}
}

// Compare asks for ratios of head to base.
func (b *Bench) Compare(kind results.Kind, workload string, head, base Server, metrics ...results.Metric) {
	for _, metric := range metrics {
		b.Ratios = append(b.Ratios, results.Ratio{Kind: kind, Workload: workload, Metric: metric, Head: head.Name, Base: base.Name})
	}
}

// Targets are the workloads on which a stage is looked at, hello first. Where
// memory is what must show there is no speed to see.
func Targets(stage string) []string {
	out := []string{workload.Hello}
	for _, t := range targets[harness.ShortName(stage)] {
		if t.metric == results.RequestsPerSecond && t.workload != workload.Hello {
			out = append(out, t.workload)
		}
	}
	return out
}

// CheckGenerator refuses what the generator cannot do.
func (b *Bench) CheckGenerator() error {
	switch b.Generator {
	case Embedded, Embedded + " and " + Wrk:
		return nil
	case Wrk:
		for _, item := range b.Items {
			if err := WrkCan(item.Workload); err != nil {
				return err
			}
		}
		return FindWrk()
	}
	return fmt.Errorf("there is no generator %q: choose %s or %s", b.Generator, Embedded, Wrk)
}
