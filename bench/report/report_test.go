package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/stats"
)

var stages = []string{"stage0-naive", "stage1-reuseport", "stage2-conn-timer", "stage3-native-parser", "stage4-scatter-gather", "stage5-speculative-read"}

const twin = "stage5-speculative-read again"

// sample is a run of a made-up machine: every stage is a tenth faster than the
// one before, exactly, and the machine drifts from round to round.
func sample(rounds int) *results.Document {
	d := &results.Document{
		Schema: results.Schema, Version: results.Version, Created: time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC), Command: "ladder run", Ended: results.Complete,
		Machine:   results.Machine{CPU: "Imaginary 9000", CPUs: 2, Kernel: "Linux 6.12.0", Go: "go1.26"},
		Method:    results.Method{Layout: results.CoLocated, ServerCPUs: []int{1}, LoadCPUs: []int{1}, Workers: 1, LoadThreads: 1, Generator: "embedded", Rounds: rounds, Seconds: 0.5, Warmup: 0.15, Took: 100},
		Workloads: []results.Workload{{Name: "hello", Summary: "GET /", Connections: 100, Pipeline: 1}, {Name: "idle1k", Connections: 1, Idle: 1000, Pipeline: 1}},
	}
	published := []string{"27.5 K", "with 2", "132 K", "140 K", "159 K +", "–"}
	for i, s := range stages {
		d.Servers = append(d.Servers, results.Server{Name: s, Published: published[i], Counters: true})
		if i > 0 {
			d.Ratios = append(d.Ratios,
				results.Ratio{Kind: results.Step, Workload: "hello", Metric: results.RequestsPerSecond, Head: s, Base: stages[i-1]},
				results.Ratio{Kind: results.Total, Workload: "hello", Metric: results.RequestsPerSecond, Head: s, Base: stages[0]},
				results.Ratio{Kind: results.Target, Workload: "hello", Metric: results.RequestsPerSecond, Head: s, Base: stages[i-1]})
		}
	}
	d.Servers = append(d.Servers, results.Server{Name: twin, Counters: true})
	d.Ratios = append(d.Ratios,
		results.Ratio{Kind: results.Target, Workload: "idle1k", Metric: results.HeldMemory, Head: stages[5], Base: stages[4]},
		results.Ratio{Kind: results.Noise, Workload: "hello", Metric: results.RequestsPerSecond, Head: twin, Base: stages[5]})
	for round := 1; round <= rounds; round++ {
		machine := 100_000 * (1 - 0.05*float64(round%3))
		for i, s := range append(append([]string{}, stages...), twin) {
			speed := machine
			for range min(i, 5) {
				speed *= 1.1
			}
			d.Measurements = append(d.Measurements, results.Measurement{
				Round: round, Order: i + 1, Server: s, Workload: "hello", RequestsPerSecond: speed, Requests: uint64(speed / 2), Established: 100, Seconds: 0.5,
				Latency: load.Latency{P50: 1_200_000, P90: 1_500_000, P99: 2_000_000, P999: 3_000_000}, ServerCPUNanos: 8000, ClientCPUNanos: 5000, ServerBusy: 0.6, ClientBusy: 0.39, ServerUserShare: 0.3,
				Counters: map[string]float64{"requests": 1, "reads": 1, "writes": 1, "vectored_writes": 1, "epoll_waits": 0.02, "heap_objects_allocated": 12, "handoffs": 1},
			})
		}
		for i, held := range []float64{9472, 0} {
			d.Measurements = append(d.Measurements, results.Measurement{Round: round, Order: 10, Server: stages[4+i], Workload: "idle1k", RequestsPerSecond: 5000, Established: 1001, Seconds: 0.1, HeldPerConnection: held})
		}
	}
	return d
}

