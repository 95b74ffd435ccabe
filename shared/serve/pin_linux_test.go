package serve

import (
	"bytes"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
	"github.com/qps-ladder/qps-ladder/shared/topology"
)

// pinLoops pins n threads as loops, which then end, and returns how many CPUs each could run on, and
// what was told.
func pinLoops(c *Config, n int) (allowed []int, told string) {
	var stderr bytes.Buffer
	c.Stage, c.Err = "stage7-fake", &lockedWriter{writer: &stderr}
	allowed = make([]int, n)
	var loops sync.WaitGroup
	for i := range n {
		loops.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			c.PinLoop(i)
			var set unix.CPUSet
			if unix.SchedGetaffinity(0, &set) == nil {
				allowed[i] = set.Count()
			}
		})
	}
	loops.Wait()
	return allowed, stderr.String()
}

func TestPinLoop(t *testing.T) {
	cpus, err := netpoll.CPUs()
	require.NoError(t, err)

	allowed, told := pinLoops(&Config{Pin: true, CPUs: cpus}, 3)
	require.Equal(t, []int{1, 1, 1}, allowed)
	require.Empty(t, told)

	allowed, told = pinLoops(&Config{CPUs: cpus}, 1)
	require.Equal(t, []int{len(cpus)}, allowed)
	require.Empty(t, told)
}

// No machine has a CPU 1023 that this process may use.
func TestPinThatFailsIsToldOnce(t *testing.T) {
	cpus, err := netpoll.CPUs()
	require.NoError(t, err)
	allowed, told := pinLoops(&Config{Pin: true, CPUs: []int{1023}}, 3)
	require.Equal(t, []int{len(cpus), len(cpus), len(cpus)}, allowed)
	require.Regexp(t, `^stage7-fake: -pin has failed, for loop [012] at least: cannot pin a thread to CPU 1023: invalid argument\n$`, told)
}

// What -pin binds loops to is what the machine's own /sys says, and only CPUs of this process.
func TestPinReadsTheMachine(t *testing.T) {
	cpus, err := netpoll.CPUs()
	require.NoError(t, err)
	require.NotEmpty(t, readSys("devices/system/cpu/online"))
	require.Empty(t, readSys("devices/system/cpu/none"))
	require.ElementsMatch(t, cpus, topology.Place(cpus, len(cpus)+1, readSys))
	require.Subset(t, cpus, topology.Place(cpus, 1, readSys))
}
