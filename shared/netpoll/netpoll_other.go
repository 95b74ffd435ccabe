//go:build !linux

package netpoll

import "time"

// Receive answers ErrUnsupported here; see socket_linux.go.
func Receive(c *Counters, fd int, p []byte) (n int, err error) { return 0, ErrUnsupported }

// Send answers ErrUnsupported here; see socket_linux.go.
func Send(c *Counters, fd int, p []byte) (n int, err error) { return 0, ErrUnsupported }

// Accept answers ErrUnsupported here; see socket_linux.go.
func Accept(c *Counters, listener int) (fd int, err error) { return -1, ErrUnsupported }

// ShutdownWrite answers ErrUnsupported here; see socket_linux.go.
func ShutdownWrite(c *Counters, fd int) error { return ErrUnsupported }

// Unacknowledged answers ErrUnsupported here; see socket_linux.go.
func Unacknowledged(c *Counters, fd int) (bytes int, err error) { return 0, ErrUnsupported }

// Unread is 0 here; see socket_linux.go.
func Unread(c *Counters, fd int) (bytes int) { return 0 }

// Close answers ErrUnsupported here; see socket_linux.go.
func Close(c *Counters, fd int) error { return ErrUnsupported }

// SetLinger0 answers ErrUnsupported here; see socket_linux.go.
func SetLinger0(fd int) error { return ErrUnsupported }

// Listen answers ErrUnsupported here; see listen_linux.go.
func Listen(c *Counters, address string, o ListenOptions) (fd int, bound string, err error) {
	return -1, "", ErrUnsupported
}

// A Steering is for Steer; see steer_linux.go.
type Steering uint8

const (
	SteerAway Steering = iota
	SteerClose
)

// Steer does nothing here; see steer_linux.go.
func Steer(s Steering) bool { return false }

// Connect answers ErrUnsupported here; see socket_linux.go.
func Connect(c *Counters, source, target Address) (fd int, err error) { return -1, ErrUnsupported }

// ConnectError answers ErrUnsupported here; see socket_linux.go.
func ConnectError(c *Counters, fd int) error { return ErrUnsupported }

// NewTimer answers ErrUnsupported here; see timer_linux.go.
func NewTimer(c *Counters) (fd int, err error) { return -1, ErrUnsupported }

// SetTimer answers ErrUnsupported here; see timer_linux.go.
func SetTimer(c *Counters, fd int, after time.Duration) error { return ErrUnsupported }

// UnshareDescriptors answers ErrUnsupported here; see thread_linux.go.
func UnshareDescriptors() error { return ErrUnsupported }

// PinThread answers ErrUnsupported here; see thread_linux.go.
func PinThread(cpu int) error { return ErrUnsupported }

// CPUs answers ErrUnsupported here; see thread_linux.go.
func CPUs() ([]int, error) { return nil, ErrUnsupported }

// ProcessCPUNanoseconds is 0 here; see thread_linux.go.
func ProcessCPUNanoseconds() int64 { return 0 }

// DescriptorLimit answers ErrUnsupported here; see thread_linux.go.
func DescriptorLimit() (soft, hard int, err error) { return 0, 0, ErrUnsupported }

// RaiseDescriptorLimit answers ErrUnsupported here; see thread_linux.go.
func RaiseDescriptorLimit() (soft, hard int, err error) { return 0, 0, ErrUnsupported }

func openEventfd() (int, error) { return -1, ErrUnsupported }

// Poller cannot be had here; see poller_linux.go.
type Poller struct{}

// NewPoller answers ErrUnsupported here.
func NewPoller(c *Counters) (*Poller, error) { return nil, ErrUnsupported }

// Share cannot be had here.
func (p *Poller) Share() *Poller { return nil }

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

// RingError answers ErrUnsupported here; see ring_linux.go.
func RingError() error { return ErrUnsupported }

// Ring cannot be had here; see ring_linux.go.
type Ring struct{}

// NewRing answers ErrUnsupported here.
func NewRing(c *Counters) (*Ring, error) { return nil, ErrUnsupported }

// Enable answers ErrUnsupported here.
func (r *Ring) Enable() error { return ErrUnsupported }

// Accept does nothing here.
func (r *Ring) Accept(c *Counters, id uint32, listener int) {}

// AcceptOne does nothing here.
func (r *Ring) AcceptOne(c *Counters, id uint32, listener int) {}

// Receive does nothing here.
func (r *Ring) Receive(c *Counters, id uint32, fd int) {}

// Send does nothing here.
func (r *Ring) Send(c *Counters, id uint32, fd int, v *Vector, how Sending) {}

// After does nothing here.
func (r *Ring) After(c *Counters, id uint32, d time.Duration) {}

// Cancel does nothing here.
func (r *Ring) Cancel(c *Counters, operation Operation, id uint32) {}

// Enter answers ErrUnsupported here.
func (r *Ring) Enter(c *Counters, timeout time.Duration) error { return ErrUnsupported }

// Next is false here.
func (r *Ring) Next(c *Counters, done *Completion) bool { return false }

// Waits is false here.
func (r *Ring) Waits(operation Operation, id uint32) bool { return false }

// Wake answers ErrUnsupported here.
func (r *Ring) Wake(c *Counters) error { return ErrUnsupported }

// Close answers ErrUnsupported here.
func (r *Ring) Close(c *Counters) error { return ErrUnsupported }

// Completion never comes here; see ring_linux.go.
type Completion struct {
	Operation Operation
	ID        uint32
}

// Result answers ErrUnsupported here.
func (d *Completion) Result() (n int, err error) { return 0, ErrUnsupported }

// Bytes answers ErrUnsupported here.
func (d *Completion) Bytes() ([]byte, error) { return nil, ErrUnsupported }

// More is false here.
func (d *Completion) More() bool { return false }

// Event never comes here; see poller_linux.go.
type Event struct{}

// FD is -1 here.
func (e Event) FD() int { return -1 }

// Generation is 0 here.
func (e Event) Generation() uint32 { return 0 }

// IsWake is false here.
func (e Event) IsWake() bool { return false }

// Readable is false here.
func (e Event) Readable() bool { return false }

// Writable is false here.
func (e Event) Writable() bool { return false }

// Urgent is false here.
func (e Event) Urgent() bool { return false }

// Closed is false here.
func (e Event) Closed() bool { return false }

// Vector holds nothing here; see vector_linux.go.
type Vector struct{}

// NewVector makes a Vector that holds nothing.
func NewVector(segments int) *Vector { return &Vector{} }

// Append does nothing here.
func (v *Vector) Append(b []byte) {}

// Len is 0 here.
func (v *Vector) Len() int { return 0 }

// Segments is 0 here.
func (v *Vector) Segments() int { return 0 }

// Full is false here.
func (v *Vector) Full() bool { return false }

// Segment is nil here.
func (v *Vector) Segment(i int) []byte { return nil }

// Reset does nothing here.
func (v *Vector) Reset() {}

// Advance does nothing here.
func (v *Vector) Advance(n int) {}

// Send answers ErrUnsupported here.
func (v *Vector) Send(c *Counters, fd int) (n int, err error) { return 0, ErrUnsupported }
