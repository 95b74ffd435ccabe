package serve

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// PinLoop binds the calling thread, which must be loop i's alone (runtime.LockOSThread), to the loop's
// CPU. Without -pin it does nothing. A loop that cannot be pinned runs on: the first failure is told in
// one line on Err, and no others, since they have the same cause. It may be called from any thread.
func (c *Config) PinLoop(i int) {
	if !c.Pin {
		return
	}
	err := netpoll.PinThread(c.CPUs[i%len(c.CPUs)])
	if err != nil && atomic.CompareAndSwapUint32(&c.pinFailed, 0, 1) {
		fmt.Fprintf(c.Err, "%s: -pin has failed, for loop %d at least: %v\n", c.Stage, i, err)
	}
}

// readSys is the text of a file below /sys, "" if it cannot be read: see package topology. Tests
// have machines of their own.
var readSys = func(name string) string {
	text, err := os.ReadFile("/sys/" + name)
	if err != nil {
		return ""
	}
	return string(text)
}
