package netpoll

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestHotCallsDoNotAllocate(t *testing.T) {
	var c Counters
	a, b := pair(t)
	p := poller(t, &c)
	clock := timer(t, &c)
	l, bound := listener(t, "127.0.0.1:0", ListenOptions{})
	target := address(t, bound)
	source := address(t, "127.0.0.3:0")
	vector := NewVector(8)
	reserve, err := newReserve(&c, 2)
	require.NoError(t, err)
	defer reserve.close(&c)
	var published Published
	broken, peer := pair(t)
	require.NoError(t, unix.Close(peer))
	buffer, head, body := make([]byte, 4096), make([]byte, 100), make([]byte, 900)
	into := make([]byte, 0, 4096)
	require.NoError(t, p.Add(&c, b, 1, Readable))
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	wants := func(want, err error) {
		if err != want {
			panic(err)
		}
	}

	for name, run := range map[string]func(){
		"Send and Receive": func() {
			_, err := Send(&c, a, body)
			must(err)
			_, err = Receive(&c, b, buffer)
			must(err)
		},
		"Receive in vain": func() {
			_, err := Receive(&c, b, buffer)
			wants(ErrWouldBlock, err)
		},
		"Send that fails": func() {
			_, err := Send(&c, broken, body)
			wants(unix.EPIPE, err)
		},
		"Vector": func() {
			vector.Append(head)
			vector.Append(body)
			n, err := vector.Send(&c, a)
			must(err)
			vector.Advance(10)
			vector.Advance(n - 10)
			_, err = Receive(&c, b, buffer)
			must(err)
		},
		"Wait that looks": func() {
			_, err := p.Wait(&c, 0)
			must(err)
		},
		"Wake and Wait that blocks": func() {
			must(p.Wake(&c))
			_, err := p.Wait(&c, -1)
			must(err)
			_, err = p.Wait(&c, time.Nanosecond)
			must(err)
		},
		"Add, Modify and Remove": func() {
			must(p.Add(&c, a, 1, Writable))
			must(p.Modify(&c, a, 2, Writable|OneShot))
			must(p.Remove(&c, a))
			wants(unix.ENOENT, p.Remove(&c, a))
		},
		"SetTimer": func() { must(SetTimer(&c, clock, time.Hour)) },
		"NewTimer and Close": func() {
			fd, err := NewTimer(&c)
			must(err)
			must(Close(&c, fd))
		},
		"Accept in vain": func() {
			_, err := Accept(&c, l)
			wants(ErrWouldBlock, err)
		},
		"Connect, Accept, ShutdownWrite and Close": func() {
			client, err := Connect(&c, source, target)
			must(err)
			must(ConnectError(&c, client))
			for err = ErrWouldBlock; err == ErrWouldBlock; {
				var server int
				if server, err = Accept(&c, l); err == nil {
					must(ShutdownWrite(&c, server))
					must(SetLinger0(server))
					must(Close(&c, server))
				}
			}
			must(err)
			must(Close(&c, client))
		},
		"Reserve": func() {
			reserve.release(&c)
			must(reserve.refill(&c))
		},
		"Counters": func() {
			c.Requests++
			published.Publish(&c)
			_ = published.Load()
			into = c.CopyBody(into[:0], body)
		},
		"CPU clocks": func() {
			_ = ProcessCPUNanoseconds()
		},
		"IsExhausted": func() {
			if !IsExhausted(unix.ENOMEM) || IsExhausted(unix.EBADF) {
				panic("wrong")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Zero(t, testing.AllocsPerRun(100, run))
		})
	}
}

func BenchmarkSendAndReceive(b *testing.B) {
	x, y := pair(b)
	var c Counters
	buffer, data := make([]byte, 4096), make([]byte, 100)
	for b.Loop() {
		if _, err := Send(&c, x, data); err != nil {
			b.Fatal(err)
		}
		if _, err := Receive(&c, y, buffer); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWriteAndRead is the same through the scheduler-aware calls of x/sys/unix, for comparison.
func BenchmarkWriteAndRead(b *testing.B) {
	x, y := pair(b)
	buffer, data := make([]byte, 4096), make([]byte, 100)
	for b.Loop() {
		if _, err := unix.Write(x, data); err != nil {
			b.Fatal(err)
		}
		if _, err := unix.Read(y, buffer); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	var c Counters
	var p Published
	for b.Loop() {
		c.Requests++
		c.Reads++
		c.ReadBytes += 100
		c.Writes++
		c.WrittenBytes += 100
		c.EpollWaits++
		c.Events++
		p.Publish(&c)
	}
}
