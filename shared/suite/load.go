package suite

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
)

// step is one exchange of a client that behaves: what it sends and all that must come back.
type step struct {
	send    string
	answers []Expected
}

// steps are what clients do, made when the first is: each server of a test is this program, and needs none of it.
var steps = sync.OnceValue(func() []step {
	echoBody := strings.Repeat("0123456789abcdef", 1<<12)
	return []step{
		{helloRequest, []Expected{Hello()}},
		{strings.Repeat(helloRequest, 16), repeated(Hello(), 16)},
		{"GET /users/7 HTTP/1.1\r\nHost: a\r\n\r\n", []Expected{user(7)}},
		{"GET /bytes/65536 HTTP/1.1\r\nHost: a\r\n\r\n", []Expected{someBytes(65536)}},
		{"HEAD /bytes/65536 HTTP/1.1\r\nHost: a\r\n\r\n" + helloRequest, []Expected{
			{Status: 200, Bodiless: true, Type: "application/octet-stream", Length: 65536}, Hello()}},
		{"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", []Expected{standardError(404)}},
		{fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(echoBody), echoBody),
			[]Expected{echoed(echoBody)}},
		{fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", 1000, echoBody[:1000]) + helloRequest,
			[]Expected{echoed(echoBody[:1000]), Hello()}},
	}
})

// oneOf draws one of these.
func oneOf[E any](random *rand.Rand, all []E) E { return all[random.IntN(len(all))] }

func (c *client) take(s step) error {
	if err := c.Send(s.send); err != nil {
		return err
	}
	for _, want := range s.answers {
		if err := c.read(want); err != nil {
			return err
		}
	}
	return nil
}

// visit opens a connection, makes up to that many exchanges, and ends it in one of the ways that are in order.
func visit(s *Server, random *rand.Rand, exchanges int) error {
	c, err := connect(s.Ready.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	for range 1 + random.IntN(exchanges) {
		if err := c.take(oneOf(random, steps())); err != nil {
			return err
		}
	}
	switch random.IntN(3) {
	case 0:
		if err := c.take(step{lastHello, []Expected{closing(Hello())}}); err != nil {
			return err
		}
		return c.ReadEnd()
	case 1:
		if err := c.CloseWrite(); err != nil {
			return err
		}
		return c.ReadEnd()
	}
	return nil
}

// Full load, connections that come and go: every answer is right, and memory stays as it is.
func soak(t T, p Program) {
	s := p.Start(t)
	before := levelAtRest(t, s)
	seed := drawSeed(t)
	end := time.Now().Add(soakTime)
	var first atomic.Pointer[error]
	var visits atomic.Int64
	var worker uint64 // counted over all parts
	run := func(until time.Time) {
		var group sync.WaitGroup
		for range 8 {
			worker++
			random := rand.New(rand.NewPCG(seed, worker))
			group.Go(func() {
				for time.Now().Before(until) && first.Load() == nil {
					if err := visit(s, random, 30); err != nil {
						first.CompareAndSwap(nil, &err)
					}
					visits.Add(1)
				}
			})
		}
		group.Wait()
		if err := first.Load(); err != nil {
			require.NoError(t, *err)
		}
		nothingLeft(t, s, before)
	}
	// The level after the first part is what all later parts must come back to.
	run(time.Now().Add(soakTime / 10))
	before = levelNow(t, s)
	for part := max(soakTime/5, time.Second/2); time.Now().Before(end); {
		run(time.Now().Add(part))
	}
	after := levelNow(t, s)
	reading := s.Counters(t)
	t.Logf("%d connections, %d requests; the heap held %d KiB and holds %d KiB", visits.Load(), reading.Total.Requests, before.heap>>10, after.heap>>10)
}
