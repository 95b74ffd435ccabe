package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/suite"
)

// asServer makes the test binary serve, in place of running tests (suite.Main).
const asServer = "QPS_LADDER_SUITE_SERVE=1"

// runToEnd runs the test binary as a server that is not expected to become ready. path is the binary, or a link to it.
func runToEnd(t testing.TB, path string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, path, args...)
	c.Env = append(os.Environ(), asServer)
	var out, logs bytes.Buffer
	c.Stdout, c.Stderr = &out, &logs
	if err := c.Run(); err != nil {
		var exit *exec.ExitError
		require.True(t, errors.As(err, &exit), "%v", err)
	}
	require.NoError(t, ctx.Err(), "the process did not end; standard output: %s", out.String())
	return c.ProcessState.ExitCode(), out.String(), logs.String()
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

// untilEnd asks for / again and again, until the connection ends. It is an error if that is inside an answer, or a reset, or if
// anything comes after an answer that says it is the last.
func (c *client) untilEnd() error {
	for {
		if err := c.send(hello); err != nil {
			return err
		}
		answer, err := suite.ReadAnswer(c.reader, false)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		want := suite.Hello()
		want.Connection = answer.Fields["Connection"]
		if err := want.Check(answer); err != nil {
			return err
		}
		if want.Connection == "close" {
			return c.end()
		}
	}
}

// inTime is how soon a newcomer must have asked to be answered by a server that goes away beside its successor. The servers
// give them twice as long.
const inTime = 100 * time.Millisecond

// newcomers connect, ask once and go, until stop. Whoever gets a byte gets a whole answer. It returns how many were
// answered, and how many had their connection ended or reset before any byte though they had asked in time.
func newcomers(address string, clients int, stop <-chan struct{}) (wait func() (answered, unanswered int64, err error)) {
	var good, bad atomic.Int64
	var failure atomic.Pointer[error]
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				began := time.Now()
				c, err := connect(address)
				if err != nil {
					continue // nobody listens
				}
				err = c.send(lastHello)
				asked := time.Since(began)
				if err == nil {
					err = c.expect(closing(suite.Hello()))
				}
				c.Close()
				switch {
				case err == nil:
					good.Add(1)
				case errors.Is(err, io.ErrUnexpectedEOF), !gone(err):
					failure.CompareAndSwap(nil, &err)
				case asked < inTime:
					bad.Add(1)
				}
			}
		})
	}
	return func() (int64, int64, error) {
		group.Wait()
		if err := failure.Load(); err != nil {
			return 0, 0, *err
		}
		return good.Load(), bad.Load(), nil
	}
}

// A stop while clients ask without a rest, and others come: no answer is cut off, no connection that was served is reset.
func stopUnderLoad(t *testing.T) {
	for _, flags := range []string{"", "-workers 1", "-workers 3 -acceptor"} {
		// Time enough for clients on a busy machine to see the end.
		s := suite.Start(t, strings.Fields(flags+" -linger-timeout 10s -grace 20s")...)
		const clients = 16
		stop := make(chan struct{})
		wait := newcomers(s.Addr, 4, stop)
		failures := make([]error, clients)
		var group sync.WaitGroup
		for i := range failures {
			c := dial(t, s)
			require.NoError(t, c.hello())
			group.Go(func() {
				failures[i] = c.untilEnd()
				c.Close()
			})
		}
		s.Await(t, "some load", func(r suite.Reading) bool { return r.Total["requests"] > 500 })
		s.Stop(t)
		close(stop)
		group.Wait()
		for _, err := range failures {
			require.NoError(t, err)
		}
		answered, unanswered, err := wait()
		require.NoError(t, err)
		t.Logf("%d newcomers answered, %d not", answered, unanswered)
	}
}

// Requests that lie in the kernel when the server is told to stop, behind answers that their client has not taken yet, are
// answered too, the last one with Connection: close.
func stopWithInputUnread(t *testing.T) {
	const requests = 2000 // more than a read buffer holds
	s := suite.Start(t, "-grace", "30s")
	c := dial(t, s)
	require.NoError(t, c.send(largest))
	_, err := c.reader.Peek(1)
	require.NoError(t, err)
	// The server is in the middle of an answer, and reads nothing more.
	s.Await(t, "the first answer", func(r suite.Reading) bool { return r.Total["requests"] == 1 })
	require.NoError(t, c.send(strings.Repeat(hello, requests)))
	s.Signal(t, syscall.SIGTERM)
	awaitRefusal(t, s.Addr)
	require.NoError(t, c.expect(someBytes(16<<20)))
	for i := range requests {
		want := suite.Hello()
		if i == requests-1 {
			want = closing(want)
		}
		require.NoError(t, c.expect(want), "answer %d", i)
	}
	require.NoError(t, c.end())
	c.Close()
	require.Equal(t, 0, s.Wait(t))
}

// awaitRefusal waits until nobody listens.
func awaitRefusal(t testing.TB, address string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		c, err := connect(address)
		if err != nil {
			return
		}
		c.Close()
		require.True(t, time.Now().Before(end), "it still listens")
	}
}

