package profile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/qps-ladder/qps-ladder/bench/report"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// measure puts the change to the test with the bench's own method, and says what
// came of it.
func (j *journey) measure(ctx context.Context, b *run.Bench) error {
	workloads, err := j.turn.workloads()
	if err != nil {
		return err
	}
	for _, w := range workloads {
		if len(j.turn.Parts) == 0 {
			b.Pair(j.base, j.changed, w)
			continue
		}
		j.chain(b, w)
	}
	round := 0
	b.Progress = func(p run.Progress) {
		if p.Round != round {
			round = p.Round
			j.tell("round %d of %d, %s left", p.Round, p.Rounds, p.Left.Round(1e9))
		}
	}
	d, err := b.Run(ctx)
	switch {
	case run.Ended(err):
		return errors.New("stopped: too little was measured to say anything")
	case err != nil:
		return err
	}
	if err := d.Failure(); err != nil {
		return err
	}
	fmt.Fprintf(j.out, "Measured in %d rounds, all of it in each\n", d.Method.Rounds)
	j.row("%-9s %-27s %-19s %s", "workload", "", "requests per second", "server CPU")
	for i := range d.Ratios {
		r := &d.Ratios[i]
		if r.Metric != report.Speed {
			continue
		}
		cpu := find(d.Ratios, r.Head, r.Base, r.Workload, report.CPU)
		j.row("%-9s %-27s %-19s %s", r.Workload, r.Head+" / "+j.shortBase(r.Base), r.Ratio.Format(), cpu.Ratio.Format())
	}
	fmt.Fprintln(j.out)
	for _, line := range j.verdict(d, workloads) {
		j.say("%s", line)
	}
	fmt.Fprintln(j.out)
	j.paragraph("To remember", j.turn.Lesson)
	return nil
}

// shortBase keeps the column narrow: a server against itself says so already.
func (j *journey) shortBase(name string) string {
	if name == j.changed.Name {
		return "early"
	}
	return name
}

// allOfThem is the name of a stage with all parts.
const allOfThem = "all of them"

// chain compares each part alone, and all together, with a stage without any.
func (j *journey) chain(b *run.Bench, w workload.Workload) {
	again := j.changed
	again.Name += run.Again
	all := j.base
	all.Name = allOfThem
	for _, s := range append(append([]run.Server{j.changed}, j.single...), all, again) {
		b.Items = append(b.Items, run.Item{Server: s, Workload: w})
		if s.Name == j.changed.Name {
			continue
		}
		kind := report.Pair
		if s.Name == again.Name {
			kind = report.Noise
		}
		for _, m := range []report.Metric{report.Speed, report.CPU} {
			b.Ratios = append(b.Ratios, report.Ratio{Kind: kind, Workload: w.Name, Metric: m, Head: s.Name, Base: j.changed.Name})
		}
	}
}

func find(ratios []report.Ratio, head, base, workload string, metric report.Metric) report.Ratio {
	for _, r := range ratios {
		if r.Head == head && r.Base == base && r.Workload == workload && r.Metric == metric {
			return r
		}
	}
	return report.Ratio{}
}

// outcomeOf says what a ratio of CPU time or of speed means for the change.
type outcomeOf string

const (
	better outcomeOf = "better"
	worse  outcomeOf = "worse"
	same   outcomeOf = "no difference that this run can tell"
)

// judgeRatio reads a ratio's interval, whichever direction is the good one.
func judgeRatio(r report.Ratio) outcomeOf {
	switch stats.Judge(r.Ratio) {
	case stats.Higher:
		if r.Metric.LessIsBetter() {
			return worse
		}
		return better
	case stats.Lower:
		if r.Metric.LessIsBetter() {
			return better
		}
		return worse
	}
	return same
}

