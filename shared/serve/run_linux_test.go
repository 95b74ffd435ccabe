package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// inProcess runs a fake of that manner in this process. The signals are sent by the test.
type inProcess struct {
	t       *testing.T
	fake    *fake
	ready   string
	signals chan os.Signal
	exit    chan int
	stderr  bytes.Buffer // to be read after the exit
}

func start(t *testing.T, manner string, args ...string) *inProcess {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	p := &inProcess{t: t, signals: make(chan os.Signal, 2), exit: make(chan int, 1)}
	made := make(chan *fake, 1)
	in, out := io.Pipe()
	go func() {
		p.exit <- run("stage7-fake", func(c *Config) (Server, error) {
			f, err := newFake(c, manner)
			made <- f
			return f, err
		}, args, out, &p.stderr, p.signals)
		out.Close()
	}()
	p.ready, _ = bufio.NewReader(in).ReadString('\n')
	select {
	case p.fake = <-made:
	default:
	}
	return p
}

func (p *inProcess) wait() int {
	select {
	case code := <-p.exit:
		return code
	case <-time.After(20 * time.Second):
		p.t.Fatal("run does not return")
		return -1
	}
}

func TestReadyLine(t *testing.T) {
	p := start(t, "obedient", "-workers", "3")
	require.Equal(t, fmt.Sprintf("ready stage=stage7-fake pid=%d addr=192.0.2.1:80 workers=3 gomaxprocs=5\n", os.Getpid()), p.ready)
	require.Equal(t, 5, runtime.GOMAXPROCS(0))
	p.signals <- os.Interrupt
	require.Equal(t, 0, p.wait())
	require.Empty(t, p.stderr.String())

	p = start(t, "obedient", "-workers", "3", "-gomaxprocs", "7", "-admin", ":0")
	require.Regexp(t, `^ready .* workers=3 gomaxprocs=7 admin=127\.0\.0\.1:[0-9]+\n$`, p.ready)
	p.signals <- os.Interrupt
	require.Equal(t, 0, p.wait())
}

func TestConfigIsComplete(t *testing.T) {
	cpus, err := netpoll.CPUs()
	require.NoError(t, err)
	p := start(t, "obedient")
	c := p.fake.config
	require.Equal(t, len(cpus), c.Workers)
	require.Equal(t, cpus, c.CPUs)
	require.NotNil(t, c.App)
	require.NotNil(t, c.Err)
	require.Equal(t, "stage7-fake", c.Stage)
	fmt.Fprintln(c.Err, "a line")
	p.signals <- os.Interrupt
	require.Equal(t, 0, p.wait())
	require.Equal(t, "a line\n", p.stderr.String())
}

// With -pin the CPUs are those that package topology chooses: here one each of two nodes, and the
// last CPU is in the first.
func TestPinIsNearMemory(t *testing.T) {
	cpus, err := netpoll.CPUs()
	require.NoError(t, err)
	first, last := cpus[0], cpus[len(cpus)-1]
	files := map[string]string{
		"devices/system/node/online":        "0-1\n",
		"devices/system/node/node0/cpulist": fmt.Sprintf("%d\n", last),
		"devices/system/node/node1/cpulist": fmt.Sprintf("%d\n", first),
	}
	before := readSys
	readSys = func(name string) string { return files[name] }
	t.Cleanup(func() { readSys = before })
	p := start(t, "obedient", "-pin", "-workers", "2")
	want := []int{last, first}
	if len(cpus) == 1 {
		want = cpus
	}
	require.Equal(t, want, p.fake.config.CPUs)
	p.signals <- os.Interrupt
	require.Equal(t, 0, p.wait())
}

func TestStop(t *testing.T) {
	t.Parallel() // one of these waits for long
	t.Run("obedient", func(t *testing.T) {
		p := start(t, "obedient", "-grace", "1h")
		p.signals <- os.Interrupt
		require.Equal(t, 0, p.wait())
		require.True(t, p.fake.closed)
	})
	t.Run("the grace is over", func(t *testing.T) {
		p := start(t, "stubborn", "-grace", "10ms")
		p.signals <- os.Interrupt
		require.Equal(t, 0, p.wait())
		require.Empty(t, p.stderr.String())
		require.True(t, p.fake.closed)
	})
	t.Run("no grace", func(t *testing.T) {
		p := start(t, "stubborn", "-grace", "0s")
		p.signals <- os.Interrupt
		require.Equal(t, 0, p.wait())
	})
	t.Run("a second signal", func(t *testing.T) {
		p := start(t, "stubborn", "-grace", "1h")
		p.signals <- os.Interrupt
		<-p.fake.drained
		p.signals <- os.Interrupt
		require.Equal(t, 0, p.wait())
	})
	t.Run("a loop that hangs", func(t *testing.T) {
		p := start(t, "stuck", "-grace", "0s")
		p.signals <- os.Interrupt
		require.Equal(t, 1, p.wait())
		require.Equal(t, "stage7-fake: a loop did not end within 5s of being told to: a handler hangs\n", p.stderr.String())
		p.fake.end()
	})
	t.Run("it ends by itself", func(t *testing.T) {
		p := start(t, "dead")
		require.Equal(t, 1, p.wait())
		require.Equal(t, "stage7-fake: the server ended by itself\n", p.stderr.String())
		require.True(t, p.fake.closed)
	})
}

