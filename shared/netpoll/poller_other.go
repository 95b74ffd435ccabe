//go:build !linux

package netpoll

import "time"

// Poller cannot be had here; see poller_linux.go.
type Poller struct{}

// NewPoller answers ErrUnsupported here.
func NewPoller(c *Counters) (*Poller, error) { return nil, ErrUnsupported }

// Add answers ErrUnsupported here.
func (p *Poller) Add(c *Counters, fd int, generation uint32, interest Interest) error {
	return ErrUnsupported
}

// Modify answers ErrUnsupported here.
func (p *Poller) Modify(c *Counters, fd int, generation uint32, interest Interest) error {
	return ErrUnsupported
}

// Remove answers ErrUnsupported here.
func (p *Poller) Remove(c *Counters, fd int) error { return ErrUnsupported }

// Wait answers ErrUnsupported here.
func (p *Poller) Wait(c *Counters, timeout time.Duration) ([]Event, error) {
	return nil, ErrUnsupported
}

// Wake answers ErrUnsupported here.
func (p *Poller) Wake(c *Counters) error { return ErrUnsupported }

// Close answers ErrUnsupported here.
func (p *Poller) Close(c *Counters) error { return ErrUnsupported }
