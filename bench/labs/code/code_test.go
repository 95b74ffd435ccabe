package code

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/lab/input"
)

var sink int64

const layers = 10

// What layers are called through: the compiler does not see which one it is, as in a chain that was put
// together at start.
var (
	deep    = DeepLayer
	value   = ValueLayer
	pointer = PointerLayer
)

func byCopies(layer func(Request) Request) func(*Request) int {
	return func(first *Request) int {
		r := *first
		for range layers {
			r = layer(r)
		}
		return r.Layers
	}
}

func byPointer(r *Request) int {
	r.Layers = 0
	for range layers {
		pointer(r)
	}
	return r.Layers
}

func request() *Request {
	return &Request{Method: "GET", Target: "/", Host: "127.0.0.1", Fields: slices.Repeat([]string{"name"}, 14)}
}

type copyWay struct {
	name string
	run  func(*Request) int
}

func copies() []copyWay {
	return []copyWay{{"value", byCopies(value)}, {"deep", byCopies(deep)}, {"pointer", byPointer}}
}

func conns(n int) (loose []Loose, tight []Tight) {
	random := rand.New(rand.NewPCG(9, 10))
	for i := range n {
		l := Loose{Open: random.IntN(8) > 0, Waiting: true, Deadline: random.Int64N(1 << 40), Sent: random.Int64N(1 << 20), FD: int32(i)}
		loose = append(loose, l)
		tight = append(tight, Tight{l.Deadline, l.Sent, l.FD, l.Open, l.Waiting})
	}
	return loose, tight
}

var branches = []struct {
	name  string
	count func([]int) [3]int
}{{"rare-first", RareFirst}, {"likely-first", LikelyFirst}, {"computed", Computed}}

// calls are variables' values, so that none of the loops is put in its caller's place, where the compiler
// would see what it calls.
var calls = []struct {
	name string
	run  func(Mix, []uint32) uint32
}{
	{"interface", func(m Mix, xs []uint32) uint32 { return byInterface(m, xs) }},
	{"closure", func(m Mix, xs []uint32) uint32 { return byClosure(m.Do, xs) }},
	{"generic", func(m Mix, xs []uint32) uint32 { return byGeneric(m, xs) }},
	{"asserted", func(m Mix, xs []uint32) uint32 { return asserted(m, xs) }},
	{"direct", Direct},
}

var (
	byInterface = ByInterface
	byClosure   = ByClosure
	byGeneric   = ByGeneric[Mix]
	asserted    = Asserted
)

var loops = []struct {
	name   string
	unmask func([]byte, [4]byte)
}{{"bytes", Bytes}, {"unrolled", Unrolled}, {"unchecked", Unchecked}, {"words", Words}, {"vectors", Vectors}}

var sorts = []struct {
	name string
	sort func([]int64)
}{{"library", slices.Sort[[]int64]}, {"insertion", Insertion}}

// unsorted returns deadlines in the order of arrival, a different one each time until they begin again:
// in 2 MB of them is more than a CPU can learn by heart.
func unsorted(n int) (all [][]int64) {
	random := rand.New(rand.NewPCG(11, 12))
	for range max(8, 1<<18/n) {
		a := make([]int64, n)
		for i := range a {
			a[i] = random.Int64N(60_000_000_000)
		}
		all = append(all, a)
	}
	return all
}

// other is a step that nobody has foreseen.
type other struct{}

func (other) Do(x uint32) uint32 { return x + 1 }

func TestSame(t *testing.T) {
	for _, w := range copies() {
		require.Equal(t, 4*layers, w.run(request()), w.name)
	}
	loose, tight := conns(1000)
	require.NotZero(t, ScanLoose(loose))
	require.Equal(t, ScanLoose(loose), ScanTight(tight))
	codes := append(input.Statuses(1000), 100, 199, 200, 299, 300, 399, 400, 499, 500, 599)
	require.NotZero(t, RareFirst(codes)[2])
	for _, w := range branches {
		require.Equal(t, RareFirst(codes), w.count(codes), w.name)
	}
	for _, w := range calls {
		require.Equal(t, Direct(Mix{5}, []uint32{1, 2, 3}), w.run(Mix{5}, []uint32{1, 2, 3}), w.name)
	}
	require.Equal(t, ByInterface(other{}, []uint32{1, 2, 3}), Asserted(other{}, []uint32{1, 2, 3}))
	for n := range 600 {
		text, key := bytes.Repeat([]byte("a b"), 200)[:n], [4]byte{1, 20, 0, 255}
		want := slices.Clone(text)
		Bytes(want, key)
		for _, w := range loops {
			got := slices.Clone(text)
			w.unmask(got, key)
			require.Equal(t, want, got, "%s of %d", w.name, n)
			w.unmask(got, key)
			require.Equal(t, text, got, "%s is its own inverse", w.name)
		}
	}
	for _, n := range []int{1, 2, 17, 100} {
		for _, a := range unsorted(n) {
			got := slices.Clone(a)
			Insertion(got)
			slices.Sort(a)
			require.Equal(t, a, got)
		}
	}
}

// report gives the time of one of n things that an iteration does.
func report(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/op")
}

func BenchmarkCode(b *testing.B) {
	for _, w := range copies() {
		b.Run("copies/"+w.name, func(b *testing.B) {
			b.ReportAllocs()
			r := request()
			for b.Loop() {
				sink += int64(w.run(r))
			}
		})
	}

	const scanned = 100_000
	loose, tight := conns(scanned)
	for _, w := range []struct {
		name string
		scan func() int64
	}{{"loose", func() int64 { return ScanLoose(loose) }}, {"tight", func() int64 { return ScanTight(tight) }}} {
		b.Run("layout/"+w.name, func(b *testing.B) {
			for b.Loop() {
				sink += w.scan()
			}
			report(b, scanned)
		})
	}

	codes := input.Statuses(1 << 16) // more than a CPU can learn by heart
	for _, w := range branches {
		b.Run("branches/"+w.name, func(b *testing.B) {
			for b.Loop() {
				sink += int64(w.count(codes)[1])
			}
			report(b, len(codes))
		})
	}

	xs := make([]uint32, 1024)
	for i := range xs {
		xs[i] = uint32(i * i)
	}
	for _, w := range calls {
		b.Run("calls/"+w.name, func(b *testing.B) {
			for b.Loop() {
				sink += int64(w.run(Mix{0x9E3779B1}, xs))
			}
			report(b, len(xs))
		})
	}

	message := bytes.Repeat([]byte("a message of a kilobyte, masked."), 32)
	for _, w := range loops {
		b.Run("loops/"+w.name, func(b *testing.B) {
			for b.Loop() {
				w.unmask(message, [4]byte{0x37, 0xFA, 0x21, 0x3D})
			}
		})
	}

	for _, n := range []int{8, 16, 32, 64, 256} {
		all, scratch := unsorted(n), make([]int64, n)
		for _, w := range sorts {
			b.Run("sort-"+strconv.Itoa(n)+"/"+w.name, func(b *testing.B) {
				for b.Loop() {
					for _, a := range all {
						copy(scratch, a)
						w.sort(scratch)
					}
				}
				report(b, len(all))
			})
		}
	}
}