func TestCannotServe(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	for _, c := range []struct {
		manner string
		args   []string
		code   int
		line   string
	}{
		{"taken", nil, 1, "address 127.0.0.1:8080 is taken by another process: stop it or choose another with -addr"},
		{"none", nil, 1, "no server can be made"},
		{"obedient", []string{"-admin", busy.Addr().String()}, 1, "cannot listen on -admin " + busy.Addr().String() + ": bind: address already in use"},
		{"obedient", []string{"-workers", "3", "-gomaxprocs", "4"}, 2, `-gomaxprocs 4 is too few for 3 workers, whose loops keep one each: use 5 or more`},
		{"obedient", []string{"-workers", "x"}, 2, `invalid value "x" for flag -workers: want a whole number from 0 to 1024 (-h lists the flags)`},
		{"obedient", []string{"-max-files", "2147483647"}, 2, `-max-files 2147483647 is above the hard limit, LIMIT (ulimit -Hn)`},
	} {
		t.Run(c.manner+" "+strings.Join(c.args, " "), func(t *testing.T) {
			var limit syscall.Rlimit
			require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
			if strings.Contains(c.line, "LIMIT") && limit.Max >= 2147483647 {
				t.Skip("there is no hard limit of open files here")
			}
			p := start(t, c.manner, c.args...)
			require.Equal(t, c.code, p.wait())
			require.Empty(t, p.ready)
			require.Equal(t, "stage7-fake: "+strings.ReplaceAll(c.line, "LIMIT", fmt.Sprint(limit.Max))+"\n", p.stderr.String())
			if c.manner == "taken" {
				require.True(t, p.fake.closed, "what a Start opens before it fails is for Close")
			}
		})
	}
}