// verdict says what came of it, and whether that is what was to be expected.
func (j *journey) verdict(d *report.Document, workloads []workload.Workload) (lines []string) {
	if len(j.turn.Parts) > 0 {
		return j.verdictOfParts(d, workloads[0])
	}
	var speed, cpu report.Ratio // of the first workload, which is the one that the turn is about
	for i, w := range workloads {
		s := find(d.Ratios, j.changed.Name, j.base.Name, w.Name, report.Speed)
		c := find(d.Ratios, j.changed.Name, j.base.Name, w.Name, report.CPU)
		lines = append(lines, fmt.Sprintf("%s: requests per second: %s; server CPU: %s", w.Name, judgeRatio(s), judgeRatio(c)))
		if i == 0 {
			speed, cpu = s, c
		}
	}
	lines = append(lines, noiseLine(d))
	expected := map[string]outcomeOf{expectSame: same, expectWorse: worse}[j.turn.Expect]
	found := []outcomeOf{judgeRatio(speed), judgeRatio(cpu)}
	within := abs(speed.Ratio.Median-1) <= noiseOf(d, report.Speed) && abs(cpu.Ratio.Median-1) <= noiseOf(d, report.CPU)
	switch {
	case expected == same && found[0] == same && found[1] == same:
		lines = append(lines, "That is what was to be expected.")
	case within:
		lines = append(lines, fmt.Sprintf("Expected was: %s. What was found is no larger than noise: --time 2m takes a closer look.", expected))
	case expected == worse && slices.Contains(found, worse) && !slices.Contains(found, better):
		lines = append(lines, "That is what was to be expected.")
	default:
		lines = append(lines, fmt.Sprintf("Expected was: %s. This machine says otherwise; believe it, if a second run says the same.", expected))
	}
	return lines
}

// verdictOfParts goes by the CPU time, which tells smaller differences than the
// speed does.
func (j *journey) verdictOfParts(d *report.Document, w workload.Workload) (lines []string) {
	cpu := func(head string) report.Ratio { return find(d.Ratios, head, j.changed.Name, w.Name, report.CPU) }
	lines = append(lines, "Server CPU time per request, against the stage without any of them:")
	noise := noiseOf(d, report.CPU)
	told := func(r report.Ratio) bool { return judgeRatio(r) == better && abs(r.Ratio.Median-1) > noise }
	alone, product := 0, 1.0
	for i, s := range j.single {
		r := cpu(s.Name)
		product *= r.Ratio.Median
		words := "lost in noise"
		if told(r) {
			alone++
			words = "better"
		}
		lines = append(lines, fmt.Sprintf("%s: %+.1f%%, %s: %s", s.Name, 100*(r.Ratio.Median-1), words, j.turn.Parts[i].What))
	}
	all := cpu(allOfThem)
	lines = append(lines,
		fmt.Sprintf("%s: %+.1f%%; one after the other they would make %+.1f%%", allOfThem, 100*(all.Ratio.Median-1), 100*(product-1)), noiseLine(d))
	if told(all) {
		return append(lines, fmt.Sprintf("That is what was to be expected: alone, %d of the %d can be told from noise; all of them together can.", alone, len(j.single)))
	}
	return append(lines, "Expected was that all of them together can be told from noise. In this run they cannot: --time 2m takes a closer look.")
}

// noiseLine says how far a server is from itself.
func noiseLine(d *report.Document) string {
	return fmt.Sprintf("A server against itself differs by up to %s in requests per second and %s in CPU time here: what is smaller is noise.",
		percent(noiseOf(d, report.Speed)), percent(noiseOf(d, report.CPU)))
}

// noiseOf is the outermost bound of the noise rows.
func noiseOf(d *report.Document, metric report.Metric) (most float64) {
	for _, r := range d.Ratios {
		if r.Kind == report.Noise && r.Metric == metric {
			most = max(most, abs(r.Ratio.Median-1), abs(r.Ratio.Low-1), abs(r.Ratio.High-1))
		}
	}
	return most
}

func abs(v float64) float64 { return max(v, -v) }
