package results

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Build fills in rows and ratios from the measurements. Ratios must hold what
// is to be compared: kind, workload, metric, head and base. published is the
// line about the documents' figures, "" when they do not stand in the table.
func (d *Document) Build(published string) {
	d.Rows, d.Notes, d.Method.Steal, d.Method.Others, d.Method.ServerOthers, d.Method.LoadOthers = nil, nil, 0, 0, 0, 0
	for _, m := range d.Measurements {
		d.Method.Steal += m.StealShare / float64(len(d.Measurements))
		d.Method.Others += m.OthersShare / float64(len(d.Measurements))
		d.Method.ServerOthers += m.ServerOthers / float64(len(d.Measurements))
		d.Method.LoadOthers += m.ClientOthers / float64(len(d.Measurements))
	}
	var clocks []float64
	for _, m := range d.Measurements {
		if m.MHz > 0 {
			clocks = append(clocks, m.MHz)
		}
	}
	d.Method.MHz = stats.Summarise(clocks)
	for _, w := range d.Workloads {
		for _, s := range d.Servers {
			if all := d.of(s.Name, w.Name); len(all) > 0 {
				d.Rows = append(d.Rows, d.row(s, w, all))
			}
		}
	}
	for i := range d.Ratios {
		d.Ratios[i] = d.Compare(d.Ratios[i])
	}
	d.remark(published)
}

// Compare fills in a ratio that says what is to be compared.
func (d *Document) Compare(r Ratio) Ratio {
	head, base := d.values(r.Head, r.Workload, r.Metric), d.values(r.Base, r.Workload, r.Metric)
	r.Ratio = stats.Ratio(head, base)
	floor := d.Floor(r.Workload, r.Metric)
	r.Verdict = stats.Judge(r.Ratio, floor)
	if r.Floor = floor; math.IsInf(floor, 0) {
		r.Floor = 0
	}
	r.HeadValue, r.BaseValue = stats.Summarise(head).Median, stats.Summarise(base).Median
	return r
}

// Floor is the noise floor of a metric on a workload, as a share: how far a server was from itself.
// It is infinite where no server was measured twice, so that no difference is beyond it. What is
// counted, not timed, has no noise.
func (d *Document) Floor(workload string, metric Metric) float64 {
	if metric == HeldMemory {
		return 0
	}
	floor, known := 0.0, false
	for _, r := range d.Ratios {
		if r.Kind != Noise || r.Workload != workload {
			continue
		}
		interval := r.Ratio
		if len(d.Measurements) > 0 {
			interval = stats.Ratio(d.values(r.Head, workload, metric), d.values(r.Base, workload, metric))
		} else if r.Metric != metric {
			continue
		}
		floor, known = max(floor, interval.Floor()), true
	}
	if !known {
		return math.Inf(1)
	}
	return floor
}

func (d *Document) of(server, workload string) (out []Measurement) {
	for _, m := range d.Measurements {
		if m.Server == server && m.Workload == workload {
			out = append(out, m)
		}
	}
	return out
}

// values lists a metric by round, NaN where a round lacks it. A measurement in
// which not one request was answered has none: on one side of a ratio it would
// be 0, on the other infinite.
func (d *Document) values(server, workload string, metric Metric) []float64 {
	rounds := 0
	for _, m := range d.Measurements {
		rounds = max(rounds, m.Round)
	}
	out := make([]float64, rounds)
	for i := range out {
		out[i] = math.NaN()
	}
	for _, m := range d.of(server, workload) {
		if m.RequestsPerSecond == 0 && metric != HeldMemory {
			continue
		}
		out[m.Round-1] = metrics[metric].of(m)
	}
	return out
}