// ownHost is an address on which the kernel gives no port to a client, so that a port stays free between two servers.
func ownHost(last int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d:0", 129+pid>>8&0x3f, pid&0xff, last)
}

// One server after the other on one port, at once, while clients come without a rest.
func restartUnderLoad(t *testing.T) {
	s := suite.Start(t, "-addr", ownHost(1), "-grace", "20s")
	stop := make(chan struct{})
	wait := newcomers(s.Addr, 4, stop)
	for range 3 {
		s.Await(t, "some load", func(r suite.Reading) bool { return r.Total["requests"] > 100 })
		s.Stop(t)
		s = suite.Start(t, "-addr", s.Addr, "-grace", "20s")
	}
	close(stop)
	answered, unanswered, err := wait()
	require.NoError(t, err)
	t.Logf("%d newcomers answered, %d not", answered, unanswered)
	require.Positive(t, answered)
}

// Two servers share the port, and the old one stops: whoever it has accepted, or has in its queues, is served.
func overlap(t *testing.T) {
	if stage(t) == 0 {
		code, stdout, stderr := runToEnd(t, self(t), "-addr", "127.0.0.1:0", "-overlap")
		require.Equal(t, 1, code)
		require.Empty(t, stdout)
		requireOneLine(t, stderr, "-overlap")
		return
	}
	old := suite.Start(t, "-addr", ownHost(2), "-overlap", "-linger-timeout", "100ms", "-grace", "20s")
	stop := make(chan struct{})
	wait := newcomers(old.Addr, 2, stop)
	old.Await(t, "some load", func(r suite.Reading) bool { return r.Total["requests"] > 100 })
	young := suite.Start(t, "-addr", old.Addr, "-overlap")
	young.Await(t, "some load", func(r suite.Reading) bool { return r.Total["requests"] > 100 })
	close(stop)
	answered, unanswered, err := wait()
	require.NoError(t, err)
	require.Zero(t, unanswered, "of %d", answered+unanswered)

	// Half of these connections wait in the queues of the old one, which sleeps: when it wakes up it has been told to stop.
	old.Signal(t, syscall.SIGSTOP)
	awaitSleep(t, old)
	var open []*client
	for range 100 {
		c := dial(t, old)
		require.NoError(t, c.send(hello))
		open = append(open, c)
	}
	old.Signal(t, syscall.SIGTERM)
	old.Signal(t, syscall.SIGCONT)
	for _, c := range open {
		answer, err := suite.ReadAnswer(c.reader, false)
		require.NoError(t, err)
		want := suite.Hello()
		want.Connection = answer.Fields["Connection"] // it depends on whether the old one had seen the signal
		require.NoError(t, want.Check(answer))
	}
	require.Equal(t, 0, old.Wait(t))
	fromOld := 0
	for _, c := range open {
		if err := c.hello(); err != nil {
			require.True(t, gone(err), "%v", err)
			fromOld++
		}
		c.Close()
	}
	t.Logf("%d answers before both ran; then %d of %d from the old server", answered, fromOld, len(open))
	require.Positive(t, fromOld)
	require.Less(t, fromOld, len(open))
	for range 20 {
		served(t, young)
	}
}

// Servers follow each other, each beside the one before, while clients come without a rest: all of these are answered.
func overlapUnderLoad(t *testing.T) {
	if stage(t) == 0 {
		return // it refuses -overlap
	}
	// The last has more listeners than the one before it. With fewer, a few connections may be reset.
	for i, flags := range [][]string{
		{"-workers 2", "-workers 2", "-workers 2", "-workers 2"},
		{"-workers 2 -acceptor", "-workers 1", "-workers 3", "-workers 4"},
	} {
		start := func(address, flags string) *suite.Server {
			return suite.Start(t, append(strings.Fields(flags), "-addr", address, "-overlap", "-grace", "20s")...)
		}
		s := start(ownHost(3+i), flags[0])
		stop := make(chan struct{})
		wait := newcomers(s.Addr, 16, stop)
		load := func() {
			s.Await(t, "some load", func(r suite.Reading) bool { return r.Total["requests"] > 500 })
		}
		load()
		for _, flags := range flags[1:] {
			young := start(s.Addr, flags)
			s.Stop(t)
			s = young
			load()
		}
		close(stop)
		answered, unanswered, err := wait()
		require.NoError(t, err)
		require.Zero(t, unanswered, "of %d", answered+unanswered)
		s.Stop(t)
	}
}

// awaitSleep waits until the process is stopped, see proc_pid_stat(5).
func awaitSleep(t testing.TB, s *suite.Server) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID))
		require.NoError(t, err)
		if _, rest, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(rest, "T") {
			return
		}
		require.True(t, time.Now().Before(end), "%s", stat)
	}
}

// requireOneLine requires a message for a person: one line, about that.
func requireOneLine(t testing.TB, text, about string) {
	t.Helper()
	require.Equal(t, 1, strings.Count(text, "\n"), "%q", text)
	require.True(t, strings.HasSuffix(text, "\n"), "%q", text)
	require.Contains(t, text, about)
}
