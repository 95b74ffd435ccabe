package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/stats"
)

const (
	// agreement is within what two runs on one machine should give the same ratio.
	agreement = 0.03
	// disturbed is the share of the CPUs' time from which steal or other processes are worth a warning.
	disturbed = 0.02
)

// remark fills in the notes. published is the line about the documents' figures, if they stand in the table.
func (d *Document) remark(published string) {
	m := d.Method
	where := fmt.Sprintf("co-located: server and generator share CPU %s, so every row is at the limit of that CPU", list(m.ServerCPUs))
	switch {
	case m.Layout == CoLocated && m.Rate > 0:
		where = fmt.Sprintf("co-located: server and generator share CPU %s", list(m.ServerCPUs))
	case m.Layout == Shared:
		where = fmt.Sprintf("shared: server and generator both may use CPUs %s", list(m.ServerCPUs))
	case m.Layout == Split:
		where = fmt.Sprintf("split: server on CPUs %s, generator on CPUs %s", list(m.ServerCPUs), list(m.LoadCPUs))
	}
	rounds := fmt.Sprintf("%d rounds", m.Rounds)
	if m.Rounds == 1 {
		rounds = "1 round"
	}
	d.note("%s of %.2g s each (%.2g s warm-up), %s. Generator: %s. Took %.0f s.", rounds, m.Seconds, m.Warmup, where, m.Generator, m.Took)
	d.note("Ratios are taken within a round; median, then the bounds of its %.0f%% order-statistic interval.", 100*stats.Confidence)
	for _, r := range d.Rows {
		if r.Workload == d.Workloads[0].Name && !slices.ContainsFunc(d.Ratios, func(r Ratio) bool { return r.Metric == ClientCost }) {
			d.note("The generator itself used %.1f µs of CPU per request, %s on %s.", r.ClientCPU.Median, Label(r.Server), r.Workload)
			break
		}
	}
	if m.Rate > 0 {
		d.note("An open loop: %s requests a second were due, and latency counts from when each was.", number(m.Rate))
		for _, r := range d.Rows {
			if r.Unsent > 0 || r.RequestsPerSecond.Median < 0.99*m.Rate {
				d.note("%s on %s did not keep up with the rate: %s a second were answered in time.", r.Server, r.Workload, number(r.RequestsPerSecond.Median))
			}
		}
	}
	if published != "" {
		d.note("%s", published)
	}
	d.noteNoise()
	if m.Steal >= disturbed {
		d.note("Disturbed: the hypervisor took %.1f%% of the CPUs' time.", 100*m.Steal)
	}
	if m.Others >= disturbed {
		d.note("Disturbed: other processes used %.1f%% of the CPUs' time.", 100*m.Others)
	}
	for _, r := range d.Rows {
		if r.ClientBound {
			d.note("* Client-bound: %s on %s kept its CPUs only %.0f%% busy; the generator was the limit. Server CPU per request still counts.", r.Server, r.Workload, 100*r.Busy)
		}
	}
	for _, line := range d.Remarks {
		d.note("%s", line)
	}
	for _, line := range d.failures() {
		d.note("! %s", line)
	}
	if d.Ended != Complete {
		d.note("Not complete: %s.", d.Ended)
	}
}

func (d *Document) noteNoise() {
	for _, r := range d.Ratios {
		if r.Kind != Noise || r.Metric != Speed || !r.Ratio.Measured() {
			continue
		}
		text := fmt.Sprintf("Noise floor: %s against itself on %s gives %s", Label(r.Base), r.Workload, short(r.Ratio))
		if floor := math.Max(math.Abs(r.Ratio.Low-1), math.Abs(r.Ratio.High-1)); r.Ratio.Bounded() {
			text += fmt.Sprintf("; believe no difference below %.1f%%", 100*floor)
		}
		d.note("%s.", text)
	}
}

func (d *Document) note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

