package harness

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// stage5 is built once.
var stage5 = sync.OnceValues(func() (string, error) {
	s, err := Variant{Stage: "5"}.Source(context.Background(), root)
	if err != nil {
		return "", err
	}
	// Up to date for the next run, so that it takes no time then.
	return s.Build(context.Background(), filepath.Join(os.TempDir(), "qps-ladder-harness"))
})

func startServer(t *testing.T, c ServerCommand) *Server {
	t.Helper()
	if c.Path == "" {
		var err error
		c.Path, err = stage5()
		require.NoError(t, err)
	}
	s, err := StartServer(context.Background(), c)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func flags(args ...string) ServerCommand { return ServerCommand{Command: Command{Args: args}} }

func dial(t *testing.T, s *Server) *Conn {
	t.Helper()
	c, err := Dial(s.Ready.Address)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestParseReady(t *testing.T) {
	r, err := ParseReady("ready stage=stage0-naive pid=123 addr=127.0.0.1:8080 workers=2 gomaxprocs=3 new=1 admin=127.0.0.1:9090\n")
	require.NoError(t, err)
	require.Equal(t, Ready{"stage0-naive", 123, "127.0.0.1:8080", 2, 3, "127.0.0.1:9090"}, r)
	for line, says := range map[string]string{
		"":                                   `no ready line: ""`,
		"hello":                              `no ready line: "hello"`,
		"ready stage=s pid=x addr=a":         "pid is no number",
		"ready stage=s addr=a":               "is missing",
		"ready stage=s pid=1":                "is missing",
		"ready stage=s pid=1 addr=a workers": "workers is no number",
	} {
		_, err := ParseReady(line)
		require.ErrorContains(t, err, says)
	}
}

func TestServer(t *testing.T) {
	cpus, err := netpoll.CPUs()
	require.NoError(t, err)
	one := cpus[len(cpus)-1]
	s := startServer(t, ServerCommand{Command: Command{
		Name: "it", Args: []string{"-workers", "1"}, CPUs: []int{one}, CleanEnv: true, Env: []string{"ONLY=this"},
	}})
	require.Equal(t, s.PID(), s.Ready.PID)
	require.Equal(t, 1, s.Ready.Workers)
	require.Equal(t, 3, s.Ready.GoMaxProcs)
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.PID()))
	require.NoError(t, err)
	require.Equal(t, "ONLY=this\x00", string(environment))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	require.NoError(t, err)
	require.Contains(t, string(status), fmt.Sprintf("Cpus_allowed_list:\t%d\n", one))

	before, err := s.Settle(t.Context())
	require.NoError(t, err)
	c := dial(t, s)
	const requests = 100
	for range requests {
		_, err := c.Do(HelloRequest)
		require.NoError(t, err)
	}
	after, err := s.AwaitRequests(t.Context(), before.Total.Requests+requests)
	require.NoError(t, err)
	since := after.Sub(before)
	require.EqualValues(t, requests, since.Total.Requests)
	require.EqualValues(t, requests, since.Total.Writes)
	require.Len(t, since.Loops, 1)
	require.Equal(t, since.Total, since.Loops[0])
	require.EqualValues(t, 1, since.Total.Connections, "a gauge is what it is, and no difference")
	require.Equal(t, after.Process.Goroutines, since.Process.Goroutines)
	require.Positive(t, after.Process.CPUNanos)
	require.EqualValues(t, since.Number, s.readings.Load()-before.Number)
	costs := after.PerRequest(before)
	require.EqualValues(t, 1, costs["writes"])
	require.NotContains(t, costs, "connections")
	require.NotContains(t, costs, "heap_bytes")
	require.Contains(t, costs, "heap_objects_allocated")
	calls := map[string]int64{}
	for _, call := range SystemCalls {
		calls[call.Name()] = CallsOf(call, since.Counts())
	}
	require.EqualValues(t, requests, calls["sendto"])
	require.EqualValues(t, since.Total.Reads, calls["recvfrom"])
	require.Zero(t, calls["sendmsg"])

	require.NoError(t, s.Collect(t.Context()))
	_, err = s.Admin(t.Context(), "/nothing", 0)
	require.ErrorContains(t, err, "cannot get /nothing of it: 404")
	require.NoError(t, s.Stop())
	require.Empty(t, s.Stderr())
	require.ErrorContains(t, s.Stop(), "it ended before it was asked to (exit status 0)")
	require.ErrorIs(t, s.Signal(syscall.SIGTERM), os.ErrProcessDone)
	_, err = s.Counters(t.Context())
	require.ErrorContains(t, err, "it ended (exit status 0)")
	require.NoError(t, c.ReadEnd())
}

