package suite

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for what must happen at last. Only a server that hangs, or a
// machine that does, makes anybody wait that long.
const patience = 20 * time.Second

// Server is a server process under test. Its methods may be called by several tests at a time.
type Server struct {
	// Addr is where it serves, AdminAddr where its admin listener is, or "".
	Addr, AdminAddr string
	// PID is the server's own, which is not that of the process started if a tool like strace runs it.
	PID int
	// Ready has the ready line's words by name: stage, workers, gomaxprocs and so on.
	Ready map[string]string

	command    *exec.Cmd
	stderr     *output
	ended      chan struct{}
	exitCode   int
	admin      *http.Client
	expectLogs bool // the test makes the server write to standard error
	expectExit int  // the code that it must end with
}

// output collects what a process writes.
type output struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}

// Start starts the test binary again as a server on a free port, with an admin listener, and waits until it
// is ready. args are flags of shared/serve; the last one given counts. When the test ends the server must stop
// gracefully: exit code 0, nothing on standard error, no data race found. Start must be called from
// a test whose binary has [Main] in its TestMain.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	requireLinux(t)
	self, err := os.Executable()
	require.NoError(t, err)
	return StartBinary(t, self, args...)
}

// StartBinary is Start for a stage's own binary.
func StartBinary(t testing.TB, path string, args ...string) *Server {
	t.Helper()
	return startCommand(t, append([]string{path}, serveArgs(args)...))
}

// ExpectLogs says that the server has reason to write to standard error, which fails the test otherwise.
func (s *Server) ExpectLogs() { s.expectLogs = true }

func serveArgs(args []string) []string {
	return append([]string{"-addr", "127.0.0.1:0", "-admin", "127.0.0.1:0"}, args...)
}

// startCommand starts a server by a command line, which may begin with a tool that runs it.
func startCommand(t testing.TB, line []string) *Server {
	t.Helper()
	requireLinux(t)
	s := &Server{command: newCommand(line), stderr: &output{}, ended: make(chan struct{})}
	s.command.Stderr = s.stderr
	stdout, err := s.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, startProcess(s.command), "%q", line)
	ready := make(chan string, 1)
	go func() {
		reader := bufio.NewReader(stdout)
		line, _ := reader.ReadString('\n')
		ready <- line
		io.Copy(io.Discard, reader)
		s.exitCode = exitCode(s.command.Wait())
		close(s.ended)
	}()
	t.Cleanup(func() { s.cleanUp(t) })
	select {
	case line := <-ready:
		if !strings.HasPrefix(line, "ready ") {
			s.Wait(t)
			require.FailNow(t, "the server did not become ready", "exit code %d, standard error: %s", s.exitCode, s.Stderr())
		}
		s.parseReady(t, line)
	case <-time.After(patience):
		require.FailNow(t, "the server did not become ready in time", "standard error: %s", s.Stderr())
	}
	s.admin = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	return s
}

func newCommand(line []string) *exec.Cmd {
	c := exec.Command(line[0], line[1:]...)
	c.Env = append(os.Environ(), serveVariable+"=1")
	return c
}

func exitCode(err error) int {
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return failed.ExitCode() // -1 if a signal ended it
	}
	if err != nil {
		return -1
	}
	return 0
}

func (s *Server) parseReady(t testing.TB, line string) {
	t.Helper()
	s.Ready = map[string]string{}
	for _, word := range strings.Fields(line)[1:] {
		name, value, _ := strings.Cut(word, "=")
		s.Ready[name] = value
	}
	s.Addr, s.AdminAddr = s.Ready["addr"], s.Ready["admin"]
	pid, err := strconv.Atoi(s.Ready["pid"])
	require.NoError(t, err, "ready line %q", line)
	s.PID = pid
	require.NotEmpty(t, s.Addr, "ready line %q", line)
}

