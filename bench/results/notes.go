package results

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/stats"
)

const (
	// agreement is within what two runs on one machine should give the same ratio.
	agreement = 0.03
	// disturbed is the share of the CPUs' time from which steal or other processes are worth a
	// warning.
	disturbed = 0.02
	// useless is from where on a run says more about its disturbances than about servers.
	useless = 0.10
)

// percent writes a share with a digit behind the point as long as that says something.
func percent(share float64) string {
	if share >= 0.1 {
		return fmt.Sprintf("%.0f%%", 100*share)
	}
	return fmt.Sprintf("%.1f%%", 100*share)
}

// Where says on which CPUs server and generator run, and what the kernel shows of their cores.
// virtual is the kind of the virtual machine, "" for none.
func (m Method) Where(virtual string) string {
	cpus := func(all []int) string {
		if len(all) == 1 {
			return "CPU " + list(all)
		}
		return "CPUs " + list(all)
	}
	var where string
	switch m.Layout {
	case Shared:
		return fmt.Sprintf("shared: server and generator both may use %s", cpus(m.ServerCPUs))
	case Split:
		where = fmt.Sprintf("split: server on %s, generator on %s", cpus(m.ServerCPUs), cpus(m.LoadCPUs))
	default:
		where = fmt.Sprintf("co-located: server and generator share %s", cpus(m.ServerCPUs))
		if m.Rate == 0 {
			where += ", so every row is at the limit of that CPU, and the first steps show less than with a CPU for each"
		}
		return where
	}
	switch {
	case m.Cores == 0:
		where += " (the kernel does not tell which CPUs share a core)"
	case m.Cores == 1:
		where += " (threads of one core: they disturb each other)"
	case virtual != "":
		where += fmt.Sprintf(" (%d cores, as far as a virtual machine tells)", m.Cores)
	default:
		where += fmt.Sprintf(" (%d cores)", m.Cores)
	}
	return where
}

