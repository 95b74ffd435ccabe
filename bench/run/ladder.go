package run

import (
	"fmt"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/report"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// step is what is known of a stage beside its code.
type step struct {
	published string
	targets   []target // where its step must show
}

type target struct {
	workload string
	metric   report.Metric
}

// idleWorkload is where the memory of idle connections is looked at.
const idleWorkload = "idle1k"

var steps = map[string]step{
	"stage0": {published: "27.5 K"},
	"stage1": {published: "with stage2", targets: []target{{workload.Hello, report.Speed}, {"c1", report.Speed}}},
	"stage2": {published: "132 K", targets: []target{{workload.Hello, report.Speed}}},
	"stage3": {published: "140 K", targets: []target{{"browser", report.Speed}}},
	"stage4": {published: "159 K with more", targets: []target{{"pipelined", report.Speed}, {"body64k", report.Speed}}},
	"stage5": {published: "–", targets: []target{{workload.Hello, report.Speed}, {idleWorkload, report.HeldMemory}}},
}

// PublishedNote says what the published column is, and is not.
const PublishedNote = "Published: what the documents say, measured on another machine with 4 threads, with other code: compare steps, not numbers. 132 K is stage1 and stage2 together; 159 K came with six more changes."

// Again is what the second appearance of a server is called, for the noise floor.
const Again = " again"

// Ladder puts the main job into b: every stage on hello, and each stage and the
// one before it on the stage's target workloads; the last stage twice, as the
// noise floor. ceiling may be nil.
func (b *Bench) Ladder(stages []Server, ceiling *Server) error {
	b.Published = PublishedNote
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
	twin := last
	twin.Name += Again
	if err := put(twin, workload.Hello); err != nil {
		return err
	}
	if ceiling != nil {
		if err := put(*ceiling, workload.Hello); err != nil {
			return err
		}
		b.compare(report.Pair, workload.Hello, report.Speed, last, *ceiling)
	}
	b.compare(report.Noise, workload.Hello, report.Speed, twin, last)
	b.compare(report.Noise, workload.Hello, report.CPU, twin, last)
	for i, s := range stages {
		if i == 0 {
			continue
		}
		b.compare(report.Step, workload.Hello, report.Speed, s, stages[i-1])
		b.compare(report.Step, workload.Hello, report.CPU, s, stages[i-1])
		b.compare(report.Total, workload.Hello, report.Speed, s, stages[0])
		b.compare(report.Total, workload.Hello, report.CPU, s, stages[0])
		for _, t := range steps[short(s.Name)].targets {
			if b.Brief && t.workload != workload.Hello {
				continue
			}
			if b.Generator == Wrk {
				if w, err := workload.ByName(t.workload); err == nil && WrkCan(w) != nil {
					continue
				}
			}
			for _, each := range []Server{stages[i-1], s} {
				if err := put(each, t.workload); err != nil {
					return err
				}
			}
			b.compare(report.Target, t.workload, t.metric, s, stages[i-1])
		}
	}
	return nil
}

// Pair puts the comparison of two servers under one workload into b.
func (b *Bench) Pair(base, head Server, w workload.Workload) {
	twin := base
	twin.Name += Again
	for _, s := range []Server{base, head, twin} {
		b.Items = append(b.Items, Item{Server: s, Workload: w})
	}
	for _, metric := range b.metrics() {
		b.compare(report.Pair, w.Name, metric, head, base)
	}
	for _, metric := range b.metrics() {
		b.compare(report.Noise, w.Name, metric, twin, base)
	}
}

// Generators puts the comparison of the embedded generator with wrk into b: the
// CPU time that each needs for a request, on one and the same server.
func (b *Bench) Generators(s Server, workloads []workload.Workload) {
	b.Generator = Embedded + " and " + Wrk
	embedded, wrk := s, s
	embedded.Name, wrk.Name = Embedded, Wrk
	for _, w := range workloads {
		b.Items = append(b.Items, Item{Server: embedded, Workload: w, Generator: Embedded}, Item{Server: wrk, Workload: w, Generator: Wrk})
		b.compare(report.Pair, w.Name, report.ClientCost, embedded, wrk)
		b.compare(report.Pair, w.Name, report.Speed, embedded, wrk)
		b.compare(report.Pair, w.Name, report.CPU, embedded, wrk)
	}
}

func (b *Bench) compare(kind report.Kind, workload string, metric report.Metric, head, base Server) {
	b.Ratios = append(b.Ratios, report.Ratio{Kind: kind, Workload: workload, Metric: metric, Head: head.Name, Base: base.Name})
}

// Short is a stage without what its step is about: "stage3".
func Short(name string) string { return short(name) }

func short(name string) string {
	s, _, _ := strings.Cut(name, "-")
	return s
}

// Targets are the workloads on which a stage is looked at, hello first. Where
// memory is what must show there is no speed to see.
func Targets(stage string) []string {
	out := []string{workload.Hello}
	for _, t := range steps[short(stage)].targets {
		if t.metric == report.Speed && t.workload != workload.Hello {
			out = append(out, t.workload)
		}
	}
	return out
}

// Published is what the documents say of a server, "" for those they do not know.
func Published(name string) string {
	// A stage with other flags, files or workers is not what they speak of.
	if !stageFolder.MatchString(name) {
		return ""
	}
	return steps[short(name)].published
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
