package netpoll

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// numbered has a different value in every counter.
func numbered(factor uint64) Counters {
	var c Counters
	for i := range c.array() {
		c.array()[i] = factor * uint64(i+1)
	}
	return c
}

func snakeCase(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func TestCounterNamesFollowTheFields(t *testing.T) {
	fields := reflect.TypeFor[Counters]()
	require.Equal(t, len(counterNames), fields.NumField())
	require.Equal(t, unsafe.Sizeof(Counters{}), unsafe.Sizeof(counterArray{}))
	for i, name := range counterNames {
		require.Equal(t, reflect.Uint64, fields.Field(i).Type.Kind(), name)
		require.Equal(t, snakeCase(fields.Field(i).Name), name)
	}
}

func TestCountersEachIsInOrder(t *testing.T) {
	c := numbered(10)
	i := 0
	c.Each(func(name string, value uint64) {
		require.Equal(t, counterNames[i], name)
		require.Equal(t, reflect.ValueOf(c).Field(i).Uint(), value)
		i++
	})
	require.Equal(t, len(counterNames), i)
}

func TestCountersSet(t *testing.T) {
	var c Counters
	want := numbered(3)
	want.Each(func(name string, value uint64) { require.True(t, c.Set(name, value), name) })
	require.Equal(t, want, c)
	require.False(t, c.Set("nothing", 1))
}

func TestCountersAdd(t *testing.T) {
	c := numbered(1)
	c.Add(numbered(10))
	require.Equal(t, numbered(11), c)
}

func TestCountersSubKeepsGauges(t *testing.T) {
	c := numbered(5)
	rest := c.Sub(numbered(2))
	want := numbered(3)
	want.HeldBytes, want.Connections = c.HeldBytes, c.Connections
	require.Equal(t, want, rest)
	require.Equal(t, numbered(5), c, "c itself must not change")
}

func TestGaugeOverTwoLoops(t *testing.T) {
	var taker, giver Counters
	taker.Hold(4096)
	giver.Release(4096)
	taker.Add(giver)
	require.Zero(t, taker.HeldBytes)
}

func TestCopyBody(t *testing.T) {
	var c Counters
	b := c.CopyBody([]byte("head "), []byte("body"))
	b = c.CopyBody(b, nil)
	require.Equal(t, "head body", string(b))
	require.Equal(t, Counters{BodyBytesCopied: 4}, c)
}

func TestBuffersAreHeldByCapacity(t *testing.T) {
	var c Counters
	b := c.NewBuffer(1000)
	require.Len(t, b, 1000)
	require.EqualValues(t, cap(b), c.HeldBytes)

	copy(b, "kept")
	b = b[:4]
	same := c.GrowBuffer(b, 996)
	require.Same(t, unsafe.SliceData(b), unsafe.SliceData(same), "it had the room")
	require.EqualValues(t, cap(b), c.HeldBytes)

	grown := c.GrowBuffer(b, 997)
	require.Equal(t, "kept", string(grown))
	require.GreaterOrEqual(t, cap(grown), 2*cap(b))
	require.EqualValues(t, cap(grown), c.HeldBytes)

	grown = c.GrowBuffer(grown, 1<<20)
	require.GreaterOrEqual(t, cap(grown)-len(grown), 1<<20)
	require.EqualValues(t, cap(grown), c.HeldBytes)
	require.Zero(t, c.BodyBytesCopied)

	c.Release(cap(grown))
	require.Equal(t, Counters{}, c)

	fresh := c.GrowBuffer(nil, 100)
	require.GreaterOrEqual(t, cap(fresh), 100)
	require.EqualValues(t, cap(fresh), c.HeldBytes)
}

func TestPublished(t *testing.T) {
	var p Published
	require.Equal(t, Counters{}, p.Load())
	c := numbered(3)
	p.Publish(&c)
	require.Equal(t, c, p.Load())
	c.Reads++
	p.Publish(&c)
	require.Equal(t, c, p.Load())
}

func TestPublishedIsReadWhileItIsWritten(t *testing.T) {
	var p Published
	var readers sync.WaitGroup
	const turns = 2000
	for range 2 {
		readers.Go(func() {
			last := uint64(0)
			for last < turns {
				now := p.Load().Requests
				if now < last {
					t.Errorf("requests went back from %d to %d", last, now)
					return
				}
				last = now
			}
		})
	}
	var c Counters
	for range turns {
		c.Requests++
		p.Publish(&c)
	}
	readers.Wait()
}

func TestCallNames(t *testing.T) {
	seen := map[string]bool{}
	for c := range callCount {
		require.NotEmpty(t, c.String())
		require.False(t, seen[c.String()], c.String())
		seen[c.String()] = true
	}
	require.Equal(t, "recvfrom", CallRecvfrom.String())
	require.Equal(t, "epoll_pwait", CallEpollPwait.String())
	require.Equal(t, "timerfd_settime", CallTimerfdSettime.String())
	require.Equal(t, "prlimit64", CallPrlimit64.String())
	require.Equal(t, "unknown", callCount.String())
}
