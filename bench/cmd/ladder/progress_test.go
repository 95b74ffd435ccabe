package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// A line that is longer than the terminal is wide would not be cleared as a whole.
func TestProgressFitsTheTerminal(t *testing.T) {
	now := run.Progress{Round: 12, Rounds: 13, Done: 17, Items: 19, Left: 83 * time.Second,
		Item: run.Item{Server: run.Server{Name: "stage5-speculative-read again"}, Workload: workload.Workload{Name: "async-mw10"}}}
	for _, width := range []int{0, 10, 60, 80} {
		var out bytes.Buffer
		p := &progress{out: &out, terminal: true, width: func() int { return width }}
		p.show(now)
		p.step(strings.Repeat("é", 100))
		shown := strings.Split(out.String(), clearLine)
		require.Len(t, shown, 3)
		for _, line := range shown {
			if width > 0 {
				require.Less(t, utf8.RuneCountInString(line), width)
			}
			require.True(t, utf8.ValidString(line))
		}
	}
}

func TestProgressIsPlainWhenPiped(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
	for _, round := range []int{1, 1, 2} {
		p.show(run.Progress{Round: round, Rounds: 2})
	}
	p.say("written: %s", "x")
	require.Equal(t, "round 1 of 2, ? left\nround 2 of 2, ? left\nwritten: x\n", out.String())
}

func TestAround(t *testing.T) {
	require.Equal(t, "about 1 second", around(time.Millisecond))
	require.Equal(t, "about 38 seconds", around(38*time.Second))
	require.Equal(t, "about 110 seconds", around(110*time.Second))
	require.Equal(t, "about 3 minutes", around(165*time.Second))
}
