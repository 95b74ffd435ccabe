package netpoll

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// group is an old process's listeners and its successor's, on one address.
func group(t *testing.T, at string, old, young int) (olds, youngs []int, bound string) {
	t.Helper()
	first, bound := listener(t, at, claimAndShare)
	olds = append(olds, first)
	for len(olds)+len(youngs) < old+young {
		fd, _ := listener(t, bound, ListenOptions{Share: true})
		if len(olds) < old {
			olds = append(olds, fd)
		} else {
			youngs = append(youngs, fd)
		}
	}
	return olds, youngs, bound
}

// takeAll accepts what waits at each of the listeners, and says how many there were.
func takeAll(t *testing.T, listeners []int) (counts []int, sum int) {
	t.Helper()
	for _, l := range listeners {
		count := 0
		for {
			fd, err := Accept(new(Counters), l)
			if err != nil {
				require.Equal(t, ErrWouldBlock, err)
				break
			}
			require.NoError(t, unix.Close(fd))
			count++
		}
		counts = append(counts, count)
		sum += count
	}
	return counts, sum
}

// A process goes away beside its successor. Nobody comes to it any more, and the handshake that was under way is completed.
func TestSteer(t *testing.T) {
	for _, c := range []struct {
		at         string
		old, young int
	}{
		{"127.0.0.1:0", 1, 1}, {"127.0.0.1:0", 2, 2}, {"127.0.0.1:0", 4, 4}, {"127.0.0.1:0", 1, 4}, {"127.0.0.1:0", 2, 3},
		{"[::1]:0", 2, 2}, {"0.0.0.0:0", 2, 2}, {"[::]:0", 3, 3},
	} {
		t.Run(fmt.Sprintf("%s %d %d", c.at, c.old, c.young), func(t *testing.T) {
			if c.at[0] == '[' {
				needIPv6(t)
			}
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			olds, youngs, bound := group(t, c.at, c.old, c.young)
			target := wildcards.Replace(bound)

			// With this option the kernel completes a handshake only when a byte comes: it is under way until we send one.
			for _, fd := range olds {
				require.NoError(t, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 10))
			}
			const early, connections = 50, 200
			var underWay []int
			for range early {
				underWay = append(underWay, dial(t, Address{}, target))
			}
			_, done := takeAll(t, youngs)
			require.Less(t, done, early)

			require.True(t, steer(olds, SteerAway))
			for range connections {
				dial(t, Address{}, target)
			}
			counts, sum := takeAll(t, youngs)
			require.Equal(t, connections, sum)
			require.NotContains(t, counts, 0, "by chance, to all")
			for _, fd := range underWay {
				_, err := Send(new(Counters), fd, []byte("x"))
				require.NoError(t, err)
			}
			_, sum = takeAll(t, olds)
			require.Equal(t, early, done+sum)

			require.True(t, steer(olds, SteerClose))
			random.Shuffle(len(olds), func(i, j int) { olds[i], olds[j] = olds[j], olds[i] })
			for len(olds) > 0 {
				require.NoError(t, unix.Close(olds[0]))
				olds = olds[1:]
				for range 30 {
					dial(t, Address{}, target)
				}
				_, sum := takeAll(t, youngs)
				require.Equal(t, 30, sum)
			}

			// The others share again, and so does the next successor.
			for range connections {
				dial(t, Address{}, target)
			}
			counts, _ = takeAll(t, youngs)
			require.NotContains(t, counts, 0)
			next, _ := listener(t, bound, ListenOptions{Share: true})
			for range connections {
				dial(t, Address{}, target)
			}
			counts, sum = takeAll(t, append(youngs, next))
			require.Equal(t, connections, sum)
			require.NotContains(t, counts, 0)
		})
	}
}

// Fewer listeners than before: nobody comes to the old ones until the first of them is closed.
func TestSteerToFewer(t *testing.T) {
	olds, youngs, bound := group(t, "127.0.0.1:0", 3, 1)
	for _, s := range []Steering{SteerAway, SteerClose} {
		require.True(t, steer(olds, s))
		for range 50 {
			dial(t, Address{}, bound)
		}
		_, sum := takeAll(t, youngs)
		require.Equal(t, 50, sum)
	}
}

func TestSteerWithoutSuccessor(t *testing.T) {
	require.False(t, steer(nil, SteerAway), "this process shares no address")
	olds, _, bound := group(t, "127.0.0.1:0", 2, 0)
	listener(t, "127.0.0.2:"+port(t, bound), claimAndShare) // another address
	require.False(t, steer(olds, SteerAway))
	for range 50 {
		dial(t, Address{}, bound)
	}
	counts, _ := takeAll(t, olds)
	require.NotContains(t, counts, 0)
}

func TestSteerThatFails(t *testing.T) {
	for _, call := range []Call{CallGetsockname, CallSetsockopt} {
		t.Run(call.String(), func(t *testing.T) {
			olds, youngs, bound := group(t, "127.0.0.1:0", 1, 1)
			open := openDescriptors(t)
			injectFaults(t, call, fail(unix.ENOMEM)...)
			require.False(t, steer(olds, SteerAway))
			require.Equal(t, open, openDescriptors(t))
			for range 50 {
				dial(t, Address{}, bound)
			}
			counts, _ := takeAll(t, append(olds, youngs...))
			require.NotContains(t, counts, 0)
		})
	}
}

// What this process shares, and that alone, is what Steer is about.
func TestSteerKnowsTheListeners(t *testing.T) {
	shared.listeners = nil
	first, bound := listener(t, "127.0.0.1:0", claimAndShare)
	second, _ := listener(t, bound, ListenOptions{Share: true})
	listener(t, "127.0.0.1:0", ListenOptions{Claim: true})
	requireTaken(t, bound, claimAndShare)
	require.Equal(t, []int{first, second}, shared.listeners)
	require.False(t, Steer(SteerAway), "nobody else is there")
}
