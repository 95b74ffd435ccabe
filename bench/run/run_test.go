//go:build linux

package run

import (
	"bufio"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func hello(t *testing.T, connections int) workload.Workload {
	t.Helper()
	w, err := workload.ByName(workload.Hello)
	require.NoError(t, err)
	w.Connections = connections
	return w
}

func TestMeasureOnce(t *testing.T) {
	b := bench(t)
	m, err := b.measure(t.Context(), Item{Server: rig(t, "good"), Workload: hello(t, 10)})
	require.NoError(t, err)
	require.NotZero(t, m.Requests)
	require.Equal(t, 10, m.Established)
	require.Empty(t, m.Errors)
	require.Positive(t, m.ServerCPUNanos)
	require.Positive(t, m.ClientCPUNanos)
	require.Positive(t, m.Resident)
	require.Positive(t, m.Latency.P50)
	require.NotEmpty(t, m.Histogram)
	require.Nil(t, m.Counters, "this server has none")
	require.Empty(t, children(t))
}

func TestSlowServerIsRankedSlower(t *testing.T) {
	b := bench(t)
	const rounds = 2 * stats.MinimumRounds // on a starved machine some may pass without an answer, which are in no ratio
	b.Rounds = rounds
	b.Pair(rig(t, "good"), rig(t, "slow"), hello(t, 4))
	var told []Progress
	b.Progress = func(p Progress) { told = append(told, p) }
	d, err := b.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, results.Complete, d.Ended)
	require.Len(t, d.Measurements, 3*rounds)
	require.Len(t, told, len(d.Measurements))
	require.Equal(t, rounds, d.Method.Rounds)

	r, ok := d.Find(results.Pair, "slow")
	require.True(t, ok)
	require.Equal(t, results.RequestsPerSecond, r.Metric)
	require.Equal(t, stats.Lower, r.Verdict, "%+v", r)
	require.Equal(t, "slower", r.Words())
	require.NoError(t, d.Failure())
	require.Empty(t, children(t))
}

func TestWrongAnswersFailTheRun(t *testing.T) {
	b := bench(t)
	b.Items = []Item{{Server: rig(t, "wrong"), Workload: hello(t, 4)}}
	d, err := b.Run(t.Context())
	require.NoError(t, err, "the run itself goes on")
	require.ErrorContains(t, d.Failure(), "wrong on hello")
	require.ErrorContains(t, d.Failure(), "body differs")
	row, ok := d.Row("wrong", workload.Hello)
	require.True(t, ok)
	require.NotZero(t, row.Errors["body differs"])
}

func TestServerThatDiesKeepsWhatThereWas(t *testing.T) {
	b := bench(t)
	b.Rounds = 2
	b.Items = []Item{{Server: rig(t, "good"), Workload: hello(t, 4)}}
	d, err := b.Run(t.Context())
	require.NoError(t, err)
	require.Len(t, d.Measurements, 2)

	for _, item := range []Item{{Server: rig(t, "dies"), Workload: hello(t, 4)}} {
		b := bench(t)
		// A death in the warm-up and one in the measured part are told alike.
		for _, warmup := range []time.Duration{0, 10 * time.Second} {
			b.Warmup, b.Duration = warmup, 10*time.Second
			_, err = b.measure(t.Context(), item)
			require.EqualError(t, err, "dies ended while it was being measured (exit status 3): fatal error: so it goes")
			require.Empty(t, children(t))
		}
	}
}

func TestServersThatDoNotStart(t *testing.T) {
	b := bench(t)
	for part, want := range map[string]string{
		"refuses": "refuses ended instead of starting (exit status 1): address 127.0.0.1:8080 is taken by another process",
		"chatty":  `chatty is not understood: no ready line: "hello there"`,
	} {
		_, err := b.measure(t.Context(), Item{Server: rig(t, part), Workload: hello(t, 1)})
		require.EqualError(t, err, want)
	}
	_, err := b.measure(t.Context(), Item{Server: Server{Name: "nobody", Path: "/nonexistent"}, Workload: hello(t, 1)})
	require.ErrorContains(t, err, "cannot start nobody")
	require.Empty(t, children(t))
}

func TestServerThatEndsBadly(t *testing.T) {
	b := bench(t)
	_, err := b.measure(t.Context(), Item{Server: rig(t, "sulks"), Workload: hello(t, 1)})
	require.EqualError(t, err, "sulks ended badly when it was asked to (exit status 4)")
	require.Empty(t, children(t))
}

