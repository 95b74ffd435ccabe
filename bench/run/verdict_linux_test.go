package run

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// noises are what a measurement of one and the same server is multiplied by from run to run.
var noises = map[string]func(*rand.Rand) float64{
	"normal": func(r *rand.Rand) float64 { return math.Exp(0.03 * r.NormFloat64()) },
	"skewed": func(r *rand.Rand) float64 { return math.Exp(-0.05 * r.ExpFloat64()) },
	"disturbed": func(r *rand.Rand) float64 {
		if r.IntN(8) == 0 {
			return 0.7
		}
		return math.Exp(0.01 * r.NormFloat64())
	},
}

// simulated is a run of the ladder on made-up servers: speed says how fast each is on a workload, a
// request costs the server's CPU the inverse, and the machine drifts from round to round.
func simulated(t *testing.T, random *rand.Rand, rounds int, noise func(*rand.Rand) float64, speed func(server, workload string) float64) *results.Document {
	t.Helper()
	b := Bench{Generator: Embedded, Rounds: rounds}
	require.NoError(t, b.Ladder(stageServers(), &Server{Name: BareC}))
	d := &results.Document{Ratios: b.Ratios, Method: results.Method{Layout: results.Split, Rounds: rounds}}
	b.list(d)
	for round := 1; round <= rounds; round++ {
		machine := 1 + 0.3*random.Float64()
		for _, item := range order(b.due(round), random) {
			server, on := item.Server.Name, item.Workload.Name
			d.Measurements = append(d.Measurements, results.Measurement{
				Round: round, Server: server, Workload: on, ServerBusy: 1, Established: item.Workload.Total(), HeldPerConnection: 9472,
				RequestsPerSecond: 1e5 * machine * speed(server, on) * noise(random), ServerCPUNanos: 1e4 * machine / speed(server, on) * noise(random),
			})
		}
	}
	for i, r := range d.Ratios {
		d.Ratios[i] = d.Compare(r)
	}
	return d
}

// told counts the ratios of a run that are said to differ, by the verdict and by the interval alone.
func told(d *results.Document) (verdicts, intervals int) {
	for _, r := range d.Ratios {
		if r.Kind == results.Noise || r.Metric == results.HeldMemory {
			continue
		}
		if r.Better() != 0 {
			verdicts++
		}
		if r.Ratio.Bounded() && (r.Ratio.Low > 1 || r.Ratio.High < 1) {
			intervals++
		}
	}
	return verdicts, intervals
}

// In a table of servers that are all the same every difference that is told is a false one. By the
// interval alone a third of such tables has one or more, since there are so many of them; with the
// noise floor hardly any.
func TestTablesOfTheSameServerTellNoDifference(t *testing.T) {
	const tables, seed = 100, 13
	t.Logf("seed %d", seed)
	same := func(string, string) float64 { return 1 }
	for name, noise := range noises {
		lengths := []int{12}
		if testenv.SlowToo() {
			lengths = []int{6, 12, 24}
		}
		for _, rounds := range lengths {
			random := rand.New(rand.NewPCG(seed, uint64(rounds)))
			byVerdict, byInterval := 0, 0
			for range tables {
				verdicts, intervals := told(simulated(t, random, rounds, noise, same))
				if verdicts > 0 {
					byVerdict++
				}
				if intervals > 0 {
					byInterval++
				}
			}
			t.Logf("%s, %d rounds: %.0f%% of the tables have a false verdict, %.0f%% by the interval alone", name, rounds, 100*float64(byVerdict)/tables, 100*float64(byInterval)/tables)
			require.Less(t, byVerdict, tables*8/100, "%s, %d rounds", name, rounds)
			require.Greater(t, byInterval, tables*25/100, "%s, %d rounds: then the interval alone would do", name, rounds)
		}
	}
}

// A rule that tells nothing would pass the test above.
func TestTablesTellTheSteps(t *testing.T) {
	const seed = 14
	t.Logf("seed %d", seed)
	// To the one before, about what each step brings with a CPU for server and generator each.
	steps := map[string][]float64{
		"hello": {1, 1.34, 1.13, 1.94, 1, 1.09}, "browser": {1, 1.34, 1.13, 2.44, 1, 1.09},
		"pipelined": {1, 1.34, 1.13, 1.94, 4.74, 1.09}, "body64k": {1, 1, 1, 1, 1.14, 1}, idleWorkload: {1, 1, 1, 1, 1, 1},
	}
	speed := func(server, workload string) float64 {
		product := 1.0
		for i, folder := range stageFolders {
			product *= steps[workload][i]
			if server == folder || server == folder+Again {
				break
			}
		}
		return product
	}
	missed := 0
	const tables = 40
	for i := range tables {
		d := simulated(t, rand.New(rand.NewPCG(seed, uint64(i))), 24, noises["normal"], speed)
		for _, r := range d.Ratios {
			if r.Kind == results.Target && r.Metric == results.RequestsPerSecond && r.Verdict != stats.Higher {
				missed++
			}
		}
	}
	require.LessOrEqual(t, missed, tables/10, "of %d tables with 3%% of noise", tables)
}
