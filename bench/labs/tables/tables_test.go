package tables

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/lab/input"
)

var phraseWays = []struct {
	name   string
	phrase func(int) string
}{{"map", Map}, {"switch", Switch}, {"array", Array}, {"usual-first", Usual}}

type class struct {
	name string
	all  func([]byte) bool
}

var (
	tokenWays = []class{{"compared", TokenCompared}, {"table", TokenTable}, {"bits", TokenBits}}
	valueWays = []class{{"compared", ValueCompared}, {"table", ValueTable}, {"eight", ValueEight}}
)

// fields returns the names and the values of a browser's head.
func fields() (names, values [][]byte) {
	for line := range bytes.SplitSeq(bytes.TrimSpace(input.Browser), []byte("\r\n")) {
		if name, value, ok := bytes.Cut(line, []byte(": ")); ok {
			names, values = append(names, name), append(values, value)
		}
	}
	return names, values
}

func TestSame(t *testing.T) {
	for code := -1; code < 1000; code++ {
		for _, w := range phraseWays {
			require.Equal(t, Map(code), w.phrase(code), "%s: %d", w.name, code)
		}
	}
	for _, code := range input.Statuses(1000) {
		require.NotEmpty(t, Map(code), "%d", code)
		if code != 413 { // net/http has the older name
			require.Equal(t, http.StatusText(code), Map(code))
		}
	}
	names, values := fields()
	require.Len(t, names, 14)
	for _, ways := range [][]class{tokenWays, valueWays} {
		for _, w := range ways {
			for c := range 256 {
				for at := range 20 { // in a word, in another one, and in what is left
					text := []byte("abcdefghijklmnopqrst")
					text[at] = byte(c)
					require.Equal(t, ways[0].all(text), w.all(text), "%s: %q", w.name, text)
				}
			}
			require.True(t, w.all(nil), w.name)
		}
	}
	for i := range names {
		require.True(t, TokenCompared(names[i]), "%s", names[i])
		require.True(t, ValueCompared(values[i]), "%s", values[i])
	}
	require.False(t, TokenCompared([]byte("Content Length")))
	require.False(t, ValueCompared([]byte("a\x00b")))
	require.True(t, ValueCompared([]byte("a\tb \xff")))
	require.True(t, ValueEight([]byte("a tab\tand\tanother one")))
	require.False(t, ValueEight([]byte("a tab\tand\ra bare CR")))
}

// report gives the time of one of n things that an iteration does.
func report(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/op")
}

func BenchmarkTables(b *testing.B) {
	const n = 1 << 16 // more than a CPU can learn by heart
	same := make([]int, n)
	for i := range same {
		same[i] = 200
	}
	for _, c := range []struct {
		name  string
		codes []int
	}{{"status-200", same}, {"status-mixed", input.Statuses(n)}} {
		for _, w := range phraseWays {
			b.Run(c.name+"/"+w.name, func(b *testing.B) {
				length := 0
				for b.Loop() {
					for _, code := range c.codes {
						length += len(w.phrase(code))
					}
				}
				report(b, n)
				if length == 0 {
					b.Fatal("no phrase")
				}
			})
		}
	}

	// One operation is a head: 14 names, or 14 values.
	names, values := fields()
	for _, c := range []struct {
		name  string
		texts [][]byte
		ways  []class
	}{{"names", names, tokenWays}, {"values", values, valueWays}} {
		for _, w := range c.ways {
			b.Run(c.name+"/"+w.name, func(b *testing.B) {
				for b.Loop() {
					for _, text := range c.texts {
						if !w.all(text) {
							b.Fatalf("%q", text)
						}
					}
				}
			})
		}
	}
}
