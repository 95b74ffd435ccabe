package serve

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Garbage of 256 MiB is collected 64 times over where 4 MiB are the floor, and 8 times over with 32.
func TestMinHeap(t *testing.T) {
	collections := func(t *testing.T, manner string, args ...string) (n int) {
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
		require.LessOrEqual(t, collections(t, "wasteful"), 12)
	})
	t.Run("given", func(t *testing.T) {
		t.Setenv("GOGC", "")
		require.LessOrEqual(t, collections(t, "wasteful", "-min-heap", "134217728"), 3)
	})
	t.Run("none", func(t *testing.T) {
		t.Setenv("GOGC", "")
		require.Greater(t, collections(t, "wasteful", "-min-heap", "0"), 20)
	})
	t.Run("environment", func(t *testing.T) {
		t.Setenv("GOGC", "100")
		require.Greater(t, collections(t, "wasteful"), 20)
	})
	// A heap above the floor may double, and not grow to nine times its size.
	t.Run("large heap", func(t *testing.T) {
		t.Setenv("GOGC", "")
		require.GreaterOrEqual(t, collections(t, "hoarding"), 2)
	})
}
