package suite

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// ownHost is an address of the loopback that no other process of the suite uses: the kernel never gives a port
// there to a client, so that a port stays free between two servers.
func ownHost(last int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 1+pid>>8&0x7f, pid&0xff, last)
}

func stopIdle(t T, p Program) {
	s := p.Start(t)
	var open []*client
	for range 5 {
		used, fresh := dial(t, s), dial(t, s)
		used.hello(t)
		open = append(open, used, fresh)
	}
	s.Stop(t)
	for _, c := range open {
		c.expectEnd(t)
	}
	_, err := connect(s.Ready.Address)
	require.Error(t, err, "somebody still listens")
}

// stopWith stops a server whose clients see the end of their connections and close them too.
func (s *Server) stopWith(t T, open []*client) {
	t.Helper()
	s.Signal(t, syscall.SIGTERM)
	for _, c := range open {
		c.expectEnd(t)
		c.Close()
	}
	s.Wait(t)
}

func stopByInterrupt(t T, p Program) {
	s := p.Start(t)
	c := dial(t, s)
	c.hello(t)
	s.Signal(t, os.Interrupt)
	s.Wait(t)
	c.expectEnd(t)
}

// Requests, and connections with one, that had arrived before the signal are served. The server is
// made to sleep, so that it finds all of it when it wakes up: more connections than it accepts in one go.
func stopWithRequests(t T, p Program) {
	s := p.Start(t, "-workers", "1", "-grace", patience.String())
	var open []*client
	for range 10 {
		c := dial(t, s)
		c.hello(t)
		open = append(open, c)
	}
	requests := func(n int) int {
		if n < 5 {
			return 300 // more than are answered in one turn
		}
		return 5
	}
	s.Pause(t)
	for range queueLength(t) {
		open = append(open, dial(t, s))
	}
	for n, c := range open {
		c.send(t, strings.Repeat(helloRequest, requests(n)))
	}
	s.Signal(t, syscall.SIGTERM)
	s.Resume(t)
	for n, c := range open {
		for i := range requests(n) {
			answer, err := c.answer(false)
			require.NoError(t, err, "connection %d, request %d", n, i)
			want := Hello()
			if i == requests(n)-1 && answer.Field("Connection") != "" {
				want.Connection = "close" // unless it was answered before the signal was seen
			}
			require.NoError(t, want.Check(answer))
		}
		c.expectEnd(t)
		c.Close()
	}
	s.Wait(t)
}

// queueLength is how many connections may wait to be accepted here: many hundreds if this process has the
// descriptors and the kernel the room, see listen(2).
func queueLength(t T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	require.NoError(t, err)
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return min(700, most/2, int(min(fileLimit(), 1<<20))/4)
}

// A request that arrived before the signal, behind one whose answer takes its time, is the last: its
// answer says so.
func stopBehindLongAnswer(t T, p Program) {
	s := p.Start(t, "-grace", patience.String(), "-write-timeout", "1h")
	c := dial(t, s)
	c.send(t, "GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n"+helloRequest)
	require.NoError(t, c.AwaitFirst())
	s.Signal(t, syscall.SIGTERM)
	s.awaitNoListener(t)
	c.expect(t, someBytes(maxAnswerBody))
	last := Hello()
	last.Connection = "close"
	c.expect(t, last)
	c.expectEnd(t)
	s.Wait(t)
}

