package search

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/lab/input"
)

func TestSame(t *testing.T) {
	require.Equal(t, 3*1+2*2+1*3, Lines([]byte("ab\na\n\nrest"), Index))
	if Vector == nil {
		t.Log("vector and pass are not built: they need GOEXPERIMENT=simd, and AVX2")
	}
	texts := [][]byte{nil, input.Hello, input.Browser, input.Cookies, bytes.Repeat([]byte("\n"), 100), bytes.Repeat([]byte("\v\n\t"), 33)}
	random := rand.New(rand.NewPCG(7, 8))
	for n := range 200 {
		text := make([]byte, n)
		for i := range text {
			text[i] = "\n\v\x8a\r a"[min(random.IntN(30), 5)] // the neighbours of a line feed among them
		}
		texts = append(texts, text)
	}
	for _, text := range texts {
		want := Ways()[0].Lines(text)
		for _, w := range Ways() {
			require.Equal(t, want, w.Lines(text), "%s: %q", w.Name, text)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, c := range []struct {
		name string
		head []byte
	}{{"hello", input.Hello}, {"browser", input.Browser}, {"cookies", input.Cookies}} {
		for _, w := range Ways() {
			b.Run(c.name+"/"+w.Name, func(b *testing.B) {
				b.SetBytes(int64(len(c.head)))
				sum := 0
				for b.Loop() {
					sum += w.Lines(c.head)
				}
				if sum == 0 {
					b.Fatal("no line")
				}
			})
		}
	}
}
