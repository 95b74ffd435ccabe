package suite

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// onTime requires that what was to happen after limit has just happened: not before, counted from a moment
// before which the server cannot have begun to count, and at last.
func onTime(t T, since time.Time, limit time.Duration) {
	t.Helper()
	elapsed := time.Since(since)
	require.GreaterOrEqual(t, elapsed, limit, "too early")
	require.Less(t, elapsed, limit+patience, "too late")
}

// drip sends text byte by byte, each so long after the one before, until the connection ends. It returns
// a function that waits for the last byte.
func (c *client) drip(text string, every time.Duration) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range len(text) {
			if c.Send(text[i:i+1]) != nil {
				return
			}
			time.Sleep(every)
		}
	}()
	return func() { <-done }
}

func idleTimeout(t T, p Program) {
	const limit = 300 * time.Millisecond
	s := p.Start(t, "-idle-timeout", limit.String())
	fresh := dial(t, s)
	fresh.expectEnd(t) // without a word
	onTime(t, fresh.Opened, limit)

	eventually(t, func() error {
		c := dial(t, s)
		sent := time.Now()
		if err := c.tryHello(); err != nil {
			return err
		}
		c.expectEnd(t)
		onTime(t, sent, limit)
		s.AwaitConnections(t, 0)
		return nil
	})
}

// eventually tries something that only a machine without a moment to spare can spoil for a good server: while
// either side is kept from running, deadlines pass. Once it must succeed; a bad server fails every time.
func eventually(t T, try func() error) {
	t.Helper()
	var err error
	for range 10 {
		if err = try(); err == nil {
			return
		}
	}
	require.NoError(t, err, "in ten attempts")
}

// Each request starts the time anew.
func idleTimeoutInUse(t T, p Program) {
	const limit = 600 * time.Millisecond
	s := p.Start(t, "-idle-timeout", limit.String())
	eventually(t, func() error {
		c, err := connect(s.Ready.Address)
		if err != nil {
			return err
		}
		defer c.Close()
		for range 4 {
			if err := c.tryHello(); err != nil {
				return fmt.Errorf("closed in use: %w", err)
			}
			time.Sleep(limit / 2)
		}
		return nil
	})
}

