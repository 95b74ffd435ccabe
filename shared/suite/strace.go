package suite

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// tracedCalls are the system calls that a stage's promises are about.
var tracedCalls = []string{"recvfrom", "sendto", "sendmsg", "epoll_ctl", "timerfd_settime"}

// SystemCalls lets strace count what the server counts itself, and requires that both agree. It is slow by nature,
// and skipped where strace is not installed or may not trace.
func SystemCalls(test *testing.T) {
	test.Parallel()
	testenv.Slow(test)
	t, p := ofTest(test)
	if raceEnabled {
		t.Skipf("the calls are the same under the race detector, which strace makes very slow")
	}
	path := tool(t, "strace")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if out, err := exec.CommandContext(ctx, path, "-f", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here: %v: %s", err, strings.TrimSpace(string(out)))
	}
	for _, w := range []workload{hello, pipelined, body} {
		t.Run(w.name, func(t T) { compareWithStrace(t, p, path, w) })
	}
}

func compareWithStrace(t T, p Program, path string, w workload) {
	const requests = 1024
	summary := filepath.Join(t.TempDir(), "summary")
	s := p.start(t, harness.ServerCommand{
		Command: p.Command(steady...),
		Wrapper: []string{path, "-f", "-c", "-o", summary, "-e", "trace=" + strings.Join(tracedCalls, ",")},
	})
	s.measure(t, w, requests)
	total := s.AwaitConnections(t, 0)
	s.Stop(t)

	text, err := os.ReadFile(summary)
	require.NoError(t, err)
	traced := parseSummary(string(text))
	counts := total.Counts()
	for _, call := range harness.SystemCalls {
		name, counted := call.Name(), harness.CallsOf(call, counts)
		if !slices.Contains(tracedCalls, name) {
			continue
		}
		// To strace's number the start, the stop and the Go runtime's own epoll add a few.
		t.Logf("%-16s strace %6d, counted %6d; per request %.3f and %.3f", name, traced[name], counted,
			float64(traced[name])/float64(total.Total.Requests), float64(counted)/float64(total.Total.Requests))
		require.GreaterOrEqual(t, traced[name], counted, name)
		require.LessOrEqual(t, traced[name]-counted, int64(50), "%s: strace has seen calls that nobody counted", name)
	}
	require.Positive(t, traced["recvfrom"])
}

// parseSummary reads the table of strace -c: time, seconds, microseconds per call, calls, errors (which may be
// missing), name.
func parseSummary(text string) map[string]int64 {
	calls := map[string]int64{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 5 {
			continue
		}
		if n, err := strconv.ParseInt(words[3], 10, 64); err == nil {
			calls[words[len(words)-1]] = n
		}
	}
	return calls
}