// What the table says of a server's counters is all that it counts of system calls, by netpoll's help.
func TestSystemCallsAreAllThatIsCounted(t *testing.T) {
	known := map[string]bool{}
	for _, call := range SystemCalls {
		require.False(t, known[call.Counter], call.Counter)
		known[call.Counter] = true
		require.Contains(t, netpoll.CounterHelp(call.Counter)+" write", call.Name())
	}
	new(netpoll.Counters).Each(func(name string, _ uint64) {
		help := netpoll.CounterHelp(name)
		if strings.HasSuffix(help, " calls") && !strings.Contains(help, "found") {
			require.True(t, known[name], name)
		}
	})
}

func TestParseReading(t *testing.T) {
	r, err := ParseReading([]byte(`{"stage":"s","loops":[{"requests":3,"connections":-1,"of another commit":7}],"total":{"requests":3},"runtime":{"cpu_ns":5}}`))
	require.NoError(t, err)
	require.EqualValues(t, 3, r.Loops[0].Requests)
	require.EqualValues(t, -1, int64(r.Loops[0].Connections))
	require.EqualValues(t, 5, r.Process.CPUNanos)
	for body, says := range map[string]string{
		"": "not understood", "{}": "there are no counters", `{"total":{"requests":1.5}}`: "counter requests is 1.5",
	} {
		_, err := ParseReading([]byte(body))
		require.ErrorContains(t, err, says)
	}
}

func TestAwaitSaysWhatItWaitedFor(t *testing.T) {
	s := startServer(t, ServerCommand{})
	s.patience = 100 * time.Millisecond
	_, err := s.AwaitConnections(t.Context(), 7)
	require.ErrorContains(t, err, "waited for 7 open connections for 100ms; its counters: ")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Settle(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestServersThatDoNotStart(t *testing.T) {
	shell := func(script string) error {
		c := ServerCommand{Command: Command{Name: "it"}}
		if strings.Contains(script, "why") {
			c.Patience = time.Second
		}
		c.Wrapper = []string{"sh", "-c", script}
		_, err := StartServer(t.Context(), c)
		return err
	}
	require.EqualError(t, shell("echo no >&2; exit 3"), "it ended instead of starting (exit status 3): no")
	require.ErrorContains(t, shell("echo hello; sleep 100"), `no ready line: "hello"`)
	require.EqualError(t, shell("echo why >&2; sleep 100"), "it did not say within 1s that it is ready; standard error: why")
	require.ErrorContains(t, shell("echo ready stage=s pid=$$ addr=a:1; sleep 100"), "has no admin listener although it was asked for one")

	program, err := stage5()
	require.NoError(t, err)
	_, err = StartServer(t.Context(), ServerCommand{Command: Command{Path: program, Args: []string{"-bogus"}}})
	var ended *EndedError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, 2, ended.Exit.ExitCode())
	_, err = StartServer(t.Context(), ServerCommand{Command: Command{Path: "/no/such/program"}})
	require.ErrorContains(t, err, "cannot start program: ")
	_, err = StartServer(t.Context(), ServerCommand{Wrapper: []string{"sh", "-c", "echo ready stage=s pid=1 addr=a:1"}, NoAdmin: true})
	require.NoError(t, err, "a tool that runs it has a pid of its own")
}

// A server that does not end when it is asked to shows its goroutines and is killed.
func TestServerThatDoesNotStop(t *testing.T) {
	s := startServer(t, flags("-grace", "1h"))
	c, err := DialSlow(s.Ready.Address, 256<<10)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Send("GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n"))
	require.NoError(t, c.AwaitFirst())
	s.patience = 100 * time.Millisecond
	require.ErrorContains(t, s.Stop(), "did not end within 100ms after SIGTERM")
	require.NotZero(t, s.ExitCode())
	require.Contains(t, s.Stderr(), "goroutine ")
}

