package netpoll

import (
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestCPUs(t *testing.T) {
	cpus, err := CPUs()
	require.NoError(t, err)
	require.NotEmpty(t, cpus)
	require.True(t, slices.IsSorted(cpus))
	require.Len(t, cpus, runtime.NumCPU())
}

func TestPinThread(t *testing.T) {
	cpus, err := CPUs()
	require.NoError(t, err)
	done := make(chan error)
	var mask unix.CPUSet
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := PinThread(cpus[len(cpus)-1])
		if err == nil {
			err = unix.SchedGetaffinity(0, &mask)
		}
		done <- err
	}()
	require.NoError(t, <-done)
	require.Equal(t, 1, mask.Count())
	require.True(t, mask.IsSet(cpus[len(cpus)-1]))
	after, err := CPUs()
	require.NoError(t, err)
	require.Equal(t, cpus, after)

	go func() {
		runtime.LockOSThread()
		done <- PinThread(1023)
	}()
	require.ErrorContains(t, <-done, "cannot pin a thread to CPU 1023")
	injectFaults(t, CallSchedSetaffinity, fail(unix.EPERM)...)
	require.ErrorIs(t, PinThread(cpus[0]), syscall.EPERM)
}

func TestUnshareDescriptors(t *testing.T) {
	c := new(Counters)
	before, err := openEventfd()
	require.NoError(t, err)
	defer Close(c, before)
	type seen struct {
		failed error
		fd     int // the highest that was opened there
	}
	done := make(chan seen)
	go func() {
		runtime.LockOSThread() // and never unlocked: the table ends with the thread
		s := seen{failed: UnshareDescriptors()}
		if s.failed == nil {
			s.failed = Close(c, before)
		}
		for s.failed == nil && s.fd <= before+64 {
			s.fd, s.failed = openEventfd()
		}
		done <- s
	}()
	s := <-done
	require.NoError(t, s.failed)
	_, err = unix.FcntlInt(uintptr(before), unix.F_GETFD, 0)
	require.NoError(t, err, "closed in the other table, it is still open here")
	_, err = unix.FcntlInt(uintptr(s.fd), unix.F_GETFD, 0)
	require.ErrorIs(t, err, unix.EBADF, "opened in the other table, it is not here")

	injectFaults(t, CallUnshare, fail(unix.EPERM)...)
	require.ErrorIs(t, UnshareDescriptors(), syscall.EPERM)
}

func TestCPUClockAdvances(t *testing.T) {
	before := ProcessCPUNanoseconds()
	require.Positive(t, before)
	for ProcessCPUNanoseconds() == before {
	}
	require.Greater(t, ProcessCPUNanoseconds(), before)
}

func TestRaiseDescriptorLimit(t *testing.T) {
	limitDescriptors(t, 100)
	var low unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &low))

	t.Run("cannot read", func(t *testing.T) {
		injectFaults(t, CallPrlimit64, fail(unix.EPERM)...)
		soft, hard, err := RaiseDescriptorLimit()
		require.ErrorIs(t, err, syscall.EPERM)
		require.Zero(t, soft)
		require.Zero(t, hard)
	})
	soft, hard, err := DescriptorLimit()
	require.NoError(t, err)
	require.EqualValues(t, low.Cur, soft)
	require.EqualValues(t, low.Max, hard)
	var same unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &same))
	require.Equal(t, low, same, "reading raises nothing")
	soft, hard, err = RaiseDescriptorLimit()
	require.NoError(t, err)
	require.EqualValues(t, low.Max, hard)
	require.Equal(t, hard, soft)
	var high unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &high))
	require.Equal(t, high.Max, high.Cur)
	again, _, err := RaiseDescriptorLimit()
	require.NoError(t, err)
	require.Equal(t, soft, again)
}
