package workshop

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// What check MEASURE=1 measures and prints, in rounds too short for their figures to mean anything.
func TestCompareMeasures(t *testing.T) {
	testenv.Slow(t)
	root := testRoot(t)
	e, err := exercise(root, "8")
	require.NoError(t, err)
	own, err := e.reference(root)
	require.NoError(t, err)
	command := filepath.Join(t.TempDir(), "ladder")
	ladder, err := harness.ReadSource(root, "bench/cmd/ladder")
	require.NoError(t, err)
	require.NoError(t, ladder.BuildTo(t.Context(), command))

	var out bytes.Buffer
	long := lengths{rounds: 6, warmup: 5 * time.Millisecond, duration: 50 * time.Millisecond}
	kept := map[string]grade.Measured{}
	keep := func(workload string, m grade.Measured) error { kept[workload] = m; return nil }
	require.NoError(t, compare(t.Context(), newOutput(&out), root, e, own, "", command, long, keep))
	require.Equal(t, 6, kept["echo"].Rounds)
	require.LessOrEqual(t, kept["echo"].Low, kept["echo"].High)
	said := out.String()
	require.Contains(t, said, "Measured with echo (", "what the exercise is about")
	require.Equal(t, 2, strings.Count(said, "requests per second            server CPU per request\n"), said)
	// A round in which a server answered nothing, as on a machine that is all others', has no ratio.
	for _, label := range []string{"yours / start", "yours / reference"} {
		require.Regexp(t, `(?m)^`+label+`( +[0-9.]+ (\[[0-9.]+–[0-9.]+\] ([▲▼] )?(faster|slower|\? cannot tell)|too few rounds)){2}$`, said)
	}
	require.Equal(t, 2, strings.Count(said, "noise, by itself"), said)
	require.Contains(t, said, "A difference is told when its interval excludes 1")
	require.ErrorContains(t, compare(t.Context(), newOutput(&out), root, e, own, "helo", command, usual, keep), `no workload "helo"`)
}
