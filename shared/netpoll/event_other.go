//go:build !linux

package netpoll

// Event never comes here; see event_linux.go.
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
