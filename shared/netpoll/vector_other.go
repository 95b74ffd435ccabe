//go:build !linux

package netpoll

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