func TestAdmin(t *testing.T) {
	p := start(t, "obedient", "-workers", "2", "-admin", ":0")
	p.fake.loops[0].Publish(&netpoll.Counters{Requests: 3, Reads: 1 << 60, Connections: 2})
	gone := netpoll.Counters{Requests: 4}
	gone.Connections--
	p.fake.loops[1].Publish(&gone)
	_, address, _ := strings.Cut(strings.TrimSpace(p.ready), "admin=")
	get := func(path string) (int, string, string) {
		answer, err := http.Get("http://" + address + path)
		require.NoError(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, answer.Header.Get("Content-Type"), string(body)
	}

	status, contentType, body := get("/debug/counters")
	require.Equal(t, 200, status)
	require.Equal(t, "application/json", contentType)
	var counters struct {
		Stage   string
		Loops   []map[string]int64
		Total   map[string]uint64
		Runtime map[string]uint64
	}
	require.NoError(t, json.Unmarshal([]byte(body), &counters))
	require.Equal(t, "stage7-fake", counters.Stage)
	require.Len(t, counters.Loops, 2)
	require.EqualValues(t, 3, counters.Loops[0]["requests"])
	require.EqualValues(t, -1, counters.Loops[1]["connections"])
	require.EqualValues(t, 7, counters.Total["requests"])
	require.EqualValues(t, 1<<60, counters.Total["reads"])
	require.EqualValues(t, 1, counters.Total["connections"])
	var names []string
	new(netpoll.Counters).Each(func(name string, _ uint64) { names = append(names, name) })
	for _, name := range names {
		require.Contains(t, counters.Total, name)
		require.Contains(t, counters.Loops[1], name)
		require.NotEmpty(t, netpoll.CounterHelp(name), name)
	}
	for _, name := range []string{"heap_objects_allocated", "heap_bytes_allocated", "goroutines", "heap_bytes", "cpu_ns"} {
		require.NotZero(t, counters.Runtime[name], name)
	}
	require.Contains(t, counters.Runtime, "gc_cycles")

	status, contentType, body = get("/metrics")
	require.Equal(t, 200, status)
	require.Equal(t, "text/plain; version=0.0.4; charset=utf-8", contentType)
	require.Contains(t, body, "# TYPE qps_ladder_requests_total counter\n"+
		"qps_ladder_requests_total{stage=\"stage7-fake\",loop=\"0\"} 3\nqps_ladder_requests_total{stage=\"stage7-fake\",loop=\"1\"} 4\n")
	require.Contains(t, body, "# TYPE qps_ladder_connections gauge\n")
	require.Contains(t, body, "\nqps_ladder_connections{stage=\"stage7-fake\",loop=\"1\"} -1\n")
	line := regexp.MustCompile(`^(# (HELP|TYPE) qps_ladder_[a-z_]+ [A-Za-z0-9_, -]+|qps_ladder_[a-z_]+\{stage="stage7-fake"(,loop="[01]")?\} -?[0-9]+|qps_ladder_cpu_seconds_total\{stage="stage7-fake"\} [0-9]+\.[0-9]{9})$`)
	for text := range strings.Lines(body) {
		require.Regexp(t, line, strings.TrimSuffix(text, "\n"))
	}

	status, _, body = get("/debug/pprof/")
	require.Equal(t, 200, status)
	require.Contains(t, body, "goroutine")
	status, _, body = get("/debug/pprof/goroutine?debug=1")
	require.Equal(t, 200, status)
	require.Contains(t, body, "serve.run")
	status, _, body = get("/")
	require.Equal(t, 200, status)
	require.Contains(t, body, "/debug/counters")
	status, _, _ = get("/other")
	require.Equal(t, 404, status)

	p.signals <- os.Interrupt
	require.Equal(t, 0, p.wait())
	http.DefaultClient.CloseIdleConnections()
	_, err := net.Dial("tcp", address)
	require.Error(t, err, "the admin listener ends with the server")
}

// TestFewAllocationsAreSeen fails with package runtime/metrics, which counts by the span.
func TestFewAllocationsAreSeen(t *testing.T) {
	before := readRuntime()[0].value
	for range 10 {
		sink = new([64]byte)
	}
	require.GreaterOrEqual(t, readRuntime()[0].value-before, uint64(10))
}

var sink *[64]byte

// process is the test binary started again as a stage.
type process struct {
	*exec.Cmd
	stdout *bufio.Reader
	stderr bytes.Buffer
}

func startProcess(t *testing.T, manner string, args ...string) *process {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	p := &process{Cmd: exec.CommandContext(ctx, os.Args[0], args...)}
	p.Env = append(os.Environ(), asStage+"="+manner)
	p.Stderr = &p.stderr
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	p.stdout = bufio.NewReader(out)
	require.NoError(t, p.Start())
	return p
}

func (p *process) exitCode(t *testing.T) (code int, rest string) {
	out, err := io.ReadAll(p.stdout)
	require.NoError(t, err)
	p.Wait()
	return p.ProcessState.ExitCode(), string(out)
}

func TestProcess(t *testing.T) {
	t.Run("SIGTERM", func(t *testing.T) {
		p := startProcess(t, "obedient")
		ready, err := p.stdout.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, ready, fmt.Sprintf("pid=%d ", p.Process.Pid))
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		code, rest := p.exitCode(t)
		require.Equal(t, 0, code)
		require.Empty(t, rest)
		require.Empty(t, p.stderr.String())
	})
	t.Run("two signals", func(t *testing.T) {
		p := startProcess(t, "stubborn", "-grace", "1h")
		_, err := p.stdout.ReadString('\n')
		require.NoError(t, err)
		require.NoError(t, p.Process.Signal(syscall.SIGINT))
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		code, _ := p.exitCode(t)
		require.Equal(t, 0, code)
	})
	t.Run("bad flag", func(t *testing.T) {
		p := startProcess(t, "obedient", "-bogus")
		code, out := p.exitCode(t)
		require.Equal(t, 2, code)
		require.Empty(t, out)
		require.Equal(t, "stage7-fake: flag provided but not defined: -bogus (-h lists the flags)\n", p.stderr.String())
	})
	t.Run("-h", func(t *testing.T) {
		p := startProcess(t, "obedient", "-h")
		code, out := p.exitCode(t)
		require.Equal(t, 0, code)
		require.Contains(t, out, "Usage: stage7-fake [flags]")
		require.Empty(t, p.stderr.String())
	})
	t.Run("port taken", func(t *testing.T) {
		p := startProcess(t, "taken")
		code, out := p.exitCode(t)
		require.Equal(t, 1, code)
		require.Empty(t, out)
		require.Contains(t, p.stderr.String(), "is taken by another process")
	})
	t.Run("out of descriptors, told to stop", func(t *testing.T) {
		p := startProcess(t, "hungry", "-max-files", "16", "-grace", "10ms")
		ready, err := p.stdout.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, ready, "ready ")
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		code, _ := p.exitCode(t)
		require.Equal(t, 0, code, p.stderr.String())
	})
}
