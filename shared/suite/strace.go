package suite

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tracedCalls are the system calls that a stage's promises are about.
var tracedCalls = []string{"recvfrom", "sendto", "sendmsg", "epoll_ctl", "timerfd_settime"}

// SystemCalls lets strace count what the server counts itself, and requires that both agree. It is skipped where
// strace is not installed or may not trace.
func SystemCalls(t *testing.T) {
	requireLinux(t)
	t.Parallel()
	if raceEnabled {
		t.Skip("the calls are the same under the race detector, which strace makes very slow")
	}
	path := tool(t, "strace")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if out, err := exec.CommandContext(ctx, path, "-f", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here: %v: %s", err, strings.TrimSpace(string(out)))
	}
	for _, w := range []workload{hello, pipelined, body} {
		t.Run(w.name, func(t *testing.T) { compareWithStrace(t, path, w) })
	}
}

func compareWithStrace(t *testing.T, path string, w workload) {
	const requests = 1024
	self, err := os.Executable()
	require.NoError(t, err)
	summary := filepath.Join(t.TempDir(), "summary")
	line := []string{path, "-f", "-c", "-o", summary, "-e", "trace=" + strings.Join(tracedCalls, ","), self}
	s := startCommand(t, append(line, serveArgs(steady)...))
	s.measure(t, w, requests)
	total := s.AwaitConnections(t, 0).Total
	s.Stop(t)

	text, err := os.ReadFile(summary)
	require.NoError(t, err)
	traced := parseSummary(string(text))
	counted := map[string]int64{
		"recvfrom": total["reads"], "sendto": total["writes"] - total["vectored_writes"], "sendmsg": total["vectored_writes"],
		"epoll_ctl": total["epoll_ctls"], "timerfd_settime": total["timerfd_settimes"],
	}
	for _, call := range tracedCalls {
		// To strace's number the start, the stop and the Go runtime's own epoll add a few.
		t.Logf("%-16s strace %6d, counted %6d; per request %.3f and %.3f", call, traced[call], counted[call],
			float64(traced[call])/float64(total["requests"]), float64(counted[call])/float64(total["requests"]))
		require.GreaterOrEqual(t, traced[call], counted[call], call)
		require.LessOrEqual(t, traced[call]-counted[call], int64(requests/20), "%s: strace has seen calls that nobody counted", call)
	}
	require.Positive(t, counted["recvfrom"])
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