func (d *Document) row(s Server, w Workload, all []Measurement) Row {
	each := func(of func(Measurement) float64) stats.Interval {
		values := make([]float64, len(all))
		for i, m := range all {
			values[i] = of(m)
		}
		return stats.Summarise(values)
	}
	us := func(of func(Measurement) float64) stats.Interval {
		return each(func(m Measurement) float64 {
			if m.RequestsPerSecond == 0 {
				return math.NaN()
			}
			return of(m) / 1e3
		})
	}
	r := Row{
		Server: s.Name, Workload: w.Name,
		RequestsPerSecond:     each(func(m Measurement) float64 { return m.RequestsPerSecond }),
		ServerCPUMicros:       us(func(m Measurement) float64 { return m.ServerCPUNanos }),
		ClientCPUMicros:       us(func(m Measurement) float64 { return m.ClientCPUNanos }),
		P50Micros:             us(func(m Measurement) float64 { return float64(m.Latency.P50) }),
		P90Micros:             us(func(m Measurement) float64 { return float64(m.Latency.P90) }),
		P99Micros:             us(func(m Measurement) float64 { return float64(m.Latency.P99) }),
		P999Micros:            us(func(m Measurement) float64 { return float64(m.Latency.P999) }),
		UserCPUMicros:         us(func(m Measurement) float64 { return m.ServerCPUNanos * m.ServerUserShare }),
		SystemCPUMicros:       us(func(m Measurement) float64 { return m.ServerCPUNanos * (1 - m.ServerUserShare) }),
		UserShare:             each(func(m Measurement) float64 { return m.ServerUserShare }),
		RequestsPerCPUSecond:  each(func(m Measurement) float64 { return perCPUSecond(m) }),
		Busy:                  each(func(m Measurement) float64 { return m.ServerBusy }).Median,
		ClientBusy:            each(func(m Measurement) float64 { return m.ClientBusy }).Median,
		Resident:              each(func(m Measurement) float64 { return float64(m.Resident) }).Median,
		ResidentPerConnection: each(func(m Measurement) float64 { return m.ResidentPerConnection }),
		HeldPerConnection:     each(func(m Measurement) float64 { return m.HeldPerConnection }),
		HeapPerConnection:     each(func(m Measurement) float64 { return m.HeapPerConnection }),
		GCCyclesPerSecond: each(func(m Measurement) float64 {
			if m.Seconds == 0 {
				return 0
			}
			return float64(m.GCCycles) / m.Seconds
		}).Median,
		Asked: w.Connections + w.Idle, Established: math.MaxInt,
	}
	r.Saturated = Saturation(d.Method.Layout, r.Busy, r.ClientBusy)
	for _, m := range all {
		r.requests += m.Requests
		r.Late += m.Late
		r.MaxMicros = max(r.MaxMicros, float64(m.Latency.Max)/1e3)
		r.SentLate += m.SentLate
		r.WokeLateMicros = max(r.WokeLateMicros, float64(m.WokeLate)/1e3)
		r.Undated += m.Undated
		r.Unsent += m.Unsent
		r.Reconnects += m.Reconnects
		r.StaleDates += m.StaleDates
		r.Established = min(r.Established, m.Established)
		for _, kinds := range []map[string]uint64{m.ConnectErrors, m.Errors} {
			for kind, n := range kinds {
				if r.Errors == nil {
					r.Errors = map[string]uint64{}
				}
				r.Errors[kind] += n
			}
		}
	}
	if s.Counters {
		r.Counters = map[string]float64{}
		for name := range all[0].Counters {
			r.Counters[name] = each(func(m Measurement) float64 { return m.Counters[name] }).Median
		}
		for _, call := range harness.SystemCalls {
			r.SystemCalls += harness.CallsOf(call, r.Counters)
		}
		if waits := r.Counters["epoll_waits"]; waits > 0 {
			r.RequestsPerWait = 1 / waits
		}
	}
	r.LoopConnections = spread(all)
	return r
}

// perCPUSecond is not a number where nothing was answered.
func perCPUSecond(m Measurement) float64 {
	switch {
	case m.RequestsPerSecond == 0:
		return math.NaN()
	case m.ServerCPUNanos == 0:
		return 0
	}
	return 1e9 / m.ServerCPUNanos
}

