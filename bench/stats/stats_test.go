package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchmath"
)

func TestSummariseKnownAnswers(t *testing.T) {
	six := Summarise([]float64{3, 1, 2, 6, 5, 4})
	require.Equal(t, 3.5, six.Median)
	require.Equal(t, 1.0, six.Low, "with six rounds the interval is the whole range")
	require.Equal(t, 6.0, six.High)
	require.InDelta(t, 1-2.0/64, six.Confidence, 1e-9)

	// For nine values the binomial puts 96.1% between the 2nd and the 8th.
	nine := Summarise([]float64{9, 8, 7, 6, 5, 4, 3, 2, 1})
	require.Equal(t, 5.0, nine.Median)
	require.Equal(t, 2.0, nine.Low)
	require.Equal(t, 8.0, nine.High)
	require.InDelta(t, 1-2*10.0/512, nine.Confidence, 1e-9)
}

func TestFewRoundsHaveNoInterval(t *testing.T) {
	five := Summarise([]float64{1.1, 1.2, 1.3, 1.4, 1.5})
	require.Equal(t, 1.3, five.Median)
	require.False(t, five.Bounded())
	require.Zero(t, five.Low)
	require.Equal(t, TooFew, Judge(five, 0))
	require.Equal(t, Missing, Judge(Summarise(nil), 0))
	require.Equal(t, "1.30", five.Format())
	require.Equal(t, "–", Interval{}.Format())
}

func TestBoundsAreNotRoundedAcrossOne(t *testing.T) {
	interval := func(low, high float64) Interval {
		return Interval{Median: (low + high) / 2, Low: low, High: high, Confidence: 0.95, Rounds: 12}
	}
	require.Equal(t, "0.96 [0.93–0.998]", interval(0.93, 0.9981).Format())
	require.Equal(t, "1.03 [1.0004–1.05]", interval(1.0004, 1.05).Format())
	require.Equal(t, "1.00 [1.00–1.00]", interval(0.999, 1.001).Format(), "it holds 1")
	require.Equal(t, "1.00 [1.00–1.00]", interval(1, 1).Format(), "it holds 1")
}

func TestSummariseLeavesInputAlone(t *testing.T) {
	values := []float64{3, 1, 2}
	Summarise(values)
	require.Equal(t, []float64{3, 1, 2}, values)
	require.Equal(t, 2.0, Median(values))
	require.Equal(t, []float64{3, 1, 2}, values)
	require.True(t, math.IsNaN(Median(nil)))
}

func TestRatioPairsRounds(t *testing.T) {
	// The machine halves its speed in the middle; the ratio does not notice.
	base := []float64{100, 100, 50, 50, 100, 100}
	head := []float64{150, 150, 75, 75, 150, 150}
	r := Ratio(head, base)
	require.Equal(t, Interval{Median: 1.5, Low: 1.5, High: 1.5, Confidence: r.Confidence, Rounds: 6}, r)
	require.Equal(t, Higher, Judge(r, 0))
	require.Equal(t, Lower, Judge(Ratio(base, head), 0))
	require.Equal(t, CannotTell, Judge(Ratio(base, base), 0))

	head[2] = math.NaN()
	require.Equal(t, 5, Ratio(head, base).Rounds, "a round missing on one side is left out")
	require.Equal(t, 2, Ratio([]float64{1, 2, 3}, []float64{1, 2}).Rounds)
	require.Equal(t, 1, Ratio([]float64{1, 2}, []float64{0, 2}).Rounds)
}

func TestSpread(t *testing.T) {
	require.InDelta(t, 0.05, Interval{Median: 2, Low: 1.9, High: 2.02, Rounds: 6}.Spread(), 1e-9)
	require.Zero(t, Interval{Median: 2, Rounds: 3}.Spread())
}

const truth = 1.07 // of head over base in what follows

// noises are what a measurement is multiplied by: their median does not matter, since both sides
// have the same.
var noises = map[string]func(*rand.Rand) float64{
	"normal":      func(r *rand.Rand) float64 { return math.Exp(0.03 * r.NormFloat64()) },
	"exponential": func(r *rand.Rand) float64 { return math.Exp(-0.1 * r.ExpFloat64()) },
	"outliers": func(r *rand.Rand) float64 {
		if r.IntN(8) == 0 {
			return 0.5
		}
		return math.Exp(0.01 * r.NormFloat64())
	},
}

// coverage is how often the interval that of makes of so many rounds holds the
// truth, and how often it says the contrary, on a machine whose speed drifts.
func coverage(noise func(*rand.Rand) float64, rounds int, of func(head, base []float64) Interval) (covered, contrary float64) {
	const trials = 4000
	random := rand.New(rand.NewPCG(1, uint64(rounds)))
	for range trials {
		base, head := make([]float64, rounds), make([]float64, rounds)
		for i := range base {
			machine := 50_000 * (1 + 0.3*random.Float64())
			base[i] = machine * noise(random)
			head[i] = machine * truth * noise(random)
		}
		r := of(head, base)
		if r.Low <= truth && truth <= r.High {
			covered += 1.0 / trials
		}
		if Judge(r, 0) == Lower {
			contrary += 1.0 / trials
		}
	}
	return covered, contrary
}

// The interval of a known ratio covers it at least 95% of the time, whatever
// the noise looks like and however the machine drifts from round to round.
func TestIntervalCoversKnownRatio(t *testing.T) {
	for name, noise := range noises {
		for _, rounds := range []int{6, 9, 14, 20} {
			covered, contrary := coverage(noise, rounds, Ratio)
			require.GreaterOrEqual(t, covered, 0.95, "%s, %d rounds", name, rounds)
			require.Less(t, contrary, 0.025, "%s, %d rounds", name, rounds)
		}
	}
}

// The test above would notice intervals that claim too much, however plausible.
func TestCoverageOfBrokenIntervalsIsSeen(t *testing.T) {
	broken := map[string]func(head, base []float64) Interval{
		"one order statistic too narrow on each side": func(head, base []float64) Interval {
			r := Ratio(head, base)
			ratios := slices.Sorted(slices.Values(Ratios(head, base)))
			low := slices.Index(ratios, r.Low)
			r.Low, r.High = ratios[low+1], ratios[len(ratios)-2-low]
			return r
		},
		"of a lower confidence": func(head, base []float64) Interval {
			summary := benchmath.AssumeNothing.Summary(benchmath.NewSample(Ratios(head, base), &benchmath.DefaultThresholds), 0.5)
			return Interval{Median: summary.Center, Low: summary.Lo, High: summary.Hi, Rounds: len(head)}
		},
		"of the side that was luckier": func(head, base []float64) Interval {
			r := Ratio(head, base)
			return Interval{Median: r.High, Low: r.Median, High: r.High, Rounds: r.Rounds}
		},
	}
	for what, of := range broken {
		for name, noise := range noises {
			least := 1.0
			for _, rounds := range []int{6, 9, 14, 20} {
				covered, _ := coverage(noise, rounds, of)
				least = min(least, covered)
			}
			require.Less(t, least, 0.94, "%s: %s", what, name)
		}
	}
}

// Real differences are found: an interval that is always wide would cover everything.
func TestIntervalsFindARealDifference(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 3))
	found := 0
	for range 1000 {
		base, head := make([]float64, 13), make([]float64, 13)
		for i := range base {
			base[i], head[i] = noises["normal"](random), truth*noises["normal"](random)
		}
		if Judge(Ratio(head, base), 0) == Higher {
			found++
		}
	}
	require.Greater(t, found, 800, "of 7%% with 3%% of noise in 13 rounds")
}
