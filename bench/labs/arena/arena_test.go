package arena

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/lab/input"
)

type way struct {
	name  string
	serve func(in []byte, send func([]byte))
}

func ways() []way {
	return []way{{"heap", Heap}, {"block", Block}, {"pool", Pool}, {"free-list", new(FreeList).Serve}, {"arena", NewArena().Serve}}
}

func TestSame(t *testing.T) {
	heads := [][]byte{input.Browser, input.Hello, input.Cookies, input.Hello, input.Browser} // larger, smaller, larger
	for _, w := range ways() {
		for _, head := range heads {
			var want, got []byte
			Heap(head, func(answer []byte) { want = bytes.Clone(answer) })
			w.serve(head, func(answer []byte) { got = bytes.Clone(answer) })
			require.Equal(t, string(want), string(got), w.name)
		}
	}
	require.Contains(t, answerOf(input.Browser), "/products/catalogue/index.html?category=books&page=2&sort=price\nHost\nConnection\n")
}

func answerOf(head []byte) (answer string) {
	Heap(head, func(b []byte) { answer = string(b) })
	return answer
}

// TestKeptView has a handler do what it must not: it keeps what is its request's.
func TestKeptView(t *testing.T) {
	var kept []byte
	handle := Handle
	t.Cleanup(func() { Handle = handle })
	keep := func(r *Request) {
		if kept == nil {
			kept = r.Target
		}
		handle(r)
	}
	send := func([]byte) {}
	Handle = keep

	a := NewArena()
	a.Serve([]byte("GET /secret HTTP/1.1\r\n\r\n"), send)
	require.Equal(t, "/secret", string(kept), "right by chance: nobody has the memory yet")
	a.Serve([]byte("GET /public HTTP/1.1\r\n\r\n"), send)
	require.Equal(t, "/public", string(kept), "another's request, and nothing says so")

	kept = nil
	poisoned := NewArena()
	poisoned.Poison()
	poisoned.Serve([]byte("GET /secret HTTP/1.1\r\n\r\n"), send)
	require.Equal(t, bytes.Repeat([]byte{0xDB}, 7), kept, "wrong at once, and to be seen")
}

func TestFreeListKeepsFew(t *testing.T) {
	var l FreeList
	var nested func(depth int)
	nested = func(depth int) { // as many in use at once as depth says
		l.Serve(input.Hello, func([]byte) {
			if depth > 1 {
				nested(depth - 1)
			}
		})
	}
	nested(2 * mostFree)
	require.Len(t, l.free, mostFree)
}

func BenchmarkArena(b *testing.B) {
	for _, head := range []struct {
		name string
		head []byte
	}{{"hello", input.Hello}, {"browser", input.Browser}} {
		for _, w := range ways() {
			b.Run(head.name+"/"+w.name, func(b *testing.B) {
				b.ReportAllocs()
				sent := 0
				send := func(answer []byte) { sent += len(answer) }
				for b.Loop() {
					w.serve(head.head, send)
				}
				if sent == 0 {
					b.Fatal("no answer")
				}
			})
		}
	}
}
