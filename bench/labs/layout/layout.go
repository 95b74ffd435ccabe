// Package layout is a lab: what it costs to get at memory, by where things lie.
package layout

import (
	"container/list"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// A Line is a cache line that says which one is next.
type Line struct {
	Next uint32
	_    [60]byte
}

// Ring returns lines of the given size altogether, in bytes, linked into one ring in random order: no
// prefetcher can guess the next one.
func Ring(size int) []Line {
	ring := make([]Line, size/64)
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(ring))
	for i, at := range order {
		ring[at].Next = uint32(order[(i+1)%len(order)])
	}
	return ring
}

// Chase follows the ring for n steps. Each load needs the one before it, so their latencies add up.
func Chase(ring []Line, at uint32, n int) uint32 {
	for range n {
		at = ring[at].Next
	}
	return at
}

// A Conn is what a server knows of a connection. Only the deadline matters here; the rest is in the way.
type Conn struct {
	Deadline int64
	FD       int32
	_        [116]byte
}

// SumConns looks at all deadlines, in a slice of the connections themselves.
func SumConns(conns []Conn) (sum int64) {
	for i := range conns {
		sum += conns[i].Deadline
	}
	return sum
}

// SumPointers looks at them by a slice of pointers: one more load each, but the next addresses are
// known, so the CPU has several on their way.
func SumPointers(conns []*Conn) (sum int64) {
	for _, c := range conns {
		sum += c.Deadline
	}
	return sum
}

// SumList looks at them along a list: only who has a node knows the next address.
func SumList(conns *list.List) (sum int64) {
	for e := conns.Front(); e != nil; e = e.Next() {
		sum += e.Value.(*Conn).Deadline
	}
	return sum
}

// SumDeadlines looks at them in an array that has nothing else: eight to a cache line.
func SumDeadlines(deadlines []int64) (sum int64) {
	for _, d := range deadlines {
		sum += d
	}
	return sum
}

// A Hot has what each scan needs, and a pointer to the rest: four to a cache line.
type Hot struct {
	Deadline int64
	Cold     *Conn
}

// SumHot looks at the hot parts only.
func SumHot(conns []Hot) (sum int64) {
	for i := range conns {
		sum += conns[i].Deadline
	}
	return sum
}

// Connections are the same n connections, in each of the forms.
type Connections struct {
	Conns     []Conn
	Pointers  []*Conn    // as after hours of coming and going: neighbours here are none in memory
	List      *list.List // in the order in which they were made
	Scattered *list.List // in no order, like Pointers
	Deadlines []int64
	Hot       []Hot
}

// NewConnections makes n of them.
func NewConnections(n int) *Connections {
	random := rand.New(rand.NewPCG(3, 4))
	all := &Connections{
		Conns:     make([]Conn, n),
		List:      list.New(),
		Scattered: list.New(),
	}
	made := make([]*Conn, n)
	for i := range n {
		all.Conns[i] = Conn{Deadline: random.Int64N(1 << 40), FD: int32(i)}
		c := new(Conn)
		*c = all.Conns[i]
		made[i] = c
		all.List.PushBack(c)
		all.Deadlines = append(all.Deadlines, c.Deadline)
		all.Hot = append(all.Hot, Hot{c.Deadline, c})
	}
	nodes := make([]*list.Element, n)
	for i, c := range made {
		nodes[i] = all.Scattered.PushBack(c)
	}
	for _, i := range random.Perm(n) {
		all.Pointers = append(all.Pointers, made[i])
		all.Scattered.MoveToBack(nodes[i])
	}
	return all
}

// Side is the length of a side of a Table.
const Side = 1024

// A Table counts requests, by route and by minute: 4 MB.
type Table [Side][Side]uint32

// SumRows adds up along the rows, as they lie in memory.
func SumRows(t *Table) (sum uint32) {
	for i := range Side {
		for j := range Side {
			sum += t[i][j]
		}
	}
	return sum
}

// SumColumns adds up along the columns: each step goes to another cache line, and to another page.
func SumColumns(t *Table) (sum uint32) {
	for j := range Side {
		for i := range Side {
			sum += t[i][j]
		}
	}
	return sum
}

// Near are the counters of two loops as one would write them: they share a cache line.
type Near [2]atomic.Int64

// Far are the same counters with a cache line between them, and another on either side: some CPUs
// fetch lines in pairs.
type Far struct {
	_       [128]byte
	Counter [2]struct {
		atomic.Int64
		_ [120]byte
	}
}

// CountBoth has two threads count to n, each with a counter of its own.
func CountBoth(a, b *atomic.Int64, n int) {
	var both sync.WaitGroup
	for _, counter := range []*atomic.Int64{a, b} {
		both.Go(func() {
			for range n {
				counter.Add(1)
			}
		})
	}
	both.Wait()
}

// CountOne is the same with one thread, which takes the counters in turns: what counting costs alone.
func CountOne(a, b *atomic.Int64, n int) {
	for range n {
		a.Add(1)
		b.Add(1)
	}
}
