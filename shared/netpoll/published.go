package netpoll

import (
	"sync/atomic"

	"golang.org/x/sys/cpu"
)

// Published is a loop's [Counters] as others may see them. The owner stores them once per turn; any goroutine loads them
// at any time. It stands on cache lines of its own, so that a reader slows down no neighbour. The zero value is ready; it
// must not be copied.
type Published struct {
	_      cpu.CacheLinePad
	values [len(counterNames)]atomic.Uint64
	_      cpu.CacheLinePad
}

// Publish shows c's present values. Only the loop that owns c may call it. An atomic store is dear and a load is cheap, so
// that only what has changed is stored.
func (p *Published) Publish(c *Counters) {
	for i, value := range c.array() {
		if p.values[i].Load() != value {
			p.values[i].Store(value)
		}
	}
}

// Load is what was published last. Each value is whole, and none ever goes back but the gauges; the set may mix two
// neighbouring turns when the owner publishes meanwhile. Safe from any goroutine.
func (p *Published) Load() Counters {
	var c Counters
	values := c.array()
	for i := range p.values {
		values[i] = p.values[i].Load()
	}
	return c
}
