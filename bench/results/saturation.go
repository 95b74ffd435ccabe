package results

import (
	"fmt"
	"math"
	"strings"
)

// Side says which side of a measurement was at its limit. Only where it was the server do requests
// per second tell what the server can do.
type Side string

// The sides. Where neither was saturated each waited for the other: what was measured is latency.
const (
	ServerSide    Side = "server"
	GeneratorSide Side = "generator"
	BothSides     Side = "both"
	NeitherSide   Side = "neither"
)

// saturated is the share of its CPUs' time for which a side must have run, or stood in line behind
// others, to be at its limit.
const saturated = 0.95

// Saturation judges by the busy shares of server and generator; on shared CPUs each is a share of the
// same time, and whoever fills it up limits both.
func Saturation(layout string, server, client float64) Side {
	switch full := func(share float64) bool { return share >= saturated }; {
	case math.IsNaN(server) || server == 0:
		return ""
	case layout != Split && full(server+client), full(server) && full(client):
		return BothSides
	case layout != Split:
		return NeitherSide
	case full(server):
		return ServerSide
	case full(client):
		return GeneratorSide
	}
	return NeitherSide
}

// Mark is the side as it stands behind a figure: its first letter.
func (s Side) Mark() string { return string(s)[:min(1, len(s))] }

// legend explains the marks.
const legend = "Behind requests per second: s, g, b or n for what was saturated, that is busy or in line for its CPUs for at least 95% of the time: the server, the generator, both, neither."

// limited tells whether requests per second say what the server can do, as far as a closed loop that
// is meant to say that has one.
func (r Row) limited(w Workload, rate float64) bool {
	return rate > 0 || w.Rate > 0 || w.Idle > 0 || r.Saturated != GeneratorSide && r.Saturated != NeitherSide
}

// Unlimited tells whether the server of a row was not the limit although it was meant to be: then its
// requests per second are no measure of it.
func (d *Document) Unlimited(server, workload string) bool {
	r, ok := d.Row(server, workload)
	if !ok {
		return false
	}
	for _, w := range d.Workloads {
		if w.Name == workload {
			return !r.limited(w, d.Method.Rate)
		}
	}
	return false
}

// noteSaturation says where the server was not the limit, a line for each workload and side.
func (d *Document) noteSaturation() {
	marked := false
	for _, r := range d.Rows {
		marked = marked || r.Saturated != ""
	}
	if marked {
		d.note("%s", legend)
	}
	for _, w := range d.Workloads {
		for _, side := range []Side{GeneratorSide, NeitherSide} {
			var rows []string
			for _, r := range d.Rows {
				if r.Workload == w.Name && r.Saturated == side && !r.limited(w, d.Method.Rate) && !d.IsTwin(r.Server) {
					rows = append(rows, fmt.Sprintf("%s (server %.0f%%, generator %.0f%% busy)", Label(r.Server), 100*r.Busy, 100*r.ClientBusy))
				}
			}
			if len(rows) == 0 {
				continue
			}
			what := "neither side was saturated, each waited for the other"
			if side == GeneratorSide {
				what = "the generator was saturated, not the server"
			}
			then := "measured again at a fixed rate, what counts is server CPU and latency"
			if !d.repeated(w.Name) {
				then = "what counts is server CPU and latency at a fixed rate (--rate)"
			}
			d.note("%s%s: %s: %s. Requests per second do not tell there what the server can do; %s.", unlimited, w.Name, what, strings.Join(rows, ", "), then)
		}
	}
}

const unlimited = "* Not the server's limit on "

// Doubtful tells whether a note makes figures doubtful.
func Doubtful(note string) bool {
	return strings.HasPrefix(note, "Disturbed: ") || strings.HasPrefix(note, unlimited) || strings.HasPrefix(note, late) || strings.HasPrefix(note, "! ")
}

// repeated tells whether a workload was measured again at a fixed rate.
func (d *Document) repeated(workload string) bool {
	for _, w := range d.Workloads {
		if w.Repeats == workload {
			return true
		}
	}
	return false
}

const late = "* The generator was late: "

// noteGenerator says where the generator fell behind its own time, which makes latencies worse that
// are not the server's. A millisecond is a scheduler's turn.
func (d *Document) noteGenerator() {
	const worthIt, share, named = 5e3, 0.01, 3 // microseconds; of the requests; servers in the note
	var texts []string
	for _, r := range d.Rows {
		if r.WokeLateMicros < worthIt && float64(r.SentLate) <= share*float64(r.requests) {
			continue
		}
		texts = append(texts, fmt.Sprintf("%s on %s, up to %.1f ms and for %.1f%% of the requests",
			Label(r.Server), r.Workload, r.WokeLateMicros/1e3, 100*float64(r.SentLate)/max(1, float64(r.requests))))
	}
	if len(texts) == 0 {
		return
	}
	if more := len(texts) - named; more > 0 {
		texts = append(texts[:named], fmt.Sprintf("and %d more", more))
	}
	d.note("%sit was behind its time, though connections were free, with %s. The latencies have that in them, and it is not the server's.", late, strings.Join(texts, "; "))
}
