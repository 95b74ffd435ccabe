package serve

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a collector that runs beside the program collects, and how often, depends on the machine. What it aims at does not.
func TestMinHeap(t *testing.T) {
	goalMiB := func(t *testing.T, manner string, args ...string) (n int) {
		p := startProcess(t, manner, args...)
		ready, err := p.stdout.ReadString('\n')
		require.NoError(t, err, "%s", p.stderr.String())
		_, err = fmt.Sscanf(ready, "ready stage=stage7-fake pid=%d addr=192.0.2.1:%d", new(int), &n)
		require.NoError(t, err, ready)
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		p.exitCode(t)
		return n
	}
	t.Run("usual", func(t *testing.T) {
		t.Setenv("GOGC", "")
		require.InDelta(t, 32, goalMiB(t, "measured"), 4)
	})
	t.Run("given", func(t *testing.T) {
		t.Setenv("GOGC", "")
		require.InDelta(t, 128, goalMiB(t, "measured", "-min-heap", "134217728"), 8)
	})
	t.Run("none", func(t *testing.T) {
		t.Setenv("GOGC", "")
		require.InDelta(t, 4, goalMiB(t, "measured", "-min-heap", "0"), 2)
	})
	t.Run("environment", func(t *testing.T) {
		t.Setenv("GOGC", "100")
		require.InDelta(t, 4, goalMiB(t, "measured"), 2)
	})
	// A heap above the floor may double, and not grow to nine times its size.
	t.Run("large heap", func(t *testing.T) {
		t.Setenv("GOGC", "")
		require.InDelta(t, 130, goalMiB(t, "hoarding"), 8)
	})
}
