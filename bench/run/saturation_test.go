//go:build linux

package run

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// split is a bench with CPUs of their own for server and generator.
func split(t *testing.T) *Bench {
	t.Helper()
	cpus, err := netpoll.CPUs()
	require.NoError(t, err)
	if len(cpus) < 2 {
		t.Skip("a CPU for each needs two")
	}
	b := bench(t)
	b.place = Place{Layout: results.Split, Server: cpus[:1], Load: cpus[1:2], Own: cpus[1:2]}
	b.Workers, b.Duration = 1, 400*time.Millisecond
	return b
}

// burn keeps a CPU busy with as many processes, until the test ends.
func burn(t *testing.T, cpu, processes int) {
	t.Helper()
	own, err := os.Executable()
	require.NoError(t, err)
	for range processes {
		cmd := exec.Command(own)
		cmd.Env = append(os.Environ(), rigVariable+"=burns")
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		var set unix.CPUSet
		set.Set(cpu)
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", cmd.Process.Pid))
		require.NoError(t, err)
		for _, task := range tasks {
			id, err := strconv.Atoi(task.Name())
			require.NoError(t, err)
			require.NoError(t, unix.SchedSetaffinity(id, &set))
		}
	}
}

// A client that is slow on purpose, on CPUs of its own, does not pass for a slow server.
func TestSlowClientIsNotTheServersLimit(t *testing.T) {
	b := split(t)
	// The bench knows nothing of it: its generator sends 50 requests a second and no more.
	slow := filepath.Join(t.TempDir(), "generator")
	require.NoError(t, os.WriteFile(slow, []byte("#!/bin/sh\nexec "+b.Command+" \"$@\" --rate 50\n"), 0o755))
	b.Command = slow
	b.Items = []Item{{Server: rig(t, "good"), Workload: hello(t, 2)}}
	d, row := runUntil(t, b, func(row results.Row) bool { return row.Saturated == results.NeitherSide })
	require.Equal(t, results.NeitherSide, row.Saturated, "%+v", row)
	require.Contains(t, strings.Join(d.Notes, "\n"), "* Not the server's limit on hello: neither side was saturated")
}

// runUntil runs b until what it tells is as wanted, ten times at most: other processes of the machine may take the other
// side's CPU at the same time.
func runUntil(t *testing.T, b *Bench, wanted func(results.Row) bool) (d *results.Document, row results.Row) {
	t.Helper()
	for range 10 {
		var err error
		d, err = b.Run(t.Context())
		require.NoError(t, err)
		if row, _ = d.Row("good", workload.Hello); wanted(row) {
			break
		}
	}
	return d, row
}

// A side whose CPU others have too is at its limit at far less than a whole CPU, and the run says so.
func TestACPUTakenByOthersIsTold(t *testing.T) {
	for side, c := range map[results.Side]struct {
		cpu    func(Place) int
		others func(results.Method) float64
		note   string
	}{
		results.GeneratorSide: {
			func(p Place) int { return p.Load[0] }, func(m results.Method) float64 { return m.LoadOthers },
			`Disturbed: other processes used .* of the server's and [3-9][0-9]% of the generator's`,
		},
		results.ServerSide: {
			func(p Place) int { return p.Server[0] }, func(m results.Method) float64 { return m.ServerOthers },
			`Disturbed: other processes used .*, [3-9][0-9]% of the server's`,
		},
	} {
		t.Run(string(side), func(t *testing.T) {
			b := split(t)
			burn(t, c.cpu(b.place), 4)
			b.Items = []Item{{Server: rig(t, "good"), Workload: hello(t, 50)}}
			limited := func(row results.Row) bool { return row.Saturated == side || row.Saturated == results.BothSides }
			d, row := runUntil(t, b, limited)
			require.True(t, limited(row), "%+v", row)
			require.Greater(t, c.others(d.Method), 0.3)
			require.Regexp(t, c.note, strings.Join(d.Notes, "\n"))
		})
	}
}