func TestBuildFindsTheRatios(t *testing.T) {
	d := sample(6)
	d.Build("Published: elsewhere.")
	for i, s := range stages[1:] {
		r, ok := d.Find(results.Step, s)
		require.True(t, ok)
		require.InDelta(t, 1.1, r.Ratio.Median, 1e-9, "the drift is not in it")
		require.InDelta(t, 1.1, r.Ratio.Low, 1e-9)
		require.Equal(t, "▲ faster", r.Marked())
		total, _ := d.Find(results.Total, s)
		require.Greater(t, total.Ratio.Median, 1+0.1*float64(i))
	}
	noise, ok := d.Find(results.Noise, twin)
	require.True(t, ok)
	require.Equal(t, stats.CannotTell, noise.Verdict)
	require.Equal(t, "floor 0.0%", noise.Words())

	row, ok := d.Row(stages[0], "hello")
	require.True(t, ok)
	require.InDelta(t, 2.02, row.SystemCalls, 1e-9, "vectored writes are writes already")
	require.Equal(t, 8.0, row.ServerCPUMicros.Median)
	require.Equal(t, 1200.0, row.P50Micros.Median)
	require.Equal(t, 100, row.Established)
	require.Equal(t, results.BothSides, row.Saturated, "shared CPUs that are full limit both")
	_, ok = d.Row("stage9", "hello")
	require.False(t, ok)

	require.Contains(t, d.Notes, "Published: elsewhere.")
	require.NoError(t, d.Failure())
}

func TestTextFitsATerminal(t *testing.T) {
	for _, rounds := range []int{2, 9} {
		d := sample(rounds)
		for i := range d.Measurements {
			d.Measurements[i].RequestsPerSecond *= 1.7 // six digits
			d.Measurements[i].Latency.P99 = 1_234_567_890
		}
		d.Build("Published: " + strings.Repeat("a long line about other machines ", 5))
		var out bytes.Buffer
		Text(&out, d)
		text := out.String()
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 80, "%q", line)
			require.NotContains(t, line, "\x1b")
		}
		for _, want := range []string{"0 naive", "5 speculative-read", "27.5 K", "132 K", "9,472 B → 0 B", "itself"} {
			require.Contains(t, text, want)
		}
		require.NotRegexp(t, `again\b`, text, "the second appearance is no row of the ladder")
		if rounds < stats.MinimumRounds {
			require.Contains(t, text, "too few rounds")
		} else {
			require.Contains(t, text, "1.10 [1.10–1.10]")
		}
	}
}

func TestSaturationStandsInEveryRow(t *testing.T) {
	d := sample(6)
	d.Method.Layout = results.Split
	busy := map[string][2]float64{ // server, generator
		stages[0]: {0.98, 0.60}, stages[1]: {0.38, 0.41}, stages[2]: {0.99, 0.70}, stages[3]: {0.97, 0.90}, stages[4]: {0.80, 0.99}, stages[5]: {0.98, 0.98}, twin: {0.98, 0.98},
	}
	for i := range d.Measurements {
		m := &d.Measurements[i]
		m.ServerBusy, m.ClientBusy = busy[m.Server][0], busy[m.Server][1]
		if m.Workload == "idle1k" {
			m.ServerBusy, m.ClientBusy = 0.01, 0.01
		}
	}
	d.Build("")
	for i, want := range []results.Side{results.ServerSide, results.NeitherSide, results.ServerSide, results.ServerSide, results.GeneratorSide, results.BothSides} {
		row, _ := d.Row(stages[i], "hello")
		require.Equal(t, want, row.Saturated, stages[i])
		require.Equal(t, want == results.NeitherSide || want == results.GeneratorSide, d.Unlimited(stages[i], "hello"))
	}
	require.False(t, d.Unlimited(stages[5], "idle1k"), "idle connections are not meant to keep a server busy")

	var text, markdown, page, figures bytes.Buffer
	Text(&text, d)
	Markdown(&markdown, d)
	require.NoError(t, HTML(&page, d, func(string) string { return "" }))
	require.NoError(t, CSV(&figures, d))
	require.Regexp(t, `0 naive +[0-9,]+ s`, text.String())
	for _, out := range []string{text.String(), markdown.String()} {
		require.Regexp(t, `1 reuseport[ |]+[0-9,]+ n`, out)
		require.Regexp(t, `1 reuseport[ |]+hello[ |]+neither[ |]+38%, 41%[ |]+125,000[ |]+50\.0`, out)
		require.Regexp(t, `4 scatter-gather[ |]+[0-9,]+ g`, out)
		require.Regexp(t, `5 speculative-read[ |]+hello[ |]+both`, out)
		require.Regexp(t, `idle1k[ |]+neither`, out)
	}
	require.Regexp(t, `<td[^>]*>1 reuseport</td><td[^>]*>hello</td><td[^>]*>neither</td>`, page.String())
	require.Regexp(t, `stage4-scatter-gather,hello,.*,generator,`, figures.String())
	notes := strings.Join(d.Notes, "\n")
	require.Contains(t, notes, "* Not the server's limit on hello: neither side was saturated, each waited for the other: 1 reuseport (server 38%, generator 41% busy).")
	require.Contains(t, notes, "the generator was saturated, not the server: 4 scatter-gather (server 80%, generator 99% busy).")
	require.NotContains(t, notes, "limit on idle1k")
	require.True(t, results.Doubtful("* Not the server's limit on hello: …"))
}