func TestStopInTheMiddle(t *testing.T) {
	b := bench(t)
	b.Rounds, b.Duration = 1000, 20*time.Millisecond
	b.Items = []Item{{Server: rig(t, "good"), Workload: hello(t, 2)}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.Progress = func(p Progress) {
		if p.Round == 3 {
			cancel()
		}
	}
	d, err := b.Run(ctx)
	require.True(t, Ended(err), "%v", err)
	require.Equal(t, "interrupted", d.Ended)
	require.Len(t, d.Measurements, 2)
	require.Len(t, d.Rows, 1, "what was measured is reported")
	require.Empty(t, children(t))
}

func TestStopWhileMeasuringAndWhileStarting(t *testing.T) {
	b := bench(t)
	b.Duration = time.Minute
	for _, part := range []string{"good", "silent"} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := b.measure(ctx, Item{Server: rig(t, part), Workload: hello(t, 2)})
		require.ErrorIs(t, err, context.DeadlineExceeded, part)
		cancel()
		require.Empty(t, children(t))
	}
}

// Children die with their parent, even if it has no chance to end them.
func TestNothingIsLeftOfAKilledRun(t *testing.T) {
	own, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(own)
	cmd.Env = append(os.Environ(), parentVariable+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err, line)
	grandchild, err := unix.PidfdOpen(pid, 0)
	require.NoError(t, err)
	defer unix.Close(grandchild)

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(grandchild), Events: unix.POLLIN}}, 30_000)
	require.NoError(t, err)
	require.Equal(t, 1, n, "the server outlived the run")
}

func TestArrange(t *testing.T) {
	for _, c := range []struct {
		cpus   []int
		layout string
		want   Place
	}{
		{[]int{0}, "", Place{results.CoLocated, []int{0}, []int{0}, []int{0}}},
		{[]int{0, 1}, "", Place{results.CoLocated, []int{1}, []int{1}, []int{0}}},
		{[]int{0, 1}, "split", Place{results.Split, []int{0}, []int{1}, []int{1}}},
		{[]int{2, 3, 6}, "", Place{results.CoLocated, []int{6}, []int{6}, []int{2, 3}}},
		{[]int{0, 1, 2, 3}, "", Place{results.Split, []int{0, 1}, []int{2, 3}, []int{2, 3}}},
		{[]int{0, 1, 2, 3}, "co-located", Place{results.CoLocated, []int{3}, []int{3}, []int{0, 1, 2}}},
		{[]int{0, 1, 2, 3, 4}, "", Place{results.Split, []int{0, 1}, []int{2, 3, 4}, []int{2, 3, 4}}},
	} {
		got, err := Arrange(c.cpus, c.layout)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%v %q", c.cpus, c.layout)
	}
	_, err := Arrange([]int{0}, "split")
	require.ErrorContains(t, err, "at least 2 CPUs")
	_, err = Arrange([]int{0, 1}, "apart")
	require.ErrorContains(t, err, `no layout "apart"`)
	require.Equal(t, []int{1}, Place{Server: []int{1}, Load: []int{1}}.inUse())
}

func TestOrderKeepsWorkloadsTogether(t *testing.T) {
	var items []Item
	for _, w := range []string{"a", "b"} {
		for _, s := range []string{"1", "2", "3"} {
			items = append(items, Item{Server: Server{Name: s}, Workload: workload.Workload{Name: w}})
		}
	}
	random := rand.New(rand.NewPCG(1, 0))
	firsts := map[string]bool{}
	for range 50 {
		got := order(items, random)
		require.ElementsMatch(t, items, got)
		require.Equal(t, got[0].Workload.Name, got[2].Workload.Name)
		require.NotEqual(t, got[0].Workload.Name, got[3].Workload.Name)
		firsts[got[0].Workload.Name+got[0].Server.Name] = true
	}
	require.Len(t, firsts, 6, "none is always first")
}

func TestEnoughRounds(t *testing.T) {
	b := Bench{Time: 10 * time.Second}
	require.False(t, b.enough(5, time.Minute), "six rounds, whatever it takes")
	require.True(t, b.enough(6, 9*time.Second))
	require.False(t, b.enough(6, 6*time.Second))
	require.True(t, (&Bench{Rounds: 2}).enough(2, 0))
}

func TestLadderPlan(t *testing.T) {
	names := []string{"stage0-naive", "stage1-reuseport", "stage2-conn-timer", "stage3-native-parser", "stage4-scatter-gather", "stage5-speculative-read"}
	var servers []Server
	for _, n := range names {
		servers = append(servers, Server{Name: n})
	}
	b := Bench{Generator: Embedded}
	require.NoError(t, b.Ladder(servers, &Server{Name: BareC}))
	var got []string
	for _, item := range b.Items {
		got = append(got, harness.ShortName(item.Server.Name)+" "+item.Workload.Name)
	}
	slices.Sort(got)
	require.Equal(t, []string{
		"bare hello", "stage0 c1", "stage0 hello", "stage1 c1", "stage1 hello", "stage2 browser", "stage2 hello", "stage3 body64k", "stage3 browser", "stage3 hello", "stage3 pipelined",
		"stage4 body64k", "stage4 hello", "stage4 idle1k", "stage4 pipelined", "stage5 hello", "stage5 hello", "stage5 idle1k",
	}, got)
	require.True(t, b.showPublished)

	b = Bench{Generator: Wrk}
	require.NoError(t, b.Ladder(servers, nil))
	for _, item := range b.Items {
		require.NoError(t, WrkCan(item.Workload))
	}
}

