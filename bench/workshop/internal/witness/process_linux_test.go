package witness

import (
	"context"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

const patience = 20 * time.Second

// asVictim, in the environment, makes the test binary a program to be watched.
const asVictim = "QPS_LADDER_WITNESS_VICTIM"

func TestMain(m *testing.M) {
	switch os.Getenv(asVictim) {
	case "":
		os.Exit(m.Run())
	case "writes":
		for range 7 {
			unix.Write(-1, []byte("seen"))
		}
	case "threads":
		done := make(chan bool)
		for range 4 {
			go func() {
				unix.Write(-1, []byte("seen"))
				done <- true
			}()
		}
		for range 4 {
			<-done
		}
	case "forks":
		exec.Command("sleep", "100").Start()
		time.Sleep(time.Hour)
	case "code":
		os.Exit(7)
	case "waits":
		unix.Write(-1, []byte("seen"))
		time.Sleep(time.Hour)
	}
}

// victim is a program under watch.
type victim struct {
	*harness.Process
	watched *Process
}

func watch(t *testing.T, kind string, observe func(*Call)) victim {
	self, err := os.Executable()
	require.NoError(t, err)
	watched := New(observe)
	p, err := harness.Start(context.Background(), harness.Command{Path: self, Env: []string{asVictim + "=" + kind}, Launch: watched.Launch})
	if err != nil {
		t.Skipf("ptrace is not allowed here: %v", err)
	}
	t.Cleanup(p.Close)
	return victim{p, watched}
}

func TestCallsAreSeen(t *testing.T) {
	for _, c := range []struct {
		victim string
		calls  int
	}{{"writes", 7}, {"threads", 4}} {
		seen := 0
		threads := map[int]bool{}
		p := watch(t, c.victim, func(call *Call) {
			text := make([]byte, 4)
			if call.Number == unix.SYS_WRITE && call.Args[0] == ^uintptr(0) && call.Read(text, call.Args[1]) && string(text) == "seen" {
				seen++
				threads[call.Thread] = true
				if call.Result != -int64(unix.EBADF) {
					t.Errorf("result %d", call.Result)
				}
			}
		})
		require.Equal(t, 0, p.ExitCode())
		require.Equal(t, c.calls, seen)
		require.NotEmpty(t, threads)
		require.Empty(t, p.watched.Strange())
	}
}

func TestExitCode(t *testing.T) {
	require.Equal(t, 7, watch(t, "code", func(*Call) {}).ExitCode())
}

func TestForkIsSeen(t *testing.T) {
	p := watch(t, "forks", func(*Call) {})
	require.Eventually(t, func() bool { return len(p.watched.Strange()) > 0 }, patience, time.Millisecond)
	require.Contains(t, p.watched.Strange()[0], "fork")
	require.NoError(t, p.Signal(syscall.SIGKILL))
	require.Equal(t, -1, p.ExitCode(), "with all that it started")
	require.ErrorIs(t, p.Signal(syscall.SIGTERM), os.ErrProcessDone)
}

func TestHold(t *testing.T) {
	var calls atomic.Int64
	p := watch(t, "waits", func(*Call) { calls.Add(1) })
	p.watched.Hold()
	// Whatever call it is in ends; then each thread stands still.
	last := int64(-1)
	require.Eventually(t, func() bool {
		now := calls.Load()
		still := now == last
		last = now
		return still
	}, patience, 50*time.Millisecond)
	p.watched.Release()
	require.Eventually(t, func() bool { return calls.Load() > last }, patience, time.Millisecond)
}

// TestOthersAreNotReaped starts other programs meanwhile, from threads that may become a watcher's.
func TestOthersAreNotReaped(t *testing.T) {
	for range 20 {
		other := exec.Command("sleep", "0.05")
		require.NoError(t, other.Start())
		p := watch(t, "writes", func(*Call) {})
		require.NoError(t, other.Wait())
		require.Equal(t, 0, p.ExitCode())
	}
}