func TestWhoIsSaturated(t *testing.T) {
	for _, c := range []struct {
		layout         string
		server, client float64
		want           results.Side
	}{
		{results.Split, 0.98, 0.5, results.ServerSide}, {results.Split, 0.5, 0.98, results.GeneratorSide}, {results.Split, 0.98, 0.98, results.BothSides},
		{results.Split, 0.38, 0.41, results.NeitherSide}, {results.Split, 0, 0, ""},
		{results.CoLocated, 0.7, 0.3, results.BothSides}, {results.CoLocated, 0.4, 0.4, results.NeitherSide}, {results.Shared, 0.5, 0.5, results.BothSides},
	} {
		require.Equal(t, c.want, results.Saturation(c.layout, c.server, c.client), "%+v", c)
	}
}

// A generator that was behind its own time is told beside the latencies that it made worse.
func TestALateGeneratorIsTold(t *testing.T) {
	d := sample(6)
	d.Method.Rate = 1000
	for i := range d.Measurements {
		if m := &d.Measurements[i]; m.Server == stages[2] && m.Workload == "hello" && m.Round == 3 {
			m.WokeLate, m.SentLate = 301_000_000, 2*m.Requests/5
		}
	}
	d.Build("")
	require.Regexp(t, `\* The generator was late: it was behind its time, .* with 2 conn-timer on hello, up to 301\.0 ms and for [67]\.[0-9]% of the requests\.`, strings.Join(d.Notes, "\n"))
	require.Equal(t, 1, strings.Count(strings.Join(d.Notes, "\n"), "The generator was late"))
}

func TestEveryColumnIsThere(t *testing.T) {
	d := sample(6)
	for i := range d.Measurements {
		m := &d.Measurements[i]
		m.GCCycles, m.Resident, m.Seconds = 2, 12_300_000, 0.5
		if m.Workload == "hello" {
			m.Counters["epoll_waits"], m.Counters["read_agains"] = 0.02, 0.25
			m.LoopConnections = []int64{int64(40 + m.Round%2), 60}
			m.Counters["handoffs"] = 0
		} else {
			m.ResidentPerConnection, m.HeapPerConnection = 5132, 10197
		}
	}
	d.Build("")
	row, _ := d.Row(stages[0], "hello")
	require.InDelta(t, 50, row.RequestsPerWait, 1e-9)
	require.InDelta(t, 2.4, row.UserCPUMicros.Median, 1e-9)
	require.InDelta(t, 5.6, row.SystemCPUMicros.Median, 1e-9)
	require.Equal(t, []float64{40.5, 60}, row.LoopConnections)
	require.InDelta(t, 4, row.GCCyclesPerSecond, 1e-9)
	var out bytes.Buffer
	Markdown(&out, d)
	for _, want := range []string{
		"p99.9", "1.50 ms", "3.00 ms", "user µs", "estimated from ticks", "EAGAIN", "0.25", "req/wait", "50.0", "GC/s", "4.0", "12.3 MB", "connections",
		"| 5,132 B | 10,197 B | 9,472 B |", "Connections of each loop on hello", "| 40 60 | 1.5 |",
	} {
		require.Contains(t, out.String(), want)
	}
	out.Reset()
	Text(&out, d)
	require.NotContains(t, out.String(), "EAGAIN", "the ladder on a terminal stays short")
}

