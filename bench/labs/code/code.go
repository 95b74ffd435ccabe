// Package code is a lab: five small tables, and one about sorting, in the order of gains that one of the
// documents gives for changes of code.
package code

import "slices"

// Copies. A Request, of some 200 bytes and fields that it does not own, goes through layers, each of
// which looks at it and passes it on.
type Request struct {
	Method, Target, Host, UserAgent, Cookie string
	Fields                                  []string
	Layers                                  int
	_                                       [88]byte
}

// ValueLayer gets a copy of the struct, and gives one back. The fields are still the caller's.
func ValueLayer(r Request) Request {
	r.Layers += len(r.Fields[0])
	return r
}

// DeepLayer copies the fields as well, to be safe, though it changes none.
func DeepLayer(r Request) Request {
	r.Fields = slices.Clone(r.Fields)
	r.Layers += len(r.Fields[0])
	return r
}

// PointerLayer gets the request itself.
func PointerLayer(r *Request) { r.Layers += len(r.Fields[0]) }

// Layout. Loose has things in the order in which they came to mind: with the gaps, 40 bytes.
type Loose struct {
	Open     bool
	Deadline int64
	Waiting  bool
	Sent     int64
	FD       int32
}

// Tight has the same, large ones first: 24 bytes.
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

// Branches. Answers are counted by status: below 300, below 400, and all else. A branch that the CPU
// guesses wrongly costs some 15 to 20 cycles. RareFirst asks for what is rare first.
func RareFirst(codes []int) (count [3]int) {
	for _, code := range codes {
		switch {
		case code >= 400:
			count[2]++
		case code >= 300:
			count[1]++
		default:
			count[0]++
		}
	}
	return count
}

// LikelyFirst asks for the most frequent first, which is what a hint would have the compiler do.
func LikelyFirst(codes []int) (count [3]int) {
	for _, code := range codes {
		switch {
		case code < 300:
			count[0]++
		case code < 400:
			count[1]++
		default:
			count[2]++
		}
	}
	return count
}

// Computed has no branch to guess but the loop's.
func Computed(codes []int) (count [3]int) {
	for _, code := range codes {
		count[min(max(code/100-2, 0), 2)]++
	}
	return count
}

// Calls. A Step is one small thing, which is done to each of many numbers.
type Step interface{ Do(x uint32) uint32 }

// Mix is one.
type Mix struct{ Key uint32 }

// Do does it.
func (m Mix) Do(x uint32) uint32 { return x ^ m.Key }

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

// ByGeneric is compiled once for all types of one shape: unlike a template's, its call goes through a
// dictionary.
func ByGeneric[S Step](s S, xs []uint32) (sum uint32) {
	for _, x := range xs {
		sum += s.Do(x)
	}
	return sum
}

// Asserted asks once for the type that nearly all steps have, as PGO would at each call.
func Asserted(s Step, xs []uint32) uint32 {
	if m, ok := s.(Mix); ok {
		return Direct(m, xs)
	}
	return ByInterface(s, xs)
}

// Direct names the type: the body of Do takes the place of the call.
func Direct(m Mix, xs []uint32) (sum uint32) {
	for _, x := range xs {
		sum += m.Do(x)
	}
	return sum
}

// Insertion sorts in place: a step for each pair that is in the wrong order.
func Insertion(a []int64) {
	for i, x := range a {
		j := i
		for ; j > 0 && a[j-1] > x; j-- {
			a[j] = a[j-1]
		}
		a[j] = x
	}
}