// spread is how many connections each loop has, the loops in order of that in every round.
func spread(all []Measurement) (out []float64) {
	for i := range len(all[0].LoopConnections) {
		var values []float64
		for _, m := range all {
			if len(m.LoopConnections) == len(all[0].LoopConnections) {
				values = append(values, float64(slices.Sorted(slices.Values(m.LoopConnections))[i]))
			}
		}
		out = append(out, stats.Median(values))
	}
	return out
}

// The layouts: where server and generator run.
const (
	CoLocated = "co-located"
	Split     = "split"
	Shared    = "shared" // both may use all CPUs
)

// Row finds a row; ok is false when there is none.
func (d *Document) Row(server, workload string) (Row, bool) {
	for _, r := range d.Rows {
		if r.Server == server && r.Workload == workload {
			return r, true
		}
	}
	return Row{}, false
}

// Find finds a ratio of a kind for a head; ok is false when there is none.
func (d *Document) Find(kind Kind, head string) (Ratio, bool) {
	for _, r := range d.Ratios {
		if r.Kind == kind && r.Head == head {
			return r, true
		}
	}
	return Ratio{}, false
}

// Compared finds the ratio of head to base on a workload by a metric; ok is false when there is none.
func (d *Document) Compared(head, base, workload string, metric Metric) (Ratio, bool) {
	for _, r := range d.Ratios {
		if r.Head == head && r.Base == base && r.Workload == workload && r.Metric == metric {
			return r, true
		}
	}
	return Ratio{}, false
}

// failures adds up all errors, as lines for the notes.
func (d *Document) failures() (lines []string) {
	for _, r := range d.Rows {
		for _, kind := range slices.Sorted(maps.Keys(r.Errors)) {
			lines = append(lines, fmt.Sprintf("%s on %s: %d × %s", r.Server, r.Workload, r.Errors[kind], kind))
		}
		if r.Established < r.Asked {
			lines = append(lines, fmt.Sprintf("%s on %s: only %d of %d connections were established", r.Server, r.Workload, r.Established, r.Asked))
		}
	}
	return lines
}

// IsLadder tells whether it is a run of the whole ladder.
func (d *Document) IsLadder() bool {
	return slices.ContainsFunc(d.Ratios, func(r Ratio) bool { return r.Kind == Step })
}

// IsTwin tells whether a server is there only to be compared with itself.
func (d *Document) IsTwin(name string) bool {
	return slices.ContainsFunc(d.Ratios, func(r Ratio) bool { return r.Kind == Noise && r.Head == name })
}

// Better is 1 when head can be told to be better than base, -1 when it is worse, else 0.
func (r Ratio) Better() int {
	switch {
	case r.Verdict != stats.Higher && r.Verdict != stats.Lower:
		return 0
	case (r.Verdict == stats.Higher) == r.Metric.LessIsBetter():
		return -1
	}
	return 1
}

// Words says a verdict in the words that suit the metric: "faster", "slower" or "cannot tell". Of a
// server to itself it says the noise floor.
func (r Ratio) Words() string {
	if r.Kind == Noise && r.Ratio.Bounded() {
		return "floor " + percent(r.Floor)
	}
	switch r.Better() {
	case 1:
		return metrics[r.Metric].better
	case -1:
		return metrics[r.Metric].worse
	}
	return string(r.Verdict)
}

// Marked is Words behind a mark, for a table: what a colour says too, for those who do not see it.
func (r Ratio) Marked() string {
	switch r.Better() {
	case 1:
		return "▲ " + r.Words()
	case -1:
		return "▼ " + r.Words()
	}
	if r.Verdict == stats.CannotTell && r.Kind != Noise {
		return "? " + r.Words()
	}
	return r.Words()
}

// Label is how a server stands in a table: "stage5-speculative-read" is "5 speculative-read".
func Label(name string) string {
	rest, ok := strings.CutPrefix(name, "stage")
	if !ok {
		return name
	}
	number := strings.TrimLeft(rest, "0123456789")
	if folder, ok := strings.CutPrefix(number, "-"); ok { // and not that of a flag: "stage1 -acceptor"
		return strings.TrimSuffix(rest, number) + " " + folder
	}
	return rest
}