func TestRateIsTold(t *testing.T) {
	d := sample(6)
	d.Method.Rate, d.Method.Layout = 1e6, results.Split
	d.Measurements[0].Unsent = 7
	d.Build("")
	notes := strings.Join(d.Notes, "\n")
	require.Contains(t, notes, "1,000,000 requests a second were due")
	require.Contains(t, notes, "stage0-naive on hello did not keep up with the rate")
	row, _ := d.Row(stages[0], "hello")
	require.EqualValues(t, 7, row.Unsent)
	require.False(t, d.Unlimited(stages[0], "hello"), "the generator is the limit on purpose")
}

func TestErrorsAreNotHidden(t *testing.T) {
	d := sample(6)
	d.Measurements[0].Errors = map[string]uint64{"status 500": 7}
	d.Measurements[1].Established = 98
	d.Measurements[1].ConnectErrors = map[string]uint64{"too many open files": 2}
	d.Build("")
	require.EqualError(t, d.Failure(), "not every answer was right: stage0-naive on hello: 7 × status 500 (and 2 more lines like it in the notes)")
	notes := strings.Join(d.Notes, "\n")
	require.Contains(t, notes, "! stage1-reuseport on hello: only 98 of 100 connections were established")
	require.Contains(t, notes, "! stage1-reuseport on hello: 2 × too many open files")
	var out bytes.Buffer
	Text(&out, d)
	require.Regexp(t, `0 naive +[0-9,]+ b!`, out.String())
}

func TestDisturbancesAreTold(t *testing.T) {
	d := sample(6)
	for i := range d.Measurements {
		d.Measurements[i].StealShare, d.Measurements[i].OthersShare = 0.07, 0.031
	}
	d.Build("")
	notes := strings.Join(d.Notes, "\n")
	require.Contains(t, notes, "the hypervisor took 7.0% of the CPUs' time")
	require.Contains(t, notes, "other processes used 3.1% of the CPUs' time.")
	require.NotContains(t, notes, "too much for figures to go by")
	for i := range d.Measurements {
		d.Measurements[i].OthersShare = 0.44
	}
	d.Build("")
	require.Contains(t, strings.Join(d.Notes, "\n"), "other processes used 44% of the CPUs' time. That is too much for figures to go by")
}

