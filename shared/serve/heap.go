package serve

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// usualMinHeap is where -min-heap stands: a machine that serves has this much memory to spare.
	usualMinHeap = 32 << 20
	maxMinHeap   = maxStatic

	usualPercent = 100     // GOGC where nobody sets it
	runtimeFloor = 4 << 20 // bytes at usualPercent; the runtime scales it with the percentage
)

// heapFloor makes the garbage collector wait until the heap has so many bytes. A heap that is larger after a collection may
// double before the next one, as usual.
//
// The runtime's own floor is 4 MiB. A server whose live heap is small and whose requests leave garbage is under it all the
// time, and collects every 4 MiB: with 1 KiB for each request, once in some thousand requests. A larger percentage alone
// would do here, but lets a heap of 1 GiB grow to 9. A memory limit with the percentage off collects without end when
// the live heap comes near it. So the percentage follows the live heap: see percent.
type heapFloor struct {
	bytes uint64
	now   int // the percentage that was set last
	live  [1]metrics.Sample
}

// keepMinHeap sets a floor of so many bytes under the heap. 0 to 4 MiB change nothing. Where the environment has GOGC (see package
// runtime) that counts, and the floor does not.
func keepMinHeap(bytes int64) {
	if bytes <= runtimeFloor || os.Getenv("GOGC") != "" {
		return
	}
	f := &heapFloor{bytes: uint64(bytes), now: usualPercent}
	f.live[0].Name = "/gc/heap/live:bytes"
	f.adjust()
}

// adjust sets the percentage for the next collection, and comes back after it: nobody holds f, so a collection finds it
// dead and its finalizer brings it back to life. It allocates nothing. SetGCPercent stops the world for some microseconds, and
// is called only when there is something to change.
func (f *heapFloor) adjust() {
	metrics.Read(f.live[:])
	if want := percent(f.live[0].Value.Uint64(), f.bytes); want != f.now {
		f.now = want
		debug.SetGCPercent(want)
	}
	runtime.SetFinalizer(f, (*heapFloor).adjust)
}

// percent is the GOGC with which a heap that has live bytes after a collection is collected next at floor bytes, or at twice
// live if that is more. It is in whole steps of the usual percentage, so that it seldom changes, and never more than what
// makes the runtime's own floor this one: a larger one would raise that further.
func percent(live, floor uint64) int {
	p := usualPercent * floor / runtimeFloor
	if live > 0 { // something has been collected
		p = min(p, usualPercent*(max(floor, live)-live)/live)
	}
	return int(max(p-p%usualPercent, usualPercent))
}
