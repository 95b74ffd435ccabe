package suite

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// patience is how long a test waits for what must happen at last. Only a server that hangs, or a
// machine that does, makes anybody wait that long.
const patience = harness.Patience

// Server is a server process under test. Its methods may be called by several tests at a time.
type Server struct {
	*harness.Server
	expectLogs bool // the test makes the server write to standard error
}

// Start starts a server on a free port, with an admin listener, and waits until it is ready. args are flags of
// shared/serve; the last one given counts. When the test ends the server must stop gracefully: exit code 0,
// nothing on standard error, no data race found.
func (p Program) Start(t T, args ...string) *Server {
	t.Helper()
	return p.start(t, harness.ServerCommand{Command: p.Command(args...)})
}

func (p Program) start(t T, c harness.ServerCommand) *Server {
	t.Helper()
	requireLinux(t)
	life := p.Life
	if life == nil {
		life = context.Background() // not the test's context, which ends before its cleanup
	}
	running, err := harness.StartServer(life, c)
	require.NoError(t, err)
	s := &Server{Server: running}
	t.Cleanup(func() { s.cleanUp(t) })
	return s
}

// cleanUp stops the server, if the test has not, and looks for what it left behind.
func (s *Server) cleanUp(t T) {
	t.Helper()
	if s.Alive() {
		if err := s.Server.Stop(); err != nil {
			t.Errorf("%v", err)
		}
	} else if s.ExitCode() != 0 {
		t.Errorf("%v", s.EndedError("badly"))
	}
	logs := s.Stderr()
	if strings.Contains(logs, "DATA RACE") || strings.Contains(logs, "fatal error") || logs != "" && !s.expectLogs {
		t.Errorf("the server wrote to standard error: %s", logs)
	}
}

// Signal sends a signal to the server itself.
func (s *Server) Signal(t T, signal os.Signal) {
	t.Helper()
	require.NoError(t, s.Server.Signal(signal))
}

// Pause stops all threads of the server, and waits until they stand still; Resume lets them go on.
func (s *Server) Pause(t T) {
	t.Helper()
	require.NoError(t, s.Server.Pause())
}

// Resume ends Pause.
func (s *Server) Resume(t T) {
	t.Helper()
	require.NoError(t, s.Server.Resume())
}

// Wait waits for the process to end, and requires exit code 0.
func (s *Server) Wait(t T) {
	t.Helper()
	if err := s.Process.Wait(patience); err != nil {
		s.Server.Signal(syscall.SIGQUIT) // a Go program prints its goroutines and ends
		s.Process.Wait(patience)
		require.NoError(t, err, "standard error: %s", s.Stderr())
	}
	require.Zero(t, s.ExitCode(), "standard error: %s", s.Stderr())
}

// Stop asks the server to stop, waits for it, and requires exit code 0.
func (s *Server) Stop(t T) {
	t.Helper()
	require.NoError(t, s.Server.Stop())
}

// Counters reads the server's counters. Each loop publishes them once per turn: what the last turn did may
// be missing; see Await.
func (s *Server) Counters(t T) harness.Reading {
	t.Helper()
	reading, err := s.Server.Counters(context.Background())
	require.NoError(t, err)
	return reading
}

// Await reads the counters until they are as wanted, and returns that reading.
func (s *Server) Await(t T, what string, wanted func(harness.Reading) bool) harness.Reading {
	t.Helper()
	reading, err := s.Server.Await(context.Background(), what, wanted)
	require.NoError(t, err)
	return reading
}

// AwaitRequests waits until so many requests have been answered, and for rest.
func (s *Server) AwaitRequests(t T, n uint64) harness.Reading {
	t.Helper()
	reading, err := s.Server.AwaitRequests(context.Background(), n)
	require.NoError(t, err)
	return reading
}

// AwaitConnections waits until exactly n connections are open.
func (s *Server) AwaitConnections(t T, n uint64) harness.Reading {
	t.Helper()
	reading, err := s.Server.AwaitConnections(context.Background(), n)
	require.NoError(t, err)
	return reading
}

// Collect makes the server collect its garbage.
func (s *Server) Collect(t T) {
	t.Helper()
	require.NoError(t, s.Server.Collect(context.Background()))
}

// files counts the descriptors that the server has open.
func (s *Server) files(t T) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(s.Ready.PID), "fd"))
	require.NoError(t, err)
	return len(entries)
}

// refuses runs a server that must not become ready: it prints nothing, says in one line what it is
// about, and ends with that exit code.
func refuses(t T, code int, about string, c harness.Command) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := harness.Run(ctx, c)
	require.NoError(t, err, "%q did not end: %s", c.Args, out.Stdout)
	require.Equal(t, code, out.Exit.ExitCode(), "%q: standard error: %s", c.Args, out.Stderr)
	require.Empty(t, out.Stdout, "%q", c.Args)
	require.Equal(t, 1, strings.Count(out.Stderr, "\n"), "%q: want one line, got %q", c.Args, out.Stderr)
	require.True(t, strings.HasSuffix(out.Stderr, "\n"), "%q: want one line, got %q", c.Args, out.Stderr)
	require.Contains(t, out.Stderr, about, "%q", c.Args)
}
