// Package code is a lab: five small tables, and one about sorting, in the order of gains that one of the
// documents gives for changes of code.
package code

import (
	"encoding/binary"
	"slices"
)

// Copies. A Request goes through layers, each of which looks at it and passes it on.

// A Request has 200 bytes, and fields that it does not own.
type Request struct {
	Method, Target, Host, UserAgent, Cookie string
	Length                                  int64
	Fields                                  []string
	Layers                                  int
	_                                       [80]byte
}

// DeepLayer gets a copy of everything, which it may keep and change as it likes.
func DeepLayer(r Request) Request {
	r.Fields = slices.Clone(r.Fields)
	r.Layers += len(r.Fields[0])
	return r
}

// ValueLayer gets a copy of the struct, and gives one back.
func ValueLayer(r Request) Request {
	r.Layers += len(r.Fields[0])
	return r
}

// PointerLayer gets the request itself.
func PointerLayer(r *Request) { r.Layers += len(r.Fields[0]) }

// Layout. The same four things, in two orders; a scan looks at all of them.

// Loose has them as they came to mind: with what the compiler puts between them, 40 bytes.
type Loose struct {
	Open     bool
	Deadline int64
	Waiting  bool
	Sent     int64
	FD       int32
}

// Tight has the large ones first: 24 bytes.
type Tight struct {
	Deadline, Sent int64
	FD             int32
	Open, Waiting  bool
}

// ScanLoose adds up what waiting connections have sent.
func ScanLoose(conns []Loose) (sum int64) {
	for i := range conns {
		if c := &conns[i]; c.Open && c.Waiting {
			sum += c.Sent + int64(c.FD) - c.Deadline
		}
	}
	return sum
}

// ScanTight is ScanLoose, for the other order.
func ScanTight(conns []Tight) (sum int64) {
	for i := range conns {
		if c := &conns[i]; c.Open && c.Waiting {
			sum += c.Sent + int64(c.FD) - c.Deadline
		}
	}
	return sum
}

// Branches. Answers are counted by the class of their status: a branch that is guessed wrongly costs
// some 15 to 20 cycles.

// A Classes has a count for 1xx to 5xx.
type Classes [5]int

// Rising asks in the order of the numbers.
func Rising(codes []int) (c Classes) {
	for _, code := range codes {
		switch {
		case code < 200:
			c[0]++
		case code < 300:
			c[1]++
		case code < 400:
			c[2]++
		case code < 500:
			c[3]++
		default:
			c[4]++
		}
	}
	return c
}

// LikelyFirst asks for the most frequent one first, which is what a hint would have the compiler do.
func LikelyFirst(codes []int) (c Classes) {
	for _, code := range codes {
		switch {
		case uint(code-200) < 100:
			c[1]++
		case uint(code-300) < 100:
			c[2]++
		case uint(code-400) < 100:
			c[3]++
		case code >= 500:
			c[4]++
		default:
			c[0]++
		}
	}
	return c
}

// Branchless computes where to count. A division by a constant is a multiplication.
func Branchless(codes []int) (c Classes) {
	for _, code := range codes {
		if class := uint(code)/100 - 1; class < uint(len(c)) {
			c[class]++
		}
	}
	return c
}

// Calls. One small thing, done to each of many numbers.

// A Step is one operation.
type Step interface{ Do(x uint32) uint32 }

// Mix is such an operation.
type Mix struct{ Key uint32 }

// Do does it.
func (m Mix) Do(x uint32) uint32 { return x ^ m.Key }

// Other is another one, so that a Step may be either.
type Other struct{ Key uint32 }

// Do does it.
func (o Other) Do(x uint32) uint32 { return x + o.Key }

// ByInterface calls what it is told at run time.
func ByInterface(s Step, xs []uint32) (sum uint32) {
	for _, x := range xs {
		sum += s.Do(x)
	}
	return sum
}

// ByClosure calls a function value.
func ByClosure(do func(uint32) uint32, xs []uint32) (sum uint32) {
	for _, x := range xs {
		sum += do(x)
	}
	return sum
}

// ByGeneric is compiled for each type of another shape. Mix and Other are one shape: so the call goes
// through a dictionary, unlike a template's.
func ByGeneric[S Step](s S, xs []uint32) (sum uint32) {
	for _, x := range xs {
		sum += s.Do(x)
	}
	return sum
}

// Direct names the type. The compiler puts the call's body in its place.
func Direct(m Mix, xs []uint32) (sum uint32) {
	for _, x := range xs {
		sum += m.Do(x)
	}
	return sum
}

//go:noinline
func mixOutOfLine(x, key uint32) uint32 { return x ^ key }

// OutOfLine calls a known function, which is not inlined.
func OutOfLine(m Mix, xs []uint32) (sum uint32) {
	for _, x := range xs {
		sum += mixOutOfLine(x, m.Key)
	}
	return sum
}

// Loops. A WebSocket's payload is unmasked: each byte by one of four (RFC 6455, 5.3).

// Bytes does it as the rule says.
func Bytes(b []byte, key [4]byte) {
	for i := range b {
		b[i] ^= key[i&3]
	}
}

// Unrolled does four in a turn. The compiler cannot see that they are there: four checks.
func Unrolled(b []byte, key [4]byte) {
	i := 0
	for ; i < len(b)-3; i += 4 {
		b[i] ^= key[0]
		b[i+1] ^= key[1]
		b[i+2] ^= key[2]
		b[i+3] ^= key[3]
	}
	for ; i < len(b); i++ {
		b[i] ^= key[i&3]
	}
}

// Unchecked does four in a turn, after one look at the length: no check is left.
func Unchecked(b []byte, key [4]byte) {
	for ; len(b) >= 4; b = b[4:] {
		b[0] ^= key[0]
		b[1] ^= key[1]
		b[2] ^= key[2]
		b[3] ^= key[3]
	}
	for i := range b {
		b[i] ^= key[i&3]
	}
}

// Words does eight at once: not the same loop made faster, but another one.
func Words(b []byte, key [4]byte) {
	four := uint64(binary.LittleEndian.Uint32(key[:]))
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^(four<<32|four))
	}
	for i := range b {
		b[i] ^= key[i&3]
	}
}

// Sorting.

// Insertion sorts in place: a step for each pair that is in the wrong order.
func Insertion(a []int64) {
	for i := 1; i < len(a); i++ {
		x, j := a[i], i
		for ; j > 0 && a[j-1] > x; j-- {
			a[j] = a[j-1]
		}
		a[j] = x
	}
}
