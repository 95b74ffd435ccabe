// Package stats turns repeated rounds into figures with their uncertainty.
//
// Rounds are paired: everything that is compared was measured in the same
// round, so that a machine that slows down for a while slows both sides. A
// ratio is taken within each round; its centre is the median over the rounds,
// and its interval is made of two order statistics of those ratios, which
// assumes nothing about how they are distributed.
//
// It knows numbers alone: no files, no servers, and no text around a figure.
package stats

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"golang.org/x/perf/benchmath"
)

// Confidence is the level asked of every interval. With few rounds the next
// higher level that order statistics can give is used: six rounds give 96.9%.
const Confidence = 0.95

// MinimumRounds is the least number of rounds whose smallest and largest value
// enclose the median with Confidence: 1 - 2/2^6 is 96.9%, 1 - 2/2^5 only 93.8%.
const MinimumRounds = 6

// Interval is a median with its order-statistic confidence interval.
// The zero value stands for "not measured".
type Interval struct {
	Median float64 `json:"median"`
	// Low and High are 0 when there were fewer than MinimumRounds rounds:
	// see Bounded.
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"` // the level reached, at least 0.95
	Rounds     int     `json:"rounds"`
}

// Bounded tells whether there were enough rounds for an interval.
func (i Interval) Bounded() bool { return i.Rounds >= MinimumRounds }

// Measured tells whether there was any round at all.
func (i Interval) Measured() bool { return i.Rounds > 0 }

// Spread is the larger distance from the median to a bound, as a share of the
// median: 0.01 is one percent. It is 0 for an interval that is not bounded.
func (i Interval) Spread() float64 {
	if !i.Bounded() || i.Median == 0 {
		return 0
	}
	return math.Max(i.High-i.Median, i.Median-i.Low) / math.Abs(i.Median)
}

// Summarise returns the median of values and its interval. Values are not
// changed; those that are not finite are left out.
func Summarise(values []float64) Interval {
	finite := make([]float64, 0, len(values))
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			finite = append(finite, v)
		}
	}
	if len(finite) == 0 {
		return Interval{}
	}
	sample := benchmath.NewSample(finite, &benchmath.DefaultThresholds)
	summary := benchmath.AssumeNothing.Summary(sample, Confidence)
	out := Interval{Median: summary.Center, Rounds: len(finite)}
	if out.Bounded() {
		out.Low, out.High, out.Confidence = summary.Lo, summary.Hi, summary.Confidence
	}
	return out
}

// Ratios returns head[i]/base[i] for every round i that both have; a round
// missing on one side is given as NaN there, and left out.
func Ratios(head, base []float64) []float64 {
	out := make([]float64, 0, len(head))
	for i := range min(len(head), len(base)) {
		r := head[i] / base[i]
		if !math.IsNaN(r) && !math.IsInf(r, 0) {
			out = append(out, r)
		}
	}
	return out
}

// Ratio is the interval of head over base, paired round by round.
func Ratio(head, base []float64) Interval { return Summarise(Ratios(head, base)) }

// Floor is the noise floor that an interval of a server to itself gives, as a share: 0.03 says that
// the same server differs from itself by three percent, up or down. Without an interval nothing is
// known, and no difference is beyond it.
func (i Interval) Floor() float64 {
	if !i.Bounded() {
		return math.Inf(1)
	}
	return math.Max(i.High, 1/i.Low) - 1
}

// Beyond tells whether a ratio differs from 1, up or down, by more than a floor.
func (i Interval) Beyond(floor float64) bool { return math.Max(i.Median, 1/i.Median) > 1+floor }

// Verdict says what a ratio allows to be said.
type Verdict string

// The verdicts on a ratio: see Judge.
const (
	Higher     Verdict = "higher"
	Lower      Verdict = "lower"
	CannotTell Verdict = "cannot tell"
	TooFew     Verdict = "too few rounds"
	Missing    Verdict = "not measured"
)

// Judge gives the verdict on a ratio. For Higher and Lower the interval must exclude 1, and the
// median lie beyond the noise floor. A run gives so many verdicts that the interval alone would be
// wrong somewhere in every second or third of them.
func Judge(i Interval, floor float64) Verdict {
	switch {
	case !i.Measured():
		return Missing
	case !i.Bounded():
		return TooFew
	case i.Low > 1 && i.Beyond(floor):
		return Higher
	case i.High < 1 && i.Beyond(floor):
		return Lower
	}
	return CannotTell
}

// Format writes a ratio as "1.33 [1.31–1.35]", or "1.33" without an interval.
func (i Interval) Format() string {
	switch {
	case !i.Measured():
		return "–"
	case !i.Bounded():
		return Short(i.Median)
	}
	low, high := i.Bounds()
	return Short(i.Median) + " [" + low + "–" + high + "]"
}

// Bounds writes both ends of a ratio's interval. One that leaves 1 out must not be rounded to it:
// "faster" beside "[0.93–1.00]" would look like a mistake.
func (i Interval) Bounds() (low, high string) {
	low, high = Short(i.Low), Short(i.High)
	for digits := 3; i.Low > 1 && rounded(low) <= 1; digits++ {
		low = strconv.FormatFloat(i.Low, 'f', digits, 64)
	}
	for digits := 3; i.High < 1 && rounded(high) >= 1; digits++ {
		high = strconv.FormatFloat(i.High, 'f', digits, 64)
	}
	return low, high
}

func rounded(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// Short writes a ratio with three or four digits.
func Short(v float64) string {
	if math.Abs(v) >= 9.995 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Median returns the median of values, NaN when there are none. Values are not
// changed.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