func TestBuildErrorIsOneLine(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module "+harness.Module+"\n\ngo 1.26\n"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(root, "stage7-broken"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "stage7-broken", "main.go"), []byte("package main\n\nfunc main() { nothing() }\n"), 0o600))
	_, err := BuildStages(t.Context(), root, t.TempDir(), []string{"stage7-broken"})
	require.ErrorContains(t, err, "cannot build stage7-broken: stage7-broken/main.go:3:15: undefined: nothing")
	require.NotContains(t, err.Error(), "\n")
}

// wrk's own figures are turned into the generator's, wrong answers into errors.
func TestWrkResult(t *testing.T) {
	w := hello(t, 100)
	r := wrkResult{Requests: 1000, Microseconds: 2e6, Status: 10, Connect: 3, Timeout: 1, P50: 1500}.convert(w, 1)
	require.EqualValues(t, 990, r.Requests)
	require.Equal(t, 495.0, r.RequestsPerSecond)
	require.Equal(t, 97, r.Established)
	require.EqualValues(t, 1_500_000, r.Latency.P50)
	require.Equal(t, map[string]uint64{"status of 400 or more": 10, "timeout": 1}, r.Errors)
	require.Equal(t, map[string]uint64{"connect error": 3}, r.ConnectErrors)
	require.Equal(t, `"GET / HTTP/1.1\013\010\034\092\255"`, luaString([]byte("GET / HTTP/1.1\r\n\"\\\xff")))
}

func TestWrk(t *testing.T) {
	if err := FindWrk(); err != nil {
		t.Skip(err)
	}
	b := bench(t)
	b.Generator, b.Duration = Wrk, time.Second
	m, err := b.measure(t.Context(), Item{Server: rig(t, "good"), Workload: hello(t, 10)})
	require.NoError(t, err)
	require.NotZero(t, m.Requests)
	require.Empty(t, m.Errors)
	require.Positive(t, m.ServerCPUNanos)
	require.Positive(t, m.ClientCPUNanos)
	require.Positive(t, m.Latency.P50)
	require.Empty(t, children(t))

	// wrk looks at the status alone; the warm-up in front of it sees the rest.
	b.Warmup = 100 * time.Millisecond
	m, err = b.measure(t.Context(), Item{Server: rig(t, "always-wrong"), Workload: hello(t, 10)})
	require.NoError(t, err)
	require.NotZero(t, m.Errors["in the warm-up, which wrk has no part in: body differs"], "%v", m.Errors)
}

func TestBareC(t *testing.T) {
	root, err := harness.FindRoot()
	require.NoError(t, err)
	s, ok, err := BuildBareC(t.Context(), root, t.TempDir())
	require.NoError(t, err)
	if !ok {
		t.Skip("no C compiler here")
	}
	m, err := bench(t).measure(t.Context(), Item{Server: s, Workload: hello(t, 10)})
	require.NoError(t, err)
	require.NotZero(t, m.Requests)
	require.Empty(t, m.Errors)
}

// The pool has as many clients as threads: it can have no more.
func TestBlocking(t *testing.T) {
	root, err := harness.FindRoot()
	require.NoError(t, err)
	servers, err := BuildBlocking(t.Context(), root, t.TempDir())
	require.NoError(t, err)
	if len(servers) == 0 {
		t.Skip("no C compiler here")
	}
	for _, s := range servers {
		n := 20
		if !s.Can(hello(t, n)) {
			n = 8
		}
		require.True(t, s.Can(hello(t, n)))
		m, err := bench(t).measure(t.Context(), Item{Server: s, Workload: hello(t, n)})
		require.NoError(t, err, s.Name)
		require.NotZero(t, m.Requests, s.Name)
		require.Equal(t, n, m.Established, s.Name)
	}
}

func TestServerHasTheFileOfItsWorkload(t *testing.T) {
	w, err := workload.ByName("file")
	require.NoError(t, err)
	s, remove, err := WithFile(Server{Args: []string{"-pin"}}, w)
	require.NoError(t, err)
	require.Equal(t, []string{"-pin", "-static"}, s.Args[:2])
	text, err := os.ReadFile(filepath.Join(s.Args[2], w.File))
	require.NoError(t, err)
	require.Equal(t, w.Body, text)
	remove()
	require.NoDirExists(t, s.Args[2])
	s, remove, err = WithFile(Server{}, hello(t, 1))
	require.NoError(t, err)
	defer remove()
	require.Empty(t, s.Args)
}
