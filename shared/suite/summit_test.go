package suite

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// joinLimit is how many lines a patch may have that joins two parts of the summit which touch the same lines.
const joinLimit = 60

func summit(t *testing.T) (harness.Variant, *harness.Source) {
	t.Helper()
	v, err := harness.Summit("../..")
	require.NoError(t, err)
	source, err := v.Source(t.Context(), "../..")
	require.NoError(t, err)
	return v, source
}

// TestSummit holds the summit to what it promises beside the counters of the stage: no descriptor of a connection but its
// socket, registered once; and no timer call for a connection that comes.
func TestSummit(t *testing.T) {
	requireLinux(t)
	v, source := summit(t)
	for _, c := range v.Then {
		require.LessOrEqual(t, strings.Count(c.Diff, "\n"), joinLimit, "a joining patch")
		require.Empty(t, c.Edits)
	}
	require.NotContains(t, string(bytes.Join([][]byte{source.Files["request.go"], source.Files["conn.go"]}, nil)), "wildcat\"")
	program, err := source.Build(t.Context(), t.TempDir())
	require.NoError(t, err)
	s := Program{Path: program}.Start(OnTest(t), append(steady, "-workers", "2")...)
	before := s.Counters(OnTest(t)).Total
	const n = 100
	for range n {
		dial(OnTest(t), s).hello(OnTest(t))
	}
	s.AwaitRequests(OnTest(t), before.Requests+n)
	r := s.AwaitConnections(OnTest(t), n).Total
	require.EqualValues(t, n, r.EpollCtls-before.EpollCtls, "epoll_ctl: one for each socket, none for a timer")
	require.Zero(t, r.TimerfdCreates-before.TimerfdCreates)
	require.LessOrEqual(t, r.TimerfdSettimes-before.TimerfdSettimes, uint64(10), "one for each loop when its first connection comes, and for scans since")
	s.Stop(OnTest(t))
}

// TestSummitKeepsItsPromises runs the stage's own tests of its counters and of the life of a view with the summit in its place.
func TestSummitKeepsItsPromises(t *testing.T) {
	requireLinux(t)
	t.Parallel()
	testSummit(t, "-run", "^(TestCounters|TestViews)$")
}

// TestSummitIsAStage runs all of the stage's tests with the summit in its place.
func TestSummitIsAStage(t *testing.T) {
	requireLinux(t)
	testenv.Slow(t)
	testSummit(t)
}

// TestSummitHasNoRace runs them again with the race detector, which needs a C compiler.
func TestSummitHasNoRace(t *testing.T) {
	requireLinux(t)
	testenv.Slow(t)
	compiler, err := exec.Command("go", "env", "CC").Output()
	require.NoError(t, err)
	if _, err := exec.LookPath(strings.Fields(string(compiler))[0]); err != nil {
		t.Skipf("the race detector needs a C compiler: %v", err)
	}
	t.Setenv("CGO_ENABLED", "1")
	testSummit(t, "-race")
}

func testSummit(t *testing.T, flags ...string) {
	t.Helper()
	_, source := summit(t)
	// One promise is its own: a loop sets its timer for the next scan, four times a second, whatever is asked meanwhile.
	text, err := os.ReadFile(filepath.Join("../..", source.Package, "stage_test.go"))
	require.NoError(t, err)
	const ofStage, own = "TimerSettimes:      suite.Exactly(0)", "TimerSettimes:      suite.AtMost(0.1)"
	require.Equal(t, 1, bytes.Count(text, []byte(ofStage)))
	source.Files["stage_test.go"] = bytes.Replace(text, []byte(ofStage), []byte(own), 1)
	out, err := source.Go(context.Background(), append([]string{"test", "-count=1", "-timeout=30m", "./" + source.Package}, flags...)...)
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "ok ")
}