// Against compares this run's ratios with those of an earlier one, if both were
// measured in the same way on the same machine, and notes whether they agree.
func (d *Document) Against(old *Document) {
	same := old.Method.Layout == d.Method.Layout && old.Method.Generator == d.Method.Generator && old.Method.Workers == d.Method.Workers &&
		old.Machine.CPU == d.Machine.CPU && old.Machine.CPUs == d.Machine.CPUs && old.Machine.Kernel == d.Machine.Kernel
	if !same {
		return
	}
	var apart []string
	compared, overlapping, widest := 0, 0, 0.0
	for _, now := range d.Ratios {
		i := slices.IndexFunc(old.Ratios, func(r Ratio) bool {
			return r.Kind == now.Kind && r.Workload == now.Workload && r.Metric == now.Metric && r.Head == now.Head && r.Base == now.Base
		})
		if i < 0 || !now.Ratio.Bounded() || !old.Ratios[i].Ratio.Bounded() || old.Ratios[i].Ratio.Median == 0 || now.Kind == Noise {
			continue
		}
		compared++
		before := old.Ratios[i].Ratio
		if change := now.Ratio.Median/before.Median - 1; math.Abs(change) > agreement {
			if before.Low <= now.Ratio.High && now.Ratio.Low <= before.High {
				overlapping++
			}
			widest = max(widest, before.Spread(), now.Ratio.Spread())
			apart = append(apart, fmt.Sprintf("%s to %s on %s (%s): %s then, %s now", Label(now.Head), Label(now.Base), now.Workload, now.Metric, short(before), short(now.Ratio)))
		}
	}
	when := old.Created.Format("2006-01-02 15:04 UTC")
	switch {
	case compared == 0:
	case len(apart) == 0:
		d.note("The run of %s agrees: all %d ratios within %.0f%%.", when, compared, 100*agreement)
	default:
		d.note("The run of %s differs by more than %.0f%% in %d of %d ratios: %s. %s", when, 100*agreement, len(apart), compared, strings.Join(apart, "; "), d.why(old, len(apart), overlapping, widest))
	}
}

// why looks for the reason of two runs that differ in so many ratios, of which
// some have intervals that overlap; widest is the largest spread among them.
func (d *Document) why(old *Document, apart, overlapping int, widest float64) string {
	var reasons []string
	if widest > agreement && overlapping > 0 {
		reasons = append(reasons, fmt.Sprintf("the rounds spread by up to %.1f%%, and in %d of these %d the two intervals overlap", 100*widest, overlapping, apart))
	}
	for _, run := range []struct {
		name string
		of   *Document
	}{{"then", old}, {"now", d}} {
		if m := run.of.Method; m.Steal >= disturbed || m.Others >= disturbed {
			reasons = append(reasons, fmt.Sprintf("%s %.1f%% of the CPUs' time was stolen and %.1f%% went to other processes", run.name, 100*m.Steal, 100*m.Others))
		}
		if run.of.Method.Revision != d.Method.Revision {
			reasons = append(reasons, fmt.Sprintf("the source was another (%s)", run.of.Method.Revision))
		}
		for _, r := range run.of.Ratios {
			if r.Kind == Noise && r.Metric == Speed && r.Ratio.Spread() > agreement {
				reasons = append(reasons, fmt.Sprintf("%s a server differed from itself by up to %.1f%%", run.name, 100*r.Ratio.Spread()))
			}
		}
	}
	if old.Method.Seconds != d.Method.Seconds {
		reasons = append(reasons, fmt.Sprintf("rounds of %.2g s then, of %.2g s now", old.Method.Seconds, d.Method.Seconds))
	}
	if len(reasons) == 0 {
		return "Neither steal time nor other processes explain it: the machine changed between the runs (clock, neighbours, memory)."
	}
	return "Possible reasons: " + strings.Join(reasons, "; ") + "."
}

func list(cpus []int) string {
	texts := make([]string, len(cpus))
	for i, cpu := range cpus {
		texts[i] = fmt.Sprint(cpu)
	}
	return strings.Join(texts, ", ")
}

// Failure is an error when any answer was wrong or any connection missing.
func (d *Document) Failure() error {
	if lines := d.failures(); len(lines) > 0 {
		more := ""
		if len(lines) > 1 {
			more = fmt.Sprintf(" (and %d more lines like it in the notes)", len(lines)-1)
		}
		return fmt.Errorf("not every answer was right: %s%s", lines[0], more)
	}
	return nil
}