// cleanUp stops the server, if the test has not, and looks for what it left behind.
func (s *Server) cleanUp(t testing.TB) {
	t.Helper()
	if s.running() {
		if s.PID == 0 {
			s.command.Process.Kill()
		} else {
			s.Signal(t, syscall.SIGTERM)
		}
	}
	code := s.Wait(t)
	if s.admin != nil {
		s.admin.CloseIdleConnections()
	}
	if s.PID == 0 {
		return // it never was ready, and the test has failed already
	}
	logs := s.Stderr()
	if code != s.expectExit {
		t.Errorf("the server ended with exit code %d, want %d; standard error: %s", code, s.expectExit, logs)
	}
	if strings.Contains(logs, "DATA RACE") || strings.Contains(logs, "fatal error") || logs != "" && !s.expectLogs {
		t.Errorf("the server wrote to standard error: %s", logs)
	}
}

func (s *Server) running() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// Signal sends a signal to the server itself.
func (s *Server) Signal(t testing.TB, signal os.Signal) {
	t.Helper()
	process, err := os.FindProcess(s.PID)
	require.NoError(t, err)
	if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		require.NoError(t, err)
	}
}

// Wait waits for the process to end and returns its exit code, -1 if a signal ended it. One that
// does not end fails the test and is killed.
func (s *Server) Wait(t testing.TB) int {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.command.Process.Signal(signalDump) // a Go program prints its goroutines and ends
		select {
		case <-s.ended:
		case <-time.After(patience):
			s.command.Process.Kill()
			<-s.ended
		}
		t.Errorf("the server did not end in time; standard error: %s", s.Stderr())
	}
	return s.exitCode
}

// Stop asks the server to stop, waits for it, and requires exit code 0.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.Signal(t, syscall.SIGTERM)
	require.Equal(t, 0, s.Wait(t), "standard error: %s", s.Stderr())
}

// Stderr is what the server has written to standard error so far.
func (s *Server) Stderr() string { return s.stderr.String() }

// Reading is what the admin listener says at one moment. The values of gauges are signed.
type Reading struct {
	Stage   string             `json:"stage"`
	Loops   []map[string]int64 `json:"loops"`
	Total   map[string]int64   `json:"total"`
	Runtime map[string]int64   `json:"runtime"`
}

// Counters reads the server's counters. Each loop publishes them once per turn: what the last turn did may
// be missing; see Await.
func (s *Server) Counters(t testing.TB) Reading {
	t.Helper()
	reading, err := s.read()
	require.NoError(t, err)
	return reading
}

func (s *Server) read() (Reading, error) {
	var reading Reading
	answer, err := s.admin.Get("http://" + s.AdminAddr + "/debug/counters")
	if err != nil {
		return reading, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return reading, fmt.Errorf("/debug/counters: %s", answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&reading); err != nil {
		return reading, fmt.Errorf("/debug/counters: %w", err)
	}
	// Read to the end, or the connection is not used again.
	_, err = io.Copy(io.Discard, answer.Body)
	return reading, err
}

// Await reads the counters until they are as wanted, and returns that reading and how many it took.
func (s *Server) Await(t testing.TB, what string, wanted func(Reading) bool) (Reading, int) {
	t.Helper()
	for end, n := time.Now().Add(patience), 1; ; n++ {
		reading := s.Counters(t)
		if wanted(reading) {
			return reading, n
		}
		require.True(t, time.Now().Before(end), "waited in vain for %s; counters: %v", what, reading.Total)
		time.Sleep(2 * time.Millisecond)
	}
}

// AwaitConnections waits until exactly n connections are open.
func (s *Server) AwaitConnections(t testing.TB, n int64) Reading {
	t.Helper()
	reading, _ := s.Await(t, fmt.Sprintf("%d open connections", n), func(r Reading) bool {
		return r.Total["connections"] == n
	})
	return reading
}

// runToEnd runs a server that is not expected to become ready.
func runToEnd(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	requireLinux(t)
	self, err := os.Executable()
	require.NoError(t, err)
	c := newCommand(append([]string{self}, args...))
	out, logs := &output{}, &output{}
	c.Stdout, c.Stderr = out, logs
	require.NoError(t, startProcess(c))
	ended := make(chan int, 1)
	go func() { ended <- exitCode(c.Wait()) }()
	select {
	case code = <-ended:
	case <-time.After(patience):
		c.Process.Kill()
		<-ended
		require.FailNow(t, "the process did not end", "%q; standard output: %s", args, out)
	}
	return code, out.String(), logs.String()
}
