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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ownHost is an address of the loopback that no other process of the suite uses: the kernel never gives a port
// there to a client, so that a port stays free between two servers.
func ownHost(last int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 1+pid>>8&0x7f, pid&0xff, last)
}

func stopIdle(t *testing.T) {
	s := Start(t)
	var open []*connection
	for range 5 {
		used, fresh := dial(t, s.Addr), dial(t, s.Addr)
		used.hello(t)
		open = append(open, used, fresh)
	}
	s.Stop(t)
	for _, c := range open {
		c.expectEnd(t)
	}
	require.False(t, accepts(s.Addr), "somebody still listens")
}

// stopWith stops a server whose clients see the end of their connections and close them too.
func (s *Server) stopWith(t testing.TB, open []*connection) {
	t.Helper()
	s.Signal(t, syscall.SIGTERM)
	for _, c := range open {
		c.expectEnd(t)
		c.close()
	}
	require.Equal(t, 0, s.Wait(t), "standard error: %s", s.Stderr())
}

func accepts(address string) bool {
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func stopByInterrupt(t *testing.T) {
	s := Start(t)
	c := dial(t, s.Addr)
	c.hello(t)
	s.Signal(t, os.Interrupt)
	require.Equal(t, 0, s.Wait(t))
	c.expectEnd(t)
}

// Requests, and connections with one, that had arrived before the signal are served. The server is
// made to sleep, so that it finds all of it when it wakes up: more connections than it accepts in one go.
func stopWithRequests(t *testing.T) {
	s := Start(t, "-workers", "1", "-grace", patience.String())
	var open []*connection
	for range 10 {
		c := dial(t, s.Addr)
		c.hello(t)
		open = append(open, c)
	}
	requests := func(n int) int {
		if n < 5 {
			return 300 // more than are answered in one turn
		}
		return 5
	}
	s.Signal(t, signalPause)
	s.awaitPaused(t)
	for range queueLength(t) {
		open = append(open, dial(t, s.Addr))
	}
	for n, c := range open {
		c.send(t, strings.Repeat(helloRequest, requests(n)))
	}
	s.Signal(t, syscall.SIGTERM)
	s.Signal(t, signalResume)
	for n, c := range open {
		for i := range requests(n) {
			answer, err := ReadAnswer(c.reader, false)
			require.NoError(t, err, "connection %d, request %d", n, i)
			want := Hello()
			if i == requests(n)-1 && answer.Fields["Connection"] != "" {
				want.Connection = "close" // unless it was answered before the signal was seen
			}
			require.NoError(t, want.Check(answer))
		}
		c.expectEnd(t)
		c.close()
	}
	require.Equal(t, 0, s.Wait(t))
}

// queueLength is how many connections may wait to be accepted here: many hundreds if this process has the
// descriptors and the kernel the room, see listen(2).
func queueLength(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	require.NoError(t, err)
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return min(700, most/2, int(min(fileLimit(), 1<<20))/4)
}

// awaitPaused waits until the kernel shows the process as stopped, see proc_pid_stat(5).
func (s *Server) awaitPaused(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID))
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(stat), ") ")
		if strings.HasPrefix(rest, "T") {
			return
		}
		require.True(t, time.Now().Before(end), "the process does not stop: %s", stat)
	}
}

// A request that arrived before the signal, behind one whose answer takes its time, is the last: its
// answer says so.
func stopBehindLongAnswer(t *testing.T) {
	s := Start(t, "-grace", patience.String())
	c := dial(t, s.Addr)
	c.send(t, "GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n"+helloRequest)
	_, err := c.reader.Peek(1)
	require.NoError(t, err)
	s.Signal(t, syscall.SIGTERM)
	s.awaitDeaf(t)
	c.expect(t, someBytes(maxAnswerBody))
	last := Hello()
	last.Connection = "close"
	c.expect(t, last)
	c.expectEnd(t)
	require.Equal(t, 0, s.Wait(t))
}

// The client's end of input behind its last request does not change the answer: it says that it is the last.
func stopBeforeEndOfInput(t *testing.T) {
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, "-grace", patience.String())
			c := dial(t, s.Addr)
			c.send(t, one.before)
			s.Await(t, "the first part to be read", func(r Reading) bool { return r.Total["read_bytes"] >= int64(len(one.before)) })
			s.Signal(t, syscall.SIGTERM)
			s.awaitDeaf(t)
			// Both are there when the server looks.
			s.Signal(t, signalPause)
			s.awaitPaused(t)
			c.send(t, one.after)
			require.NoError(t, c.net.CloseWrite())
			s.Signal(t, signalResume)
			for i, want := range one.answers {
				if i == len(one.answers)-1 {
					want.Connection = "close"
				}
				c.expect(t, want)
			}
			c.expectEnd(t)
			require.Equal(t, 0, s.Wait(t))
		})
	}
}

