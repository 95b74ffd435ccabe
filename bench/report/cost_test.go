package report

import (
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/require"
)

// threeCosts are a start, a step that takes its timers away, one that brings nothing, and a bare
// loop that nobody looked into.
func threeCosts() []Cost {
	shares := func(timers float64) (s [Parts]float64) {
		s[Send], s[Timers], s[Parser] = 0.5*(1-timers), timers, 0.5*(1-timers)
		return s
	}
	return []Cost{
		{Name: "0 naive", Micros: 40, Shares: shares(0.5), Here: "24.6 K", Published: "27.5 K"}, {Name: "1 step", Micros: 20, Shares: shares(0), Here: "50 K", Published: "–"},
		{Name: "2 same", Micros: 19.5, Shares: shares(0), Same: true}, {Name: "bare C loop", Micros: 10, Apart: true},
	}
}

func TestCostPicture(t *testing.T) {
	for _, scheme := range []string{LightScheme, DarkScheme, PageScheme} {
		svg := CostSVG(threeCosts(), scheme, "µs per request")
		require.Contains(t, svg, "−20.0 µs: timers −20.0<")
		require.Contains(t, svg, "no difference that a run can tell")
		require.Contains(t, svg, "<title>timers: 20.00 µs, 50%</title>")
		require.Contains(t, svg, "24.6 K")
		require.Equal(t, scheme == PageScheme, strings.Contains(svg, "var(--"), "a file of its own has no variables to look up")
		require.NotContains(t, svg, "NaN")
		require.NotContains(t, svg, "\n\n", "an empty line would end it in Markdown")
	}
}

// In a terminal a bar is as long as what it stands for, in letters that say what colours do.
func TestCostText(t *testing.T) {
	var plain, coloured strings.Builder
	CostText(&plain, threeCosts(), 80, false)
	CostText(&coloured, threeCosts(), 80, true)
	lines := strings.Split(plain.String(), "\n")
	require.Equal(t, "0 naive      "+strings.Repeat("S", 14)+strings.Repeat("T", 29)+strings.Repeat("P", 14)+" 40.0 µs", lines[0])
	require.Equal(t, "             −20.0 µs: timers −20.0", lines[1])
	require.Equal(t, "             no difference that a run can tell", lines[3])
	require.Equal(t, "bare C loop  "+strings.Repeat("#", 14)+" 10.0 µs", lines[5])
	for _, line := range lines {
		require.LessOrEqual(t, runewidth.StringWidth(line), 80, line)
	}
	require.NotContains(t, plain.String(), "\x1b")
	require.Contains(t, coloured.String(), "\x1b[38;5;16;48;5;210mTTTT")
	require.Contains(t, plain.String(), "T timers")
}
