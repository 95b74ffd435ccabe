package profile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// measure puts the change to the test with the bench's own method, and says what
// came of it.
func (x *experiment) measure(ctx context.Context, b *run.Bench) (d *results.Document, verdict []string, err error) {
	workloads, err := x.turn.workloads()
	if err != nil {
		return nil, nil, err
	}
	for _, w := range workloads {
		if len(x.turn.Parts) == 0 {
			b.Pair(x.base, x.changed, w)
			continue
		}
		x.chain(b, w)
	}
	round := 0
	b.Progress = func(p run.Progress) {
		if p.Round != round {
			round = p.Round
			x.step("round %d of %d: %s left", p.Round, p.Rounds, p.Left.Round(1e9))
		}
	}
	d, err = b.Run(ctx)
	x.step("")
	switch {
	case run.Ended(err):
		return nil, nil, errors.New("stopped: too little was measured to say anything")
	case err != nil:
		return nil, nil, err
	}
	if err := d.Failure(); err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(x.out, "Measured in %d rounds, all of it in each\n", d.Method.Rounds)
	x.row("%-9s %-27s %-19s %s", "workload", "", "requests per second", "server CPU")
	for i := range d.Ratios {
		r := &d.Ratios[i]
		if r.Metric != results.RequestsPerSecond {
			continue
		}
		cpu, _ := d.Compared(r.Head, r.Base, r.Workload, results.ServerCPU)
		x.row("%-9s %-27s %-19s %s", r.Workload, r.Head+" / "+x.shortBase(r.Base), r.Ratio.Format(), cpu.Ratio.Format())
	}
	fmt.Fprintln(x.out)
	verdict = x.verdict(d, workloads)
	for _, line := range verdict {
		x.say("%s", line)
	}
	fmt.Fprintln(x.out)
	x.paragraph("To remember", x.turn.Lesson)
	return d, verdict, nil
}

// shortBase keeps the column narrow: a server against itself says so already.
func (x *experiment) shortBase(name string) string {
	if name == x.changed.Name {
		return "early"
	}
	return name
}

// allOfThem is the name of a stage with all parts.
const allOfThem = "all of them"

// chain compares each part alone, and all together, with a stage without any.
func (x *experiment) chain(b *run.Bench, w workload.Workload) {
	again := x.changed
	again.Name += run.Again
	all := x.base
	all.Name = allOfThem
	for _, s := range append(append([]run.Server{x.changed}, x.single...), all, again) {
		b.Items = append(b.Items, run.Item{Server: s, Workload: w})
		if s.Name == x.changed.Name {
			continue
		}
		kind := results.Pair
		if s.Name == again.Name {
			kind = results.Noise
		}
		b.Compare(kind, w.Name, s, x.changed, results.RequestsPerSecond, results.ServerCPU)
	}
}

// effect says what a ratio of CPU time or of throughput means for the change.
type effect string

const (
	better effect = "faster"
	worse  effect = "slower"
	same   effect = "cannot tell"
)

// judgeRatio reads a ratio's verdict, whichever direction is the good one.
func judgeRatio(r results.Ratio) effect {
	switch r.Better() {
	case 1:
		return better
	case -1:
		return worse
	}
	return same
}

// verdict says what came of it, and whether that is what was to be expected.
func (x *experiment) verdict(d *results.Document, workloads []workload.Workload) (lines []string) {
	if len(x.turn.Parts) > 0 {
		return x.verdictOfParts(d, workloads[0])
	}
	var throughput, cpu results.Ratio // of the first workload, which is the one that the turn is about
	for i, w := range workloads {
		s, _ := d.Compared(x.changed.Name, x.base.Name, w.Name, results.RequestsPerSecond)
		c, _ := d.Compared(x.changed.Name, x.base.Name, w.Name, results.ServerCPU)
		lines = append(lines, fmt.Sprintf("%s: requests per second: %s; server CPU: %s", w.Name, judgeRatio(s), judgeRatio(c)))
		if i == 0 {
			throughput, cpu = s, c
		}
	}
	lines = append(lines, noiseLine(d))
	expected := map[string]effect{expectSame: same, expectWorse: worse}[x.turn.Expect]
	found := []effect{judgeRatio(throughput), judgeRatio(cpu)}
	switch {
	case expected == same && found[0] == same && found[1] == same, expected == worse && slices.Contains(found, worse) && !slices.Contains(found, better):
		lines = append(lines, "That is what was to be expected.")
	case found[0] == same && found[1] == same:
		lines = append(lines, fmt.Sprintf("Expected was: %s. What was found is no larger than noise: --time 2m takes a closer look.", expected))
	default:
		lines = append(lines, fmt.Sprintf("Expected was: %s. This machine says otherwise; believe it, if a second run says the same.", expected))
	}
	return lines
}

// verdictOfParts goes by the CPU time, which tells smaller differences than the
// throughput does.
func (x *experiment) verdictOfParts(d *results.Document, w workload.Workload) (lines []string) {
	cpu := func(head string) results.Ratio {
		r, _ := d.Compared(head, x.changed.Name, w.Name, results.ServerCPU)
		return r
	}
	lines = append(lines, "Server CPU time per request, against the stage without any of them:")
	alone, product := 0, 1.0
	for i, s := range x.single {
		r := cpu(s.Name)
		product *= r.Ratio.Median
		words := "lost in noise"
		if judgeRatio(r) == better {
			alone++
			words = string(better)
		}
		lines = append(lines, fmt.Sprintf("%s: %+.1f%%, %s: %s", s.Name, 100*(r.Ratio.Median-1), words, x.turn.Parts[i].What))
	}
	all := cpu(allOfThem)
	lines = append(lines,
		fmt.Sprintf("%s: %+.1f%%; one after the other they would make %+.1f%%", allOfThem, 100*(all.Ratio.Median-1), 100*(product-1)), noiseLine(d))
	if judgeRatio(all) == better {
		return append(lines, fmt.Sprintf("That is what was to be expected: alone, %d of the %d can be told from noise; all of them together can.", alone, len(x.single)))
	}
	return append(lines, "Expected was that all of them together can be told from noise. In this run they cannot: --time 2m takes a closer look.")
}

// noiseLine says how far a server is from itself.
func noiseLine(d *results.Document) string {
	return fmt.Sprintf("A server against itself differs by up to %s in requests per second and %s in CPU time here: what is smaller is noise.",
		percent(noiseOf(d, results.RequestsPerSecond)), percent(noiseOf(d, results.ServerCPU)))
}

// noiseOf is the highest of the noise floors.
func noiseOf(d *results.Document, metric results.Metric) (most float64) {
	for _, r := range d.Ratios {
		if r.Kind == results.Noise && r.Metric == metric {
			most = max(most, r.Floor)
		}
	}
	return most
}