func repeated(e Expected, n int) []Expected { return slices.Repeat([]Expected{e}, n) }

// awaitDeaf waits until nobody listens any longer at the server's address: it has begun to stop.
func (s *Server) awaitDeaf(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(patience); accepts(s.Addr); time.Sleep(2 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "it still listens")
	}
}

// A client that takes nothing holds the end up for the grace period and not longer.
func stopWithinGrace(t *testing.T) {
	const grace = 300 * time.Millisecond
	s := Start(t, "-grace", grace.String())
	c := dial(t, s.Addr)
	c.send(t, "GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n")
	_, err := c.reader.Peek(1)
	require.NoError(t, err)
	sent := time.Now()
	s.Stop(t)
	onTime(t, sent, grace)
	n, _ := io.Copy(io.Discard, c.reader)
	require.Less(t, n, int64(maxAnswerBody))
}

func startAgain(t *testing.T) {
	s := Start(t, "-addr", ownHost(1)+":0")
	for range 3 {
		// Connections that the server has closed first rest in TIME_WAIT on its port.
		var open []*connection
		for range 5 {
			c := dial(t, s.Addr)
			c.hello(t)
			open = append(open, c)
		}
		s.stopWith(t, open)
		s = Start(t, "-addr", s.Addr)
		s.expectServed(t)
	}
}

func portTaken(t *testing.T) {
	refused := func(address string, args ...string) {
		t.Helper()
		code, stdout, stderr := runToEnd(t, append([]string{"-addr", address}, args...)...)
		require.Equal(t, 1, code, "standard error: %s", stderr)
		require.Empty(t, stdout)
		requireOneLine(t, stderr, address)
	}

	s := Start(t)
	refused(s.Addr)
	refused(s.Addr, "-workers", "1")
	refused(s.Addr, "-acceptor")
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

// requireOneLine requires a message for a person: one line, which names what it is about.
func requireOneLine(t testing.TB, text, about string) {
	t.Helper()
	require.Equal(t, 1, strings.Count(text, "\n"), "want one line, got %q", text)
	require.True(t, strings.HasSuffix(text, "\n"), "want one line, got %q", text)
	require.Contains(t, text, about)
}

func badFlags(t *testing.T) {
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
		code, stdout, stderr := runToEnd(t, strings.Fields(one.args)...)
		require.Equal(t, 2, code, "%s: standard error: %s", one.args, stderr)
		require.Empty(t, stdout, one.args)
		requireOneLine(t, stderr, one.about)
	}
}

// Overlap tests a restart beside the old process (-overlap), which stages with a listener per loop can do.
func Overlap(t *testing.T) {
	requireLinux(t)
	t.Parallel()
	for i, flags := range [][]string{{"-overlap"}, {"-overlap", "-acceptor"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			overlap(t, ownHost(2+i), flags)
		})
	}
}

func overlap(t *testing.T, host string, flags []string) {
	old := Start(t, append(flags, "-addr", host+":0")...)
	var open []*connection
	for range 10 {
		c := dial(t, old.Addr)
		c.hello(t)
		open = append(open, c)
	}
	young := Start(t, append(flags, "-addr", old.Addr)...)
	require.Equal(t, old.Addr, young.Addr)
	for range 50 {
		c := dial(t, old.Addr)
		c.hello(t)
		open = append(open, c)
	}
	code, _, stderr := runToEnd(t, "-addr", old.Addr)
	require.Equal(t, 1, code, "without -overlap the port is taken")
	requireOneLine(t, stderr, old.Addr)

	old.Stop(t)
	left := 0
	for _, c := range open {
		// The old one's connections have ended without a word, the young one's live on.
		if err := c.tryHello(); err == nil {
			left++
		} else {
			require.True(t, gone(err), "%v", err)
		}
	}
	require.Less(t, left, len(open))
	require.EqualValues(t, left, young.AwaitConnections(t, int64(left)).Total["connections"])
	for range 50 {
		young.expectServed(t)
	}
}
