package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// StatTable is what the CPU does for a request, server by server: what `ladder stat` writes as
// JSON.
type StatTable struct {
	header
	Workload string       `json:"workload"`
	CPUs     int          `json:"cpus"`    // that a server may use
	Workers  int          `json:"workers"` // of each
	Servers  []StatServer `json:"servers"`
}

// StatServer is what perf stat counted of one server.
type StatServer struct {
	Server     string             `json:"server"`
	Requests   int64              `json:"requests"`
	PerRequest map[string]float64 `json:"per_request"` // by perf's name of the event; what could not be counted is missing
	UserOnly   bool               `json:"user_only"`   // the kernel's part was not counted: perf may not look into it
}

// withPin is behind the name of a server that was started with -pin.
const withPin = " -pin"

// Stat counts with perf stat what the CPU does for a request: instructions, cycles and misses where
// there are hardware counters, and what the kernel counts everywhere. No stages means all. With pin
// each is counted twice: the second time its loops are bound to CPUs.
func Stat(ctx context.Context, o Options, stages []string, pin bool) (*StatTable, error) {
	if _, err := exec.LookPath("perf"); err != nil {
		return nil, errors.New("perf is not installed: your distribution has it as linux-perf, linux-tools or perf")
	}
	l, servers, w, err := o.prepare(ctx, stages)
	if err != nil {
		return nil, err
	}
	if pin {
		var both []run.Server
		for _, s := range servers {
			pinned := s
			pinned.Name += withPin
			pinned.Args = append(slices.Clone(s.Args), "-pin")
			both = append(both, s, pinned)
		}
		servers = both
	}
	t := &StatTable{header: newHeader("stat"), Workload: w.Name, CPUs: len(l.place.Server), Workers: l.workers}
	for _, server := range servers {
		o.step("counting %s on %s", server.Name, w.Name)
		recorder := &statRecorder{tool: tool{cpus: l.place.Own}}
		drive, err := l.drive(ctx, server, w, cmp.Or(o.Duration, statLength), recorder)
		if err != nil {
			return nil, err
		}
		t.Servers = append(t.Servers, recorder.counts.of(server.Name, drive.requests))
	}
	o.step("")
	t.text(o.Out)
	return t, nil
}

const statLength = time.Second

// Migrations is perf's name of the event that the scheduler moves a thread to another CPU.
const Migrations = "cpu-migrations"

// statEvent is what perf calls it, and what the table does.
type statEvent struct {
	event, name string
	hardware    bool
	inKernel    bool // and nowhere else: where that may not be looked into, perf counts none
}

// statEvents are what is counted.
var statEvents = []statEvent{
	{"instructions", "instructions", true, false},
	{"cycles", "cycles", true, false},
	{"cache-references", "cache references", true, false},
	{"cache-misses", "cache misses", true, false},
	{"branches", "branches", true, false},
	{"branch-misses", "branch misses", true, false},
	{"context-switches", "context switches", false, true},
	{Migrations, "CPU migrations", false, true},
	{"page-faults", "page faults", false, false},
}

// statCounts is what perf stat printed.
type statCounts struct {
	counts   map[string]float64 // by event; what could not be counted is missing
	userOnly bool
}

// Total is an event's count of the whole recording.
func (s StatServer) Total(event string) float64 {
	return math.Round(s.PerRequest[event] * float64(s.Requests))
}

// of divides the counts by the requests of a server.
func (c statCounts) of(server string, requests int64) StatServer {
	s := StatServer{Server: server, Requests: requests, PerRequest: map[string]float64{}, UserOnly: c.userOnly}
	for event, n := range c.counts {
		s.PerRequest[event] = n / float64(requests)
	}
	return s
}

// statRecorder runs perf stat beside a server.
type statRecorder struct {
	tool
	counts statCounts
}

func (r *statRecorder) start(ctx context.Context, s *session) error {
	var events []string
	for _, e := range statEvents {
		events = append(events, e.event)
	}
	return r.startPerf(ctx, s, "stat", "-x", ",", "-e", strings.Join(events, ","))
}

func (r *statRecorder) finish(context.Context) error {
	err := r.stop()
	if err == nil {
		r.counts, err = parseStat(r.process.Stderr())
	}
	return err
}

// parseStat reads what perf stat -x, prints: value, unit, event, and more. What
// cannot be counted has a value in angle brackets; an event that ends in :u was
// counted outside the kernel only.
func parseStat(text string) (counts statCounts, err error) {
	counts.counts = map[string]float64{}
	known := false
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if len(f) < 3 {
			continue
		}
		event, modifier, _ := strings.Cut(f[2], ":")
		for _, e := range statEvents {
			if e.event != event {
				continue
			}
			known = true
			counts.userOnly = counts.userOnly || modifier == "u"
			if v, err := strconv.ParseFloat(f[0], 64); err == nil && !(e.inKernel && modifier == "u") {
				counts.counts[event] = v
			}
		}
	}
	if !known {
		return counts, fmt.Errorf("what perf stat printed is not understood: %s", oneLine(text))
	}
	return counts, nil
}

// text prints the table, and what is missing in it.
func (t *StatTable) text(out io.Writer) {
	fmt.Fprintf(out, "Per request on %s, by perf stat\n\n", t.Workload)
	if !t.hardware() {
		say(out, "", "  ", "This machine shows no hardware counters, as most virtual machines: no instructions, cycles and misses, only what the kernel counts.")
		fmt.Fprintln(out)
	}
	rows := [][]string{{""}}
	for _, s := range t.Servers {
		name, pinned := strings.CutSuffix(s.Server, withPin)
		if name = harness.ShortName(name); pinned {
			name += withPin
		}
		rows[0] = append(rows[0], name)
	}
	row := func(name string, value func(StatServer) string) {
		cells := []string{name}
		for _, s := range t.Servers {
			cells = append(cells, value(s))
		}
		rows = append(rows, cells)
	}
	first := t.Servers[0].PerRequest
	var missing []string
	for _, e := range statEvents {
		if _, ok := first[e.event]; !ok {
			missing = append(missing, e.name)
			continue
		}
		row(e.name, func(s StatServer) string {
			n := s.PerRequest[e.event]
			if n >= 10 {
				return fmt.Sprintf("%.0f", n)
			}
			return fmt.Sprintf("%.4f", n)
		})
	}
	if _, ok := first["cycles"]; ok {
		row("instr. per cycle", func(s StatServer) string {
			return fmt.Sprintf("%.2f", s.PerRequest["instructions"]/s.PerRequest["cycles"])
		})
	}
	if _, ok := first[Migrations]; ok {
		// Too few to be seen in a request.
		row("migrations in all", func(s StatServer) string { return fmt.Sprintf("%.0f", s.Total(Migrations)) })
	}
	console.Table(out, rows)
	if len(missing) == 0 {
		return
	}
	fmt.Fprintln(out)
	if t.Servers[0].UserOnly {
		say(out, "", "  ", "What happens in the kernel is not counted, as perf may not look into it. All of it is after:")
		fmt.Fprintln(out, "  sudo sysctl kernel.perf_event_paranoid=1")
	}
	say(out, "", "  ", "Not counted here: "+strings.Join(missing, ", ")+".")
}

// hardware tells whether anything was counted that only hardware counters count.
func (t *StatTable) hardware() bool {
	return slices.ContainsFunc(statEvents, func(e statEvent) bool {
		_, counted := t.Servers[0].PerRequest[e.event]
		return e.hardware && counted
	})
}