func TestPause(t *testing.T) {
	s := startServer(t, ServerCommand{})
	c := dial(t, s)
	_, err := c.Do(HelloRequest)
	require.NoError(t, err)
	require.NoError(t, s.Pause())
	c.Timeout = 50 * time.Millisecond
	_, err = c.Do(HelloRequest)
	require.True(t, TimedOut(err), "%v", err)
	require.ErrorContains(t, err, "nothing more for 50ms")
	require.NoError(t, s.Resume())
	c.Timeout = Patience
	_, err = c.ReadResponse(false)
	require.NoError(t, err)
	require.NoError(t, s.Stop())
}

// The end of the context is the end of the server; one that is behind a tool ends with it.
func TestContextEnds(t *testing.T) {
	program, err := stage5()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := StartServer(ctx, ServerCommand{Command: Command{Path: program}, Wrapper: []string{"sh", "-c", `"$0" "$@" & wait`}})
	require.NoError(t, err)
	require.NotEqual(t, s.PID(), s.Ready.PID)
	cancel()
	require.NoError(t, s.Wait(Patience))
	require.Equal(t, -1, s.ExitCode())
	require.Eventually(t, func() bool { return gone(s.Ready.PID) }, Patience, time.Millisecond)
}

// gone says whether a process runs no more: it may wait for a parent to notice.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// asParent, in the environment, makes the test binary a process that starts a server and is killed.
const asParent = "QPS_LADDER_HARNESS_PARENT"

func init() {
	program := os.Getenv(asParent)
	if program == "" {
		return
	}
	os.Unsetenv(asParent)
	s, err := StartServer(context.Background(), ServerCommand{Command: Command{Path: program}})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Ready.PID)
	select {}
}

func TestServerDiesWithItsParent(t *testing.T) {
	program, err := stage5()
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	parent, err := Start(t.Context(), Command{Path: self, Env: []string{asParent + "=" + program}})
	require.NoError(t, err)
	defer parent.Close()
	line, err := parent.Line(t.Context(), Patience)
	require.NoError(t, err)
	pid, err := strconv.Atoi(line)
	require.NoError(t, err)
	require.False(t, gone(pid))
	require.NoError(t, parent.Signal(syscall.SIGKILL))
	require.Eventually(t, func() bool { return gone(pid) }, Patience, time.Millisecond)
}

func shell(script string) Command {
	return Command{Name: "a shell", Path: "sh", Args: []string{"-c", script}}
}

