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

// Connect answers ErrUnsupported here; see connect_linux.go.
func Connect(c *Counters, source, target Address) (fd int, err error) { return -1, ErrUnsupported }

// ConnectError answers ErrUnsupported here; see connect_linux.go.
func ConnectError(c *Counters, fd int) error { return ErrUnsupported }

// NewTimer answers ErrUnsupported here; see timer_linux.go.
func NewTimer(c *Counters) (fd int, err error) { return -1, ErrUnsupported }

// SetTimer answers ErrUnsupported here; see timer_linux.go.
func SetTimer(c *Counters, fd int, after time.Duration) error { return ErrUnsupported }

// PinThread answers ErrUnsupported here; see thread_linux.go.
func PinThread(cpu int) error { return ErrUnsupported }

// CPUs answers ErrUnsupported here; see thread_linux.go.
func CPUs() ([]int, error) { return nil, ErrUnsupported }

// ThreadCPUNanoseconds is 0 here; see thread_linux.go.
func ThreadCPUNanoseconds() int64 { return 0 }

// ProcessCPUNanoseconds is 0 here; see thread_linux.go.
func ProcessCPUNanoseconds() int64 { return 0 }

// DescriptorLimit answers ErrUnsupported here; see limit_linux.go.
func DescriptorLimit() (soft, hard int, err error) { return 0, 0, ErrUnsupported }

// RaiseDescriptorLimit answers ErrUnsupported here; see limit_linux.go.
func RaiseDescriptorLimit() (soft, hard int, err error) { return 0, 0, ErrUnsupported }

func openEventfd() (int, error) { return -1, ErrUnsupported }