// rounds says how many there were, and of which workloads fewer.
func (d *Document) rounds() string {
	text := fmt.Sprintf("%d rounds", d.Method.Rounds)
	if d.Method.Rounds == 1 {
		text = "1 round"
	}
	fewer := map[int][]string{}
	for _, w := range d.Workloads {
		if w.Rounds > 0 && w.Rounds < d.Method.Rounds {
			fewer[w.Rounds] = append(fewer[w.Rounds], w.Name)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(fewer)) {
		text += fmt.Sprintf(", %d of them with %s,", n, strings.Join(fewer[n], ", "))
	}
	return text
}

// remark fills in the notes. published is the line about the documents' figures, if they stand in
// the table.
func (d *Document) remark(published string) {
	m := d.Method
	d.note("%s of %.2g s each (%.2g s warm-up), %s. Generator: %s. Took %.0f s.", d.rounds(), m.Seconds, m.Warmup, m.Where(d.Machine.Virtual), m.Generator, m.Took)
	d.note("Ratios are taken within a round; median, then the bounds of its %.0f%% order-statistic interval.", 100*stats.Confidence)
	for _, r := range d.Rows {
		if r.Workload == d.Workloads[0].Name && !slices.ContainsFunc(d.Ratios, func(r Ratio) bool { return r.Metric == ClientCPU }) {
			d.note("The generator itself used %.1f µs of CPU per request, %s on %s.", r.ClientCPUMicros.Median, Label(r.Server), r.Workload)
			break
		}
	}
	if m.Rate > 0 {
		d.note("An open loop: %s requests a second were due, and latency counts from when each was.", console.Thousands(m.Rate))
		for _, r := range d.Rows {
			if r.Unsent > 0 || r.RequestsPerSecond.Median < 0.99*m.Rate {
				d.note("%s on %s did not keep up with the rate: %s a second were answered in time.", r.Server, r.Workload, console.Thousands(r.RequestsPerSecond.Median))
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
		text := fmt.Sprintf("Disturbed: other processes used %s of the CPUs' time", percent(m.Others))
		if m.Layout == Split {
			text += fmt.Sprintf(", %s of the server's and %s of the generator's", percent(m.ServerOthers), percent(m.LoadOthers))
		}
		text += "."
		if m.Others >= useless {
			text += " That is too much for figures to go by: measure again on a quiet machine."
		}
		d.note("%s", text)
	}
	d.noteSaturation()
	d.noteGenerator()
	for _, r := range d.Rows {
		silent := 0
		for _, m := range d.of(r.Server, r.Workload) {
			if m.RequestsPerSecond == 0 {
				silent++
			}
		}
		if silent > 0 {
			d.note("%s on %s: in %d of %d rounds not one request was answered; such a round is in no ratio.", r.Server, r.Workload, silent, len(d.of(r.Server, r.Workload)))
		}
		if i := slices.IndexFunc(d.Workloads, func(w Workload) bool { return w.Name == r.Workload }); r.Reconnects > 0 && !d.Workloads[i].Reconnect {
			d.note("%s on %s: %s connections had to be made anew, since the server closed them or answered wrongly; its requests paid for that.", r.Server, r.Workload, console.Thousands(float64(r.Reconnects)))
		}
		if r.StaleDates > 0 && r.Workload == d.Workloads[0].Name {
			d.note("%s sends a Date that is not the time: work that the others do is left out.", r.Server)
		}
		if r.Undated > 0 && r.Workload == d.Workloads[0].Name {
			d.note("%s sends no Date: work that the others do is left out.", r.Server)
		}
	}
	if d.Machine.CongestionControl == "bbr" {
		d.note("TCP's congestion control is bbr, which paces what it sends, on the loopback too; most machines have cubic or reno, which do not. \"sysctl net.ipv4.tcp_congestion_control=reno\" as root gives their figures.")
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

// noteNoise says what a difference must be beyond, on each workload.
func (d *Document) noteNoise() {
	var texts []string
	metric := RequestsPerSecond
	if d.Method.Rate > 0 {
		metric = ServerCPU
	}
	for _, r := range d.Ratios {
		if r.Kind != Noise || r.Metric != metric || !r.Ratio.Measured() {
			continue
		}
		text := fmt.Sprintf("%s %s (%s)", r.Workload, r.Ratio.Format(), Label(r.Base))
		if r.Ratio.Bounded() {
			text = fmt.Sprintf("%s on %s (%s, %s)", percent(r.Floor), r.Workload, Label(r.Base), r.Ratio.Format())
		}
		texts = append(texts, text)
	}
	if len(texts) > 0 {
		d.note("Noise floor, a server against itself: %s. A difference is told when its interval excludes 1 and it is beyond the floor.", strings.Join(texts, "; "))
	}
}

func (d *Document) note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

// Against compares this run's ratios with those of another one and notes whether
// they agree, and if not what was different. What was measured otherwise, or
// elsewhere, is named among the differences: see Comparable.
func (d *Document) Against(old *Document) {
	type difference struct {
		text   string
		change float64
	}
	var differing []difference
	seen := map[string]bool{}
	compared, overlapping, widest, largest := 0, 0, 0.0, 0.0
	for _, now := range d.Ratios {
		// A ratio can be there as a step and as a target; it is one all the same.
		key := fmt.Sprint(now.Workload, now.Metric, now.Head, now.Base)
		then, ok := old.Compared(now.Head, now.Base, now.Workload, now.Metric)
		before := then.Ratio
		if !ok || seen[key] || !now.Ratio.Bounded() || !before.Bounded() || before.Median == 0 || now.Kind == Noise {
			continue
		}
		seen[key] = true
		compared++
		change := math.Abs(now.Ratio.Median/before.Median - 1)
		largest = max(largest, change)
		if change <= agreement {
			continue
		}
		if before.Low <= now.Ratio.High && now.Ratio.Low <= before.High {
			overlapping++
		}
		widest = max(widest, before.Spread(), now.Ratio.Spread())
		differing = append(differing, difference{
			fmt.Sprintf("%s to %s on %s (%s): %s then, %s now", Label(now.Head), Label(now.Base), now.Workload, now.Metric, before.Format(), now.Ratio.Format()), change,
		})
	}
	when := old.Created.Format("2006-01-02 15:04 UTC")
	switch {
	case compared == 0:
		return
	case len(differing) == 0:
		d.note("The run of %s agrees: all %d ratios within %.0f%%, the furthest apart by %.1f%%.", when, compared, 100*agreement, 100*largest)
		return
	}
	slices.SortStableFunc(differing, func(a, b difference) int { return cmp.Compare(b.change, a.change) })
	const named = 3
	var texts []string
	for _, each := range differing[:min(named, len(differing))] {
		texts = append(texts, each.text)
	}
	furthest := ""
	if len(differing) > named {
		furthest = ", of which the furthest apart are"
	}
	d.note("The run of %s differs by more than %.0f%% in %d of %d ratios%s: %s.", when, 100*agreement, len(differing), compared, furthest, strings.Join(texts, "; "))
	if widest > agreement && overlapping > 0 {
		all := fmt.Sprintf("in %d of these %d", overlapping, len(differing))
		if overlapping == len(differing) {
			all = "in all of these"
		}
		d.note("The rounds spread by up to %.0f%%, and %s the intervals of both runs overlap: there the two do not contradict each other. More rounds would tell.", 100*widest, all)
	}
	what := d.different(old)
	if len(what) == 0 {
		what = []string{"nothing that this command can see (not the steal time, other processes, the source or the method)"}
	}
	d.note("What was different: %s.", strings.Join(what, "; "))
}

// Comparable is an error when the ratios of the two runs need not agree, since
// they were measured in other ways or on other machines.
func (d *Document) Comparable(old *Document) error {
	if what := d.otherwise(old); len(what) > 0 {
		return errors.New(strings.Join(what, "; "))
	}
	return nil
}

// otherwise is how old was measured in another way, or elsewhere.
func (d *Document) otherwise(old *Document) (what []string) {
	then, now := old.Method, d.Method
	for _, each := range []struct {
		name      string
		then, now any
	}{
		{"the CPU", old.Machine.CPU, d.Machine.CPU},
		{"the number of CPUs", old.Machine.CPUs, d.Machine.CPUs},
		{"the kernel", old.Machine.Kernel, d.Machine.Kernel},
		{"the layout", then.Layout, now.Layout},
		{"the generator", then.Generator, now.Generator},
		{"the number of workers", then.Workers, now.Workers},
		{"the requests that were due per second", then.Rate, now.Rate},
	} {
		if each.then != each.now {
			what = append(what, fmt.Sprintf("%s: %v then, %v now", each.name, each.then, each.now))
		}
	}
	return what
}

// different is what may explain ratios that differ.
func (d *Document) different(old *Document) []string {
	what := d.otherwise(old)
	say := func(format string, args ...any) { what = append(what, fmt.Sprintf(format, args...)) }
	then, now := old.Method, d.Method
	if max(then.Steal, now.Steal) >= disturbed {
		say("stolen by the hypervisor: %s of the CPUs' time then, %s now", percent(then.Steal), percent(now.Steal))
	}
	if max(then.Others, now.Others) >= disturbed {
		say("taken by other processes: %s then, %s now", percent(then.Others), percent(now.Others))
	}
	if floors := [2]float64{old.floor(), d.floor()}; max(floors[0], floors[1]) > agreement {
		say("a server differed from itself by up to %.0f%% then, %.0f%% now", 100*floors[0], 100*floors[1])
	}
	if a, b := old.Machine.LoadAverage, d.Machine.LoadAverage; math.Abs(a-b) >= 0.5 {
		say("load average before the run: %.1f then, %.1f now", a, b)
	}
	if a, b := then.MHz.Median, now.MHz.Median; a > 0 && b > 0 && math.Abs(a/b-1) > agreement {
		say("clock of the CPUs: %.0f MHz then, %.0f now", a, b)
	}
	if old.Machine.Governor != d.Machine.Governor {
		say("frequency governor: %s then, %s now", old.Machine.Governor, d.Machine.Governor)
	}
	if old.Machine.Battery != d.Machine.Battery {
		say("on battery: %t then, %t now", old.Machine.Battery, d.Machine.Battery)
	}
	oldFacts, facts := old.Machine.Facts(), d.Machine.Facts()
	if len(oldFacts) > 0 && !slices.Equal(oldFacts, facts) {
		say("the machine's settings: %v then, %v now", oldFacts, facts)
	}
	if old.Machine.Go != d.Machine.Go {
		say("Go: %s then, %s now", old.Machine.Go, d.Machine.Go)
	}
	if then.Revision != now.Revision || strings.Contains(now.Revision, "with changes") {
		say("the source: %s then, %s now", cmp.Or(then.Revision, "unknown"), cmp.Or(now.Revision, "unknown"))
	}
	if then.Rounds != now.Rounds || then.Seconds != now.Seconds {
		say("%d rounds of %.2g s then, %d of %.2g s now", then.Rounds, then.Seconds, now.Rounds, now.Seconds)
	}
	return what
}

// floor is by which share a server differed from itself, 0 when that was not measured.
func (d *Document) floor() (widest float64) {
	for _, r := range d.Ratios {
		if r.Kind == Noise && r.Metric == RequestsPerSecond && r.Ratio.Bounded() {
			widest = max(widest, r.Ratio.Floor())
		}
	}
	return widest
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
