package report

import (
	"fmt"
	"regexp"
	"strconv"
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

// The price stands within the dashes of what a step takes away, or, where they are too short for it, behind them.
func TestPriceBesideTheDashes(t *testing.T) {
	at := func(after float64) (dashes, end, price float64) {
		svg := CostSVG([]Cost{{Name: "a", Micros: 40}, {Name: "b", Micros: after}}, LightScheme, "x")
		dashed := regexp.MustCompile(`<rect x="([0-9.]+)"[^>]* width="([0-9.]+)"[^>]*stroke-dasharray`).FindStringSubmatch(svg)
		text := regexp.MustCompile(`<text x="([0-9.]+)"[^>]*>` + fmt.Sprintf("%.1f µs", after) + `<`).FindStringSubmatch(svg)
		require.NotNil(t, dashed, svg)
		require.NotNil(t, text, svg)
		number := func(s string) float64 { n, err := strconv.ParseFloat(s, 64); require.NoError(t, err); return n }
		return number(dashed[1]), number(dashed[1]) + number(dashed[2]), number(text[1])
	}
	dashes, end, price := at(20)
	require.Less(t, dashes, price)
	require.Less(t, price, end)
	_, end, price = at(38)
	require.Greater(t, price, end)
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
