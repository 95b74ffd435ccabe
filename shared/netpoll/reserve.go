package netpoll

// Reserve holds descriptors back for the moment when there are no others. When Accept finds none left, the loop
// releases the reserve, takes the waiting connection, answers it 503 and closes it, and refills: so a full server says so
// instead of leaving clients in the queue. One thread at a time. The descriptors are eventfds that nothing uses.
type Reserve struct {
	held []int
	size int
}

// NewReserve holds back n descriptors. It fails with EMFILE, ENFILE or ENOMEM, and holds nothing then.
func NewReserve(c *Counters, n int) (*Reserve, error) {
	r := &Reserve{held: make([]int, 0, n), size: n}
	if err := r.Refill(c); err != nil {
		r.Release(c)
		return nil, err
	}
	return r, nil
}

// Release gives all descriptors that are held back to the process. Other threads may take them first.
func (r *Reserve) Release(c *Counters) {
	for _, fd := range r.held {
		Close(c, fd)
	}
	r.held = r.held[:0]
}

// Refill takes as many descriptors as are missing. If it fails, as the descriptors are not free yet, those that it got stay
// held, and it can be tried again.
func (r *Reserve) Refill(_ *Counters) error {
	for !r.Full() {
		fd, err := openEventfd()
		if err != nil {
			return err
		}
		r.held = append(r.held, fd)
	}
	return nil
}

// Full says that all descriptors are held.
func (r *Reserve) Full() bool { return len(r.held) == r.size }

// Close is Release for good.
func (r *Reserve) Close(c *Counters) {
	r.Release(c)
	r.size = 0
}
