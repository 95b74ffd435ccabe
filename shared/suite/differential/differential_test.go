package differential

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/suite"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

var (
	seed   = flag.Uint64("seed", 1, "what TestGenerated makes its inputs from")
	first  = flag.Uint64("first", 0, "the number of TestGenerated's first input")
	inputs = flag.Uint64("inputs", 0, "how many inputs TestGenerated makes; 0: 200, and 1500 where what is slow by nature is wanted")
)

// workers is how many exchanges are under way at a time with each server.
const workers = 3

// The fates of all conformance cases: that they are right is what each stage's own test says.
func TestConformanceCases(t *testing.T) {
	targets := startStages(t)
	cases, err := suite.Cases()
	require.NoError(t, err)
	// Every case, or every sixth from a first one that is drawn.
	step, from := uint64(6), uint64(0)
	if testenv.SlowToo() {
		step = 1
	} else {
		from = rand.Uint64N(step)
		t.Logf("every sixth case, from number %d on", from)
	}
	each(t, (uint64(len(cases))-from+step-1)/step, func(i uint64) error {
		i = from + i*step
		c := cases[i]
		if err := compare(targets, caseInput(c, i)); err != nil {
			return fmt.Errorf("%s:%d: %s: %w", c.File, c.Line, c.Name, err)
		}
		return nil
	})
}

func caseInput(c suite.Case, i uint64) *input {
	return &input{bytes: c.Bytes, cuts: newGenerator(1, i).cuts(len(c.Bytes)), shut: c.HalfClose,
		late: i%5 == 0 && len(c.Bytes) < 100_000, sips: i%7 == 0 && len(c.Bytes) < 100_000}
}

// together are requests that one client sends without waiting: with and without a body, and a last one.
const together = "GET /bytes/600 HTTP/1.1\r\nHost: a\r\n\r\n" +
	"POST /api/echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nabcde" +
	"\r\nPOST /api/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX: y\r\n\r\n" +
	"HEAD / HTTP/1.0\r\n\r\n"

// The end of input after each byte: all requests that are whole are answered, and then the connection ends.
func TestHalfCloseAnywhere(t *testing.T) {
	targets := startStages(t)
	each(t, uint64(len(together)+1), func(i uint64) error {
		return compare(targets, &input{bytes: []byte(together[:i]), shut: true, late: i%2 == 0})
	})
}

// Each byte in turn is urgent: alone, with the one before it, and at the end of input; or, unless what is slow by nature is wanted,
// in one of these ways.
func TestUrgentAnywhere(t *testing.T) {
	targets := startStages(t)
	ways := 1
	if testenv.SlowToo() {
		ways = 3
	}
	each(t, uint64(ways*len(together)), func(i uint64) error {
		at := 1 + int(i)/ways
		in := &input{bytes: []byte(together), cuts: []int{at}, urgent: 1}
		switch i % 3 {
		case 1:
			in.cuts, in.urgent = []int{at, at + 1}, 3
		case 2:
			in.bytes, in.shut = in.bytes[:at], true
		}
		if in.cuts[len(in.cuts)-1] >= len(in.bytes) {
			in.cuts = nil // the last byte ends the only piece
		}
		return compare(targets, in)
	})
}

func TestGenerated(t *testing.T) {
	targets := startStages(t)
	n := *inputs
	if n == 0 {
		n = 200
		if testenv.SlowToo() {
			n = 1500
		}
	}
	each(t, n, func(i uint64) error {
		if err := compare(targets, newGenerator(*seed, *first+i).input()); err != nil {
			return fmt.Errorf("-seed=%d -first=%d -inputs=1: %w", *seed, *first+i, err)
		}
		return nil
	})
}

// each calls f with 0 to n-1 on some goroutines. After some errors it stops.
func each(t *testing.T, n uint64, f func(i uint64) error) {
	t.Helper()
	var next, failed atomic.Uint64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := next.Add(1) - 1; i < n && failed.Load() < 5; i = next.Add(1) - 1 {
				if err := f(i); err != nil {
					failed.Add(1)
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// FuzzDifferential takes the bytes, the places to cut at (every bit of cuts stands for a place), and what else a client does, as
// input has it.
func FuzzDifferential(f *testing.F) {
	targets := startStages(f)
	cases, err := suite.Cases()
	require.NoError(f, err)
	for i, c := range cases {
		// Without -fuzz, the test above has run them.
		if fuzzing := flag.Lookup("test.fuzz").Value.String() != ""; fuzzing && len(c.Bytes) <= 2000 {
			f.Add(c.Bytes, uint64(i)*0x9e3779b97f4a7c15, c.HalfClose, i%5 == 0, uint64(i%3), i%7 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, cuts uint64, shut, late bool, urgent uint64, sips bool) {
		if len(b) > 64<<10 {
			return
		}
		if err := compare(targets, &input{b, cutsOf(cuts, len(b)), shut, late, urgent, sips}); err != nil {
			t.Fatal(err)
		}
	})
}

// cutsOf makes of each bit that is set a cut: bit i cuts at i sixty-fourths of the length.
func cutsOf(bits uint64, length int) []int {
	var cuts []int
	for i := range 64 {
		if at := length * i / 64; bits>>i&1 == 1 && at > 0 {
			cuts = append(cuts, at)
		}
	}
	return slices.Compact(cuts)
}

// The generator must make valid requests, and damaged ones, or the test above tests little.
func TestGeneratorIsVaried(t *testing.T) {
	statuses := map[string]int{}
	for i := range uint64(2000) {
		g := newGenerator(1, i)
		valid := g.request()
		m := modelOf(valid)
		require.NotEmpty(t, m.answers, "%q", valid)
		if !m.closed {
			require.Equal(t, 1, m.zeros, "%q", valid)
		}
		in := newGenerator(1, i).input()
		statuses[fmt.Sprint(modelOf(in.bytes).closed)]++
		require.Equal(t, string(in.bytes), strings.Join(func() (all []string) {
			for _, piece := range in.pieces() {
				all = append(all, string(piece))
			}
			return all
		}(), ""))
	}
	require.Greater(t, statuses["true"], 500)
	require.Greater(t, statuses["false"], 300)
}