func TestAgainstAnEarlierRun(t *testing.T) {
	built := func(change func(*results.Document)) *results.Document {
		d := sample(6)
		if change != nil {
			change(d)
		}
		d.Build("")
		return d
	}
	notes := func(d, other *results.Document) string {
		before := len(d.Notes)
		d.Against(other)
		return strings.Join(d.Notes[before:], "\n")
	}

	require.Equal(t, "The run of 2025-03-01 12:00 UTC agrees: all 9 ratios within 3%, the furthest apart by 0.0%.", notes(built(nil), built(nil)),
		"what is a step and a target is one ratio")

	slower := func(d *results.Document) {
		for i := range d.Measurements {
			if d.Measurements[i].Server == stages[1] {
				d.Measurements[i].RequestsPerSecond *= 0.95
			}
		}
	}
	require.Equal(t, "The run of 2025-03-01 12:00 UTC differs by more than 3% in 2 of 9 ratios: "+
		"2 conn-timer to 1 reuseport on hello (requests per second): 1.10 [1.10–1.10] then, 1.16 [1.16–1.16] now; "+
		"1 reuseport to 0 naive on hello (requests per second): 1.10 [1.10–1.10] then, 1.05 [1.05–1.05] now.\n"+
		"What was different: nothing that this command can see (not the steal time, other processes, the source or the method).", notes(built(slower), built(nil)))

	// Many are not all written out, and the largest come first.
	upside := func(d *results.Document) {
		for i := range d.Measurements {
			if m := &d.Measurements[i]; m.Workload == "hello" {
				m.RequestsPerSecond = 1e9 / m.RequestsPerSecond
			}
		}
	}
	text := notes(built(upside), built(nil))
	require.Contains(t, text, "in 9 of 9 ratios, of which the furthest apart are: 5 speculative-read to 0 naive on hello")
	require.Equal(t, 3, strings.Count(text, " then, "))

	// Whatever was different is named.
	text = notes(built(func(d *results.Document) {
		slower(d)
		for i := range d.Measurements {
			m := &d.Measurements[i]
			m.StealShare, m.OthersShare, m.MHz = 0.1, 0.05, 2100
			if m.Server == twin {
				m.RequestsPerSecond *= 1.2
			}
		}
		d.Machine.LoadAverage, d.Machine.Governor, d.Machine.Battery, d.Method.Seconds, d.Method.Revision = 3.5, "powersave", true, 0.2, "def"
	}), built(func(d *results.Document) {
		for i := range d.Measurements {
			d.Measurements[i].MHz = 3400
		}
		d.Machine.Governor, d.Method.Revision = "performance", "abc"
	}))
	for _, want := range []string{
		"stolen by the hypervisor: 0.0% of the CPUs' time then, 10% now", "taken by other processes: 0.0% then, 5.0% now", "differed from itself by up to 0% then, 20% now",
		"load average before the run: 0.0 then, 3.5 now", "clock of the CPUs: 3400 MHz then, 2100 now", "frequency governor: performance then, powersave now",
		"on battery: false then, true now", "the source: abc then, def now", "6 rounds of 0.5 s then, 6 of 0.2 s now",
	} {
		require.Contains(t, text, want)
	}

	// Runs that were too short to tell say so.
	wide := func(factor float64) func(*results.Document) {
		return func(d *results.Document) {
			for i, m := range d.Measurements {
				if m.Server == stages[1] {
					d.Measurements[i].RequestsPerSecond *= factor + 0.1*float64(m.Round%2)
				}
			}
		}
	}
	text = notes(built(wide(0.95)), built(wide(1)))
	require.Contains(t, text, "The rounds spread by up to 5%, and in all of these the intervals of both runs overlap: there the two do not contradict each other.")

	other := built(func(d *results.Document) { d.Machine.Kernel = "Linux 5.4.0" })
	require.EqualError(t, built(nil).Comparable(other), "the kernel: Linux 5.4.0 then, Linux 6.12.0 now")
	require.NoError(t, built(nil).Comparable(built(nil)))
	d := built(nil)
	require.Empty(t, notes(d, &results.Document{}), "nothing in common")
}

// On neither side of a ratio does a round without an answer count: 0 on the one
// and infinite, so left out, on the other would favour one of the two.
func TestARoundWithoutAnAnswerFavoursNobody(t *testing.T) {
	for _, server := range []string{stages[0], stages[1]} {
		d := sample(7)
		for i := range d.Measurements {
			if m := &d.Measurements[i]; m.Server == server && m.Round == 2 {
				m.RequestsPerSecond, m.Requests, m.Latency, m.ServerCPUNanos = 0, 0, load.Latency{}, 0
			}
		}
		d.Build("")
		r, ok := d.Find(results.Step, stages[1])
		require.True(t, ok)
		require.Equal(t, 6, r.Ratio.Rounds)
		require.InDelta(t, 1.1, r.Ratio.Low, 1e-9)
		require.InDelta(t, 1.1, r.Ratio.High, 1e-9)
		row, _ := d.Row(server, "hello")
		require.Equal(t, 6, row.P50Micros.Rounds)
		require.Equal(t, 1200.0, row.P50Micros.Low)
		require.Contains(t, strings.Join(d.Notes, "\n"), server+" on hello: in 1 of 7 rounds not one request was answered")
	}
}

func TestConnectionsMadeAnewAndStaleDatesAreTold(t *testing.T) {
	d := sample(6)
	for i := range d.Measurements {
		if m := &d.Measurements[i]; m.Server == stages[1] && m.Workload == "hello" {
			m.Reconnects, m.StaleDates = 1000, 1
		}
	}
	d.Build("")
	notes := strings.Join(d.Notes, "\n")
	require.Contains(t, notes, "stage1-reuseport on hello: 6,000 connections had to be made anew")
	require.Contains(t, notes, "stage1-reuseport sends a Date that is not the time")
	require.Equal(t, 1, strings.Count(notes, "made anew"))

	d.Workloads[0].Reconnect = true // there that is what it is about
	d.Build("")
	require.NotContains(t, strings.Join(d.Notes, "\n"), "made anew")
}