// What a side is busy with is what it ran, and what it waited for as far as others ran meanwhile.
func TestBusyCountsStandingInLine(t *testing.T) {
	const second = int64(time.Second)
	b := &Bench{place: Place{Layout: results.Split, Server: []int{0}, Load: []int{1}}}
	for name, c := range map[string]struct {
		own, busy int64         // of the server's CPU, in 10 ms
		line      time.Duration // of the server
		want      float64
	}{
		"alone":                                     {98, 98, 0, 0.98},
		"idle half":                                 {50, 50, 0, 0.5},
		"half of it taken, and it wants all":        {50, 100, 500 * time.Millisecond, 1},
		"its CPU kept busy, and it wants little":    {20, 100, 50 * time.Millisecond, 0.25},
		"its own threads in line behind each other": {60, 60, 800 * time.Millisecond, 0.6},
	} {
		var m results.Measurement
		var after reading
		after.server, after.load = cpuTicks{c.busy, 100 - c.busy, 0}, cpuTicks{40, 60, 0}
		after.line.server = c.line
		b.fillBusy(&m, load.Result{Elapsed: 1, Threads: 1, ServerCPUNanos: c.own * second / 100, ClientCPUNanos: 40 * second / 100}, reading{}, after, 1)
		require.InDelta(t, c.want, m.ServerBusy, 1e-9, name)
		require.InDelta(t, 0.4, m.ClientBusy, 1e-9, name)
		require.InDelta(t, float64(c.busy-c.own)/100, m.ServerOthers, 1e-9, name)
	}
}

// Where the server was not the limit, both servers are measured again at a rate that both can serve.
func TestWhatWasNotTheServersLimitIsRepeatedAtARate(t *testing.T) {
	b := split(t)
	b.Rounds, b.Duration = 2, 200*time.Millisecond
	b.Pair(rig(t, "good"), rig(t, "slow"), hello(t, 1))
	d := &results.Document{Method: results.Method{Layout: results.Split, Rounds: 2}, Ratios: b.Ratios}
	b.list(d)
	measured := func(server string, rate, busy float64) {
		d.Measurements = append(d.Measurements, results.Measurement{Round: 1, Server: server, Workload: workload.Hello, RequestsPerSecond: rate, ServerBusy: busy, ClientBusy: 0.3})
	}
	measured("good", 9000, 0.98)
	measured("good"+Again, 9100, 0.98)
	measured("slow", 850, 0.2)
	require.True(t, b.repeat(d))
	b.list(d)
	require.NoError(t, b.rounds(t.Context(), d, time.Now()))
	d.Build("")

	require.Equal(t, results.Workload{Name: "hello@420", Rate: 420, Repeats: "hello", Summary: d.Workloads[0].Summary, Connections: 1, Pipeline: 1,
		RequestBytes: d.Workloads[0].RequestBytes, BodyBytes: 13, Rounds: 2}, d.Workloads[1])
	compared := map[results.Metric]bool{}
	for _, r := range d.Ratios {
		if r.Workload == "hello@420" && r.Kind == results.Pair {
			require.Equal(t, []string{"slow", "good"}, []string{r.Head, r.Base})
			require.Equal(t, 2, r.Ratio.Rounds)
			compared[r.Metric] = true
		}
	}
	require.Equal(t, map[results.Metric]bool{results.ServerCPU: true, results.LatencyP50: true, results.LatencyP99: true}, compared)
	for _, m := range d.Measurements {
		require.True(t, m.Workload == workload.Hello || m.Requests <= 85, "420 a second for 200 ms: %d", m.Requests)
	}
	require.Contains(t, strings.Join(d.Notes, "\n"), "measured again at a fixed rate")
	require.Empty(t, children(t))

	for name, change := range map[string]func(){
		"not wanted":       func() { b.NoRepeat = true },
		"at a rate anyway": func() { b.Rate = 100 },
	} {
		b.NoRepeat, b.Rate = false, 0
		change()
		require.False(t, b.repeat(d), name)
	}
	b.NoRepeat, b.Rate = false, 0
	for i := range d.Measurements {
		d.Measurements[i].ServerBusy = 0.99
	}
	require.False(t, b.repeat(d), "the server was the limit everywhere")
}

func TestRateNames(t *testing.T) {
	require.Equal(t, "c1@12k", RateName(workload.Workload{Name: "c1"}, roundDown(12_900)))
	require.Equal(t, "c1@850", RateName(workload.Workload{Name: "c1"}, roundDown(859)))
	require.Equal(t, 120000.0, roundDown(123_456))
	require.Zero(t, roundDown(0))
}