// A timer that was set for the end of a longer wait does not stand for the shorter one that follows.
func idleTimeoutAfterLongerWait(t T, p Program) {
	const limit = 300 * time.Millisecond
	s := p.Start(t, "-idle-timeout", limit.String(), "-head-timeout", "1h", "-body-timeout", "1h", "-body-total-timeout", "1h")
	for name, request := range map[string][2]string{
		"for a head": {helloRequest[:9], helloRequest[9:]},
		"for a body": {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na", "b"},
	} {
		t.Run(name, func(t T) {
			eventually(t, func() error {
				read := s.Counters(t).Total.ReadBytes
				c := dial(t, s)
				if err := c.Send(request[0]); err != nil {
					return err
				}
				// The timer has been set for the longer wait once the deadline of the shorter one is over.
				s.Await(t, "the first part to be read", func(r harness.Reading) bool {
					// A server that was not written to in time has closed.
					return (r.Total.ReadBytes > read || r.Total.Connections == 0) && time.Since(c.Opened) > 2*limit
				})
				sent := time.Now()
				if err := c.Send(request[1]); err != nil {
					return err
				}
				if err := c.read(Hello()); err != nil {
					return err
				}
				c.expectEnd(t)
				onTime(t, sent, limit)
				return nil
			})
		})
	}
}

func headTimeout(t T, p Program) {
	const limit = 300 * time.Millisecond
	s := p.Start(t, "-head-timeout", limit.String())
	const long = "GET / HTTP/1.1\r\nHost: a\r\nX: "
	tests := map[string]func(t T, c *client, sent time.Time){
		"a head that stalls": func(t T, c *client, sent time.Time) {
			c.send(t, "GET / HT")
		},
		"a head that stalls at its last byte": func(t T, c *client, sent time.Time) {
			c.send(t, helloRequest[:len(helloRequest)-1])
		},
		"a head that drips": func(t T, c *client, sent time.Time) {
			t.Cleanup(c.drip(long+strings.Repeat("a", 8000), 40*time.Millisecond))
			s.expectServed(t) // nobody else waits
		},
		"a head behind a request": func(t T, c *client, sent time.Time) {
			c.send(t, helloRequest+long)
			c.expect(t, Hello())
		},
	}
	for name, send := range tests {
		t.Run(name, func(t T) {
			t.Parallel()
			c := dial(t, s)
			c.hello(t)
			sent := time.Now()
			send(t, c, sent)
			c.expect(t, Refusal(408))
			onTime(t, sent, limit)
			c.expectEnd(t)
			c.Close()
		})
	}
}

func bodyTimeout(t T, p Program) {
	const limit = 300 * time.Millisecond
	s := p.Start(t, "-body-timeout", limit.String())
	const echo = "POST /api/echo HTTP/1.1\r\nHost: a\r\n"
	for name, request := range map[string]string{
		"no byte":                 echo + "Content-Length: 10\r\n\r\n",
		"some bytes":              echo + "Content-Length: 10\r\n\r\nabc",
		"all but one":             echo + "Content-Length: 10\r\n\r\nabcdefghi",
		"a large one":             echo + "Content-Length: 100000\r\n\r\n" + strings.Repeat("a", 50_000),
		"chunked, no byte":        echo + "Transfer-Encoding: chunked\r\n\r\n",
		"chunked, in the size":    echo + "Transfer-Encoding: chunked\r\n\r\n3",
		"chunked, in the data":    echo + "Transfer-Encoding: chunked\r\n\r\n3\r\na",
		"chunked, in the end":     echo + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
		"after an interim answer": echo + "Content-Length: 10\r\nExpect: 100-continue\r\n\r\n",
	} {
		t.Run(name, func(t T) {
			t.Parallel()
			c := dial(t, s)
			c.hello(t)
			sent := time.Now()
			c.send(t, request)
			if strings.Contains(request, "100-continue") {
				c.expect(t, Expected{Status: 100})
			}
			c.expect(t, Refusal(408))
			onTime(t, sent, limit)
			c.expectEnd(t)
		})
	}
}

// Any byte of the body starts the time anew.
func bodyTimeoutOfMovingBody(t T, p Program) {
	const limit = 600 * time.Millisecond
	s := p.Start(t, "-body-timeout", limit.String(), "-head-timeout", limit.String())
	eventually(t, func() error {
		c, err := connect(s.Ready.Address)
		if err != nil {
			return err
		}
		defer c.Close()
		c.Send("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")
		c.drip("abcde", limit/2)()
		return c.read(echoed("abcde"))
	})
}

func bodyTotalTimeout(t T, p Program) {
	const limit = 500 * time.Millisecond
	s := p.Start(t, "-body-total-timeout", limit.String())
	for name, framing := range map[string]string{
		"declared": "Content-Length: 10000\r\n\r\n",
		"chunked":  "Transfer-Encoding: chunked\r\n\r\n2710\r\n",
	} {
		t.Run(name, func(t T) {
			t.Parallel()
			c := dial(t, s)
			c.hello(t)
			sent := time.Now()
			c.send(t, "POST /api/echo HTTP/1.1\r\nHost: a\r\n"+framing)
			t.Cleanup(c.drip(strings.Repeat("a", 10_000), 40*time.Millisecond))
			c.expect(t, Refusal(408))
			onTime(t, sent, limit)
			c.expectEnd(t)
			c.Close()
		})
	}
}

// A client that asks for 256 MiB and reads nothing costs a bounded piece of memory for a bounded time.
func writeTimeout(t T, p Program) {
	const limit = 500 * time.Millisecond
	s := p.Start(t, "-write-timeout", limit.String())
	c := dial(t, s)
	c.send(t, strings.Repeat("GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n", 16))
	// The beginning of an answer, so that the server is at it.
	require.NoError(t, c.AwaitFirst())
	s.expectServed(t)
	reading := s.Counters(t)
	require.Less(t, reading.Process.HeapBytes, int64(128<<20))
	s.AwaitConnections(t, 0)
	onTime(t, c.Opened, limit)
	// What was on the way arrives, the rest does not.
	n, _ := io.Copy(io.Discard, c.Reader)
	require.Less(t, n, int64(256<<20))
	s.expectServed(t)
}

// A client that takes its bytes slowly, but takes them, gets all of them.
func writeTimeoutOfSlowReader(t T, p Program) {
	const limit = time.Second / 2
	s := p.Start(t, "-write-timeout", limit.String())
	eventually(t, func() error {
		c, err := connect(s.Ready.Address)
		if err != nil {
			return err
		}
		defer c.Close()
		c.TCP.SetReadBuffer(128 << 10) // or this side's kernel would take most of it at once
		c.Send("GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n")
		part := make([]byte, 512<<10)
		for total := 0; total < maxAnswerBody; {
			time.Sleep(limit / 16)
			n, err := io.ReadFull(c.Reader, part[:min(len(part), maxAnswerBody-total)])
			total += n
			if err != nil {
				return fmt.Errorf("cut off after %d bytes: %w", total, err)
			}
		}
		return nil
	})
}

// A client that takes a little, for ever, does not keep its answer for ever: while the server has still to send, or when the
// kernel has all of it and the server lingers.
func writeTotalTimeout(t T, p Program) {
	const limit = time.Second
	s := p.Start(t, "-write-total-timeout", limit.String(), "-linger-timeout", "1h")
	started := time.Now()
	for _, request := range []string{
		"GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		strings.Repeat("GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n", 16),
		"GET /bytes/1500000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nx",
	} {
		c := dial(t, s)
		c.send(t, request)
		ended := make(chan struct{})
		t.Cleanup(func() {
			c.Close()
			<-ended
		})
		go func() {
			defer close(ended)
			for {
				if _, err := io.CopyN(io.Discard, c.Reader, 32<<10); err != nil {
					return
				}
				time.Sleep(limit / 6)
			}
		}()
	}
	s.Await(t, "all to be asked for", func(r harness.Reading) bool { return r.Total.Requests >= 4 })
	s.AwaitConnections(t, 0)
	onTime(t, started, limit)
}

// A client that has said of its request that it is the last, and has sent nothing behind it, is done with when it has its answer: no
// shutdown, no descriptor that waits for it to close too.
func closeAtOnce(t T, p Program) {
	s := p.Start(t, "-linger-timeout", "1h", "-idle-timeout", "1h")
	head := closing(Hello())
	head.Bodiless = true
	const close = "Host: a\r\nConnection: close\r\n"
	for name, one := range map[string]struct {
		send    string
		answers []Expected
	}{
		"close":                  {"GET / HTTP/1.1\r\n" + close + "\r\n", []Expected{closing(Hello())}},
		"HTTP/1.0":               {"GET / HTTP/1.0\r\n\r\n", []Expected{closing(Hello())}},
		"head":                   {"HEAD / HTTP/1.1\r\n" + close + "\r\n", []Expected{head}},
		"behind another":         {helloRequest + "GET / HTTP/1.1\r\n" + close + "\r\n", []Expected{Hello(), closing(Hello())}},
		"behind many":            {strings.Repeat(helloRequest, 200) + "GET / HTTP/1.0\r\n\r\n", append(repeated(Hello(), 200), closing(Hello()))},
		"with a body":            {"POST /api/echo HTTP/1.1\r\n" + close + "Content-Length: 3\r\n\r\nabc", []Expected{closing(echoed("abc"))}},
		"with a chunked body":    {"POST /api/echo HTTP/1.1\r\n" + close + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", []Expected{closing(echoed("abc"))}},
		"no such path":           {"GET /nowhere HTTP/1.1\r\n" + close + "\r\n", []Expected{closing(standardError(404))}},
		"more than sockets hold": {"GET /bytes/16777216 HTTP/1.1\r\n" + close + "\r\n", []Expected{closing(someBytes(maxAnswerBody))}},
	} {
		before := s.Counters(t).Total.Shutdowns
		c := dial(t, s)
		c.send(t, one.send)
		for _, want := range one.answers {
			require.NoError(t, c.read(want), name)
		}
		// This side stays open: the server does not wait for it.
		s.AwaitConnections(t, 0)
		require.Equal(t, before, s.Counters(t).Total.Shutdowns, name)
		require.NoError(t, c.ReadEnd(), name)
		c.Close()
	}

	// In all other cases the client may be sending still.
	for name, one := range map[string]struct {
		send   string
		answer Expected
	}{
		"something behind it": {"GET / HTTP/1.1\r\n" + close + "\r\nG", closing(Hello())},
		"a fault":             {"GET /% HTTP/1.1\r\n" + close + "\r\n", Refusal(400)},
		"a fault of HTTP/1.0": {"GET /% HTTP/1.0\r\n\r\n", Refusal(400)},
		"a body refused":      {"POST /api/echo HTTP/1.1\r\n" + close + "Content-Length: 10000000\r\n\r\n", Refusal(413)},
		"an expectation":      {"POST /api/echo HTTP/1.1\r\n" + close + "Content-Length: 3\r\nExpect: x\r\n\r\n", Refusal(417)},
	} {
		before := s.Counters(t).Total.Shutdowns
		c := dial(t, s)
		c.send(t, one.send)
		require.NoError(t, c.read(one.answer), name)
		require.NoError(t, c.ReadEnd(), name)
		s.Await(t, "the server to say that no more will come", func(r harness.Reading) bool { return r.Total.Shutdowns == before+1 })
		require.EqualValues(t, 1, s.Counters(t).Total.Connections, name)
		c.Close()
		s.AwaitConnections(t, 0)
	}
}

// An upload that is refused sees its answer, though the client does not look until it has sent a lot.
func lingeringClose(t T, p Program) {
	s := p.Start(t, "-linger-timeout", "1h") // what ends it here is the client
	upload := fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", 10<<20)

	c := dial(t, s)
	c.send(t, upload+strings.Repeat("a", 200<<10))
	c.expect(t, Refusal(413))
	c.expectEnd(t)
	c.Close()

	// The answer first, then the rest: a server that has closed would reset.
	c = dial(t, s)
	c.send(t, upload)
	c.expect(t, Refusal(413))
	for range 50 {
		c.send(t, strings.Repeat("a", 4<<10))
	}
	c.expectEnd(t)
	c.Close()

	// All of it, in one go.
	e := exchange{pieces: [][]byte{[]byte(upload), make([]byte, 10<<20)}, answers: []Expected{Refusal(413)}, closed: true}
	require.NoError(t, e.run(s.Ready.Address))

	// The same after an answer that closes because the client asked for it.
	c = dial(t, s)
	c.send(t, lastHello+strings.Repeat("a", 200<<10))
	c.expect(t, closing(Hello()))
	c.expectEnd(t)

	// Whoever has had the answer and closes is done with at once.
	c.Close()
	s.AwaitConnections(t, 0)
}

func lingerTimeout(t T, p Program) {
	const limit = 300 * time.Millisecond
	s := p.Start(t, "-linger-timeout", limit.String())
	c := dial(t, s)
	c.hello(t)
	sent := time.Now()
	c.send(t, "GET /% HTTP/1.1\r\n")
	c.expect(t, Refusal(400))
	c.expectEnd(t)
	s.AwaitConnections(t, 0) // though this side never closes
	onTime(t, sent, limit)
}

// The timer that brought the answer has fired, and has to be set anew for what comes after it. Nothing here runs out
// while this side is kept from running: the one with a place is idle until the other has been refused.
func lingerAfterTimeout(t T, p Program) {
	s := p.Start(t, "-head-timeout", "100ms", "-linger-timeout", "300ms", "-max-conns", "1")
	c := dial(t, s)
	c.hello(t)
	silent := dial(t, s) // one too many, and without a word
	silent.expect(t, Refusal(503))
	silent.expectEnd(t)
	c.send(t, "GET / HT")
	c.expect(t, Refusal(408))
	c.expectEnd(t)
	s.AwaitConnections(t, 0) // though this side never closes
}

func lingerLimit(t T, p Program) {
	s := p.Start(t, "-linger-timeout", "1h")
	c := dial(t, s)
	c.send(t, "GET /% HTTP/1.1\r\n")
	c.expect(t, Refusal(400))
	c.expectEnd(t)
	block := make([]byte, 16<<10)
	sent := 0
	for ; sent < 64<<20; sent += len(block) {
		if err := c.Write(block); err != nil {
			require.True(t, ended(err), "%v", err)
			break
		}
	}
	require.GreaterOrEqual(t, sent, 256<<10, "closed too early")
	require.Less(t, sent, 64<<20, "a client may go on for ever")
	s.AwaitConnections(t, 0)
}
