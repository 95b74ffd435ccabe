package main

import "sync/atomic"

// tallies counts what each loop has answered, for whoever wants to know how
// evenly the kernel spreads connections. A loop only ever touches its own slot.
type tallies struct{ slots []slot }

type slot struct {
	requests atomic.Int64
	errors   atomic.Int64
}

func newTallies(loops int) *tallies { return &tallies{slots: make([]slot, loops)} }

// count counts an answer of a loop. An error is one from 400 on.
func (t *tallies) count(loop, status int) {
	s := &t.slots[loop]
	s.requests.Add(1)
	if status >= 400 {
		s.errors.Add(1)
	}
}

// slot is where a loop counts.
func (t *tallies) slot(loop int) (requests, errors *atomic.Int64) {
	s := &t.slots[loop]
	return &s.requests, &s.errors
}
