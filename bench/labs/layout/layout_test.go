package layout

import (
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var sink int64

func TestSame(t *testing.T) {
	all := NewConnections(1000)
	want := SumConns(all.Conns)
	require.NotZero(t, want)
	require.Equal(t, want, SumPointers(all.Pointers), "pointers")
	require.Equal(t, want, SumList(all.List), "list")
	require.Equal(t, want, SumList(all.Scattered), "scattered")
	require.Equal(t, want, SumDeadlines(all.Deadlines), "deadlines")
	require.Equal(t, want, SumHot(all.Hot), "hot")

	table := newTable()
	require.Equal(t, SumRows(table), SumColumns(table))

	var near Near
	var far Far
	CountBoth(&near[0], &near[1], 1000)
	CountBoth(&far.Counter[0].Int64, &far.Counter[1].Int64, 1000)
	CountOne(&far.Counter[0].Int64, &far.Counter[1].Int64, 1000)
	require.EqualValues(t, 1000, near[0].Load())
	require.EqualValues(t, 1000, near[1].Load())
	require.EqualValues(t, 2000, far.Counter[1].Load())
}

// TestRing walks round: one ring, all of it.
func TestRing(t *testing.T) {
	ring := Ring(16 << 10)
	require.Len(t, ring, 256)
	require.Zero(t, Chase(ring, 0, len(ring)), "back where it began")
	for n := 1; n < len(ring); n++ {
		require.NotZero(t, Chase(ring, 0, n), "after %d steps", n)
	}
}

func newTable() *Table {
	t := new(Table)
	for i := range t {
		for j := range t[i] {
			t[i][j] = uint32(i*j + i)
		}
	}
	return t
}

// report gives the time of one of n things that an iteration does.
func report(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/op")
}

func BenchmarkLayout(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"16kb", 16 << 10}, {"256kb", 256 << 10}, {"4mb", 4 << 20}, {"32mb", 32 << 20}, {"256mb", 256 << 20}} {
		b.Run("chase/"+size.name, func(b *testing.B) {
			ring := Ring(size.bytes)
			at := Chase(ring, 0, len(ring)) // once round: as much of it as fits is in the cache
			for b.Loop() {
				at = Chase(ring, at, 4096)
			}
			sink += int64(at)
			report(b, 4096)
		})
	}

	for _, n := range []int{10_000, 100_000} {
		all := sync.OnceValue(func() *Connections { return NewConnections(n) })
		for _, way := range []struct {
			name string
			sum  func() int64
		}{
			{"pointers", func() int64 { return SumPointers(all().Pointers) }},
			{"structs", func() int64 { return SumConns(all().Conns) }},
			{"list", func() int64 { return SumList(all().List) }},
			{"scattered", func() int64 { return SumList(all().Scattered) }},
			{"hot", func() int64 { return SumHot(all().Hot) }},
			{"array", func() int64 { return SumDeadlines(all().Deadlines) }},
		} {
			b.Run("scan-"+strconv.Itoa(n)+"/"+way.name, func(b *testing.B) {
				all() // what is made is not measured
				for b.Loop() {
					sink += way.sum()
				}
				report(b, n)
			})
		}
	}

	table := sync.OnceValue(newTable)
	for _, way := range []struct {
		name string
		sum  func(*Table) uint32
	}{{"rows", SumRows}, {"columns", SumColumns}} {
		b.Run("table/"+way.name, func(b *testing.B) {
			counts := table()
			for b.Loop() {
				sink += int64(way.sum(counts))
			}
			report(b, Side*Side)
		})
	}

	const count = 100_000
	near, far := new(Near), new(Far)
	for _, way := range []struct {
		name string
		run  func()
	}{
		{"one-line", func() { CountBoth(&near[0], &near[1], count) }},
		{"padded", func() { CountBoth(&far.Counter[0].Int64, &far.Counter[1].Int64, count) }},
		{"one-thread", func() { CountOne(&near[0], &near[1], count/2) }}, // as many for a thread as above
	} {
		b.Run("counters/"+way.name, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
			for b.Loop() {
				way.run()
			}
			report(b, count)
		})
	}
}