func TestRun(t *testing.T) {
	out, err := Run(t.Context(), shell("echo one; echo two; echo three >&2"))
	require.NoError(t, err)
	require.NoError(t, out.Err())
	require.Equal(t, "one\ntwo\n", out.Stdout)
	require.Equal(t, "three\n", out.Stderr)
	out, err = Run(t.Context(), shell("echo last; exit 3"))
	require.NoError(t, err)
	require.EqualError(t, out.Err(), "a shell ended (exit status 3): last")
	_, err = Run(t.Context(), Command{Path: "no such program"})
	require.ErrorContains(t, err, "cannot start no such program")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = Run(ctx, shell("sleep 100"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestTalking(t *testing.T) {
	c := shell(`echo $WORD; read a; echo "$a"; echo no >&2; echo good >&2; exit 4`)
	c.Env, c.Input = []string{"WORD=ready"}, true
	p, err := Start(t.Context(), c)
	require.NoError(t, err)
	defer p.Close()
	line, err := p.Line(t.Context(), Patience)
	require.NoError(t, err)
	require.Equal(t, "ready", line)
	_, err = p.Line(t.Context(), time.Millisecond)
	require.EqualError(t, err, "a shell says nothing for 1ms")
	require.True(t, p.Alive())
	require.NoError(t, p.Say("hello"))
	line, err = p.Line(t.Context(), Patience)
	require.NoError(t, err)
	require.Equal(t, "hello", line)
	require.NoError(t, p.AwaitStderr(t.Context(), "good", Patience))
	require.Equal(t, "no\ngood\n", p.Stderr())
	require.EqualError(t, p.AwaitStderr(t.Context(), "better", Patience), "a shell ended (exit status 4): no / good")
	_, err = p.Line(t.Context(), Patience)
	require.EqualError(t, err, "a shell ended (exit status 4): no / good")
	require.EqualError(t, p.EndedError("too early"), "a shell ended too early (exit status 4): no / good")
	require.EqualError(t, p.Say("more"), "a shell ended (exit status 4): no / good")
	require.Equal(t, 4, p.ExitCode())
}

// A child gets what is to be its descriptor 3; here nothing of it stays open.
func TestFilesAreHandedOver(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	c := shell("echo written >&3")
	c.Files = []*os.File{writer}
	p, err := Start(t.Context(), c)
	require.NoError(t, err)
	defer p.Close()
	b := make([]byte, 16)
	n, err := reader.Read(b)
	require.NoError(t, err)
	require.Equal(t, "written\n", string(b[:n]))
	require.NoError(t, p.Wait(Patience))
	_, err = reader.Read(b)
	require.Error(t, err, "its end of the pipe was the last")
	require.ErrorIs(t, writer.Close(), os.ErrClosed)
}

// One that does not end when it is asked to is killed, with all that it started; and one that ends
// is not waited for because of what it has started.
func TestWhatAProcessLeavesBehind(t *testing.T) {
	p, err := Start(t.Context(), shell("trap '' TERM; sleep 1000 & echo $!; wait; wait"))
	require.NoError(t, err)
	_, err = p.Line(t.Context(), Patience)
	require.NoError(t, err)
	require.EqualError(t, p.Stop(syscall.SIGTERM, time.Millisecond), "a shell did not end within 1ms")
	p.Close()
	require.Equal(t, -1, p.ExitCode())
	require.EqualError(t, p.EndedError(""), "a shell ended (signal: killed)")

	// In a session of its own it is out of the group, and keeps the pipes open.
	c := shell("setsid sh -c 'echo away; sleep 3' & read end; exit 6")
	c.Input = true
	p, err = Start(t.Context(), c)
	require.NoError(t, err)
	line, err := p.Line(t.Context(), Patience)
	require.NoError(t, err)
	require.Equal(t, "away", line)
	require.NoError(t, p.Say("end"))
	require.NoError(t, p.Wait(Patience))
	require.Equal(t, 6, p.ExitCode())
}

// Launch is for a tracer: how the process is started and waited for is its own matter.
func TestLaunch(t *testing.T) {
	c := shell("echo hello; exit 5")
	launched := false
	c.Launch = func(cmd *exec.Cmd) (func() Exit, error) {
		launched = true
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return func() Exit { cmd.Wait(); return cmd.ProcessState }, cmd.Start()
	}
	out, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.True(t, launched)
	require.Equal(t, 5, out.Exit.ExitCode())
	require.Equal(t, "hello\n", out.Stdout)
}

func TestLongStandardErrorKeepsBothEnds(t *testing.T) {
	out, err := Run(t.Context(), shell("echo first >&2; head -c 300000 /dev/zero | tr '\\0' x >&2; echo last >&2"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(out.Stderr, "first\n"))
	require.True(t, strings.HasSuffix(out.Stderr, "xlast\n"))
	require.Contains(t, out.Stderr, " bytes …\n")
	require.Less(t, len(out.Stderr), 140_000)
}

func TestUrgentByte(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	c, err := Dial(listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	other, err := listener.Accept()
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, c.Send("a"))
	require.NoError(t, c.SendUrgent('!'))
	require.NoError(t, c.Send("b"))
	require.NoError(t, c.CloseWrite())
	b := make([]byte, 10)
	got := ""
	for {
		n, err := other.Read(b)
		got += string(b[:n])
		if err != nil {
			break
		}
	}
	require.Equal(t, "ab", got, "the urgent byte is not in line with the others")
}