func TestWriteAndRead(t *testing.T) {
	folder := t.TempDir()
	d := sample(6)
	d.Build("")
	paths, err := Write(d, folder, "ladder")
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(folder, "ladder.json"), filepath.Join(folder, "ladder.md")}, paths)
	for _, name := range []string{"ladder-2025-03-01T12-00-00Z.json", "ladder-2025-03-01T12-00-00Z.md"} {
		require.FileExists(t, filepath.Join(folder, name))
	}
	back, err := results.Read(paths[0])
	require.NoError(t, err)
	require.Equal(t, d.Ratios, back.Ratios)
	require.Equal(t, d.Notes, back.Notes)

	markdown, err := os.ReadFile(paths[1])
	require.NoError(t, err)
	require.Contains(t, string(markdown), "| 0 naive |")
	require.Contains(t, string(markdown), "# The QPS ladder")

	// A run that was cut short does not take the place of one that was not.
	d.Ended = "interrupted"
	paths, err = Write(d, folder, "ladder")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(folder, "ladder-partial.json"), paths[0])
	back, err = results.Read(filepath.Join(folder, "ladder.json"))
	require.NoError(t, err)
	require.Equal(t, results.Complete, back.Ended)
}

func TestReadRefusesOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	for content, want := range map[string]string{
		"{}": "is no report that this version reads",
		`{"schema":"qps-ladder/bench","version":3}`: "version 3",
		"no json": "is not a report",
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := results.Read(path)
		require.ErrorContains(t, err, want)
	}
	_, err := results.Read(filepath.Join(t.TempDir(), "missing.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestNothingMeasured(t *testing.T) {
	d := sample(0)
	d.Build("")
	require.Empty(t, d.Rows)
	for _, r := range d.Ratios {
		require.Equal(t, stats.Missing, r.Verdict)
	}
	_, err := Write(d, t.TempDir(), "ladder")
	require.NoError(t, err, "no figure that JSON cannot hold")
}

func TestLabel(t *testing.T) {
	for name, want := range map[string]string{
		"stage5-speculative-read": "5 speculative-read", "stage1 -acceptor": "1 -acceptor", "stage1-reuseport ×2": "1 reuseport ×2", "stage3": "3", "bare-c": "bare-c",
	} {
		require.Equal(t, want, results.Label(name))
	}
}

func TestNumbers(t *testing.T) {
	require.Equal(t, "0.00", decimal(0.001))
	require.Equal(t, "0", decimal(0))
	require.Equal(t, "5.02", decimal(5.021))
	require.Equal(t, "962 µs", latency(962))
	require.Equal(t, "1.00 ms", latency(999))
	require.Equal(t, "1.23 s", latency(1234567))
	require.Equal(t, "–", latency(0))
}

func TestFactsOfTheMachineStandInTheReport(t *testing.T) {
	d := sample(6)
	d.Machine.CongestionControl, d.Machine.ClockSource, d.Machine.Topology = "bbr", "tsc", "2 CPUs, 1 core"
	d.Build("")
	var markdown, page bytes.Buffer
	Markdown(&markdown, d)
	require.NoError(t, HTML(&page, d, func(string) string { return "" }))
	for _, want := range []string{"Congestion control: bbr", "Clock source: tsc", "Topology: 2 CPUs, 1 core"} {
		require.Contains(t, markdown.String(), "- "+want+"\n")
		name, value, _ := strings.Cut(want, ": ")
		require.Contains(t, page.String(), "<dt>"+name+"</dt><dd>"+value+"</dd>")
	}
	require.Contains(t, strings.Join(d.Notes, "\n"), "congestion control is bbr, which paces")
	require.NotContains(t, markdown.String(), "Tickless")
}

// At a rate requests per second are known beforehand: a table of what differs stands in their place.
func TestAtARate(t *testing.T) {
	d := sample(6)
	d.Ratios, d.Method.Rate = nil, 1000
	d.Build("")
	var out bytes.Buffer
	Text(&out, d)
	require.Regexp(t, `At 1,000 requests per second, hello`, out.String())
	require.Regexp(t, `0 naive +8\.00 +1\.20 ms +2\.00 ms +3\.00 ms`, out.String())
	require.NotContains(t, out.String(), "\nRequests per second\n")
}