// The client's end of input behind its last request does not change the answer: it says that it is the last.
func stopBeforeEndOfInput(t T, p Program) {
	const echo = "POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n"
	for name, one := range map[string]struct {
		before, after string
		answers       []Expected
	}{
		"behind a long answer": {"GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n", helloRequest, []Expected{someBytes(maxAnswerBody), Hello()}},
		"in a head":            {helloRequest[:9], helloRequest[9:], []Expected{Hello()}},
		"in a body":            {echo + "a", "bc", []Expected{echoed("abc")}},
		"several requests":     {helloRequest[:9], helloRequest[9:] + strings.Repeat(helloRequest, 299), repeated(Hello(), 300)},
	} {
		t.Run(name, func(t T) {
			t.Parallel()
			s := p.Start(t, "-workers", "1", "-grace", patience.String(), "-head-timeout", "1h", "-write-timeout", "1h")
			c := dial(t, s)
			c.send(t, one.before)
			s.Await(t, "the first part to be read", func(r harness.Reading) bool { return r.Total.ReadBytes >= uint64(len(one.before)) })
			resting := dial(t, s)
			resting.hello(t)
			s.Signal(t, syscall.SIGTERM)
			resting.expectEnd(t) // its loop drains, and has looked at all connections, of which this is the last
			// Both are there when the server looks.
			s.Pause(t)
			c.send(t, one.after)
			require.NoError(t, c.CloseWrite())
			s.Resume(t)
			for i, want := range one.answers {
				if i == len(one.answers)-1 {
					want.Connection = "close"
				}
				c.expect(t, want)
			}
			c.expectEnd(t)
			s.Wait(t)
		})
	}
}

// awaitNoListener waits until nobody listens any longer at the server's address: it has begun to stop.
func (s *Server) awaitNoListener(t T) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		c, err := connect(s.Ready.Address)
		if err != nil {
			return
		}
		c.Close()
		require.True(t, time.Now().Before(end), "it still listens")
	}
}

func repeated(e Expected, n int) []Expected { return slices.Repeat([]Expected{e}, n) }

// A client that takes nothing holds the end up for the grace period and not longer.
func stopWithinGrace(t T, p Program) {
	const grace = 300 * time.Millisecond
	s := p.Start(t, "-grace", grace.String())
	c := dial(t, s)
	c.send(t, "GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n")
	require.NoError(t, c.AwaitFirst())
	sent := time.Now()
	s.Stop(t)
	onTime(t, sent, grace)
	n, _ := io.Copy(io.Discard, c.Reader)
	require.Less(t, n, int64(maxAnswerBody))
}

func startAgain(t T, p Program) {
	s := p.Start(t, "-addr", ownHost(1)+":0")
	for range 3 {
		// Connections that the server has closed first rest in TIME_WAIT on its port.
		var open []*client
		for range 5 {
			c := dial(t, s)
			c.hello(t)
			open = append(open, c)
		}
		s.stopWith(t, open)
		s = p.Start(t, "-addr", s.Ready.Address)
		s.expectServed(t)
	}
}

func portTaken(t T, p Program) {
	refused := func(address string, args ...string) {
		t.Helper()
		refuses(t, 1, address, p.Command(append([]string{"-addr", address}, args...)...))
	}

	s := p.Start(t)
	refused(s.Ready.Address)
	refused(s.Ready.Address, "-workers", "1")
	refused(s.Ready.Address, "-acceptor")
	s.expectServed(t)

	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer plain.Close()
	refused(plain.Addr().String())

	// One that would share: without a claim the server would join it, and get some of its connections.
	shared, err := listenShared("127.0.0.1:0")
	require.NoError(t, err)
	defer shared.Close()
	refused(shared.Addr().String())
	refused(shared.Addr().String(), "-acceptor")
}

func badFlags(t T, p Program) {
	for _, one := range []struct{ args, about string }{
		{"-nonsense", "nonsense"},
		{"-nonsense=3", "nonsense"},
		{"-workers many", "workers"},
		{"-workers=-1", "workers"},
		{"-idle-timeout soon", "idle-timeout"},
		{"-head-timeout -1s", "head-timeout"},
		{"-max-body much", "max-body"},
		{"-max-conns=-1", "max-conns"},
		{"-pin=perhaps", "pin"},
		{"-grace", "grace"},
		{"stray", "stray"},
	} {
		refuses(t, 2, one.about, p.Command(strings.Fields(one.args)...))
	}
}
