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
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
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
	testenv.Slow(t)
	b := bench(t)
	const rounds = 2 * stats.MinimumRounds // on a starved machine some may pass without an answer, which are in no ratio
	b.Rounds, b.NoRepeat = rounds, true
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
	require.Less(t, r.Ratio.Median, 1.0, "%+v", r)
	require.Contains(t, []string{"slower", "cannot tell", "too few rounds"}, r.Words(), "a starved machine's noise floor hides any difference")
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
	place := func(layout string, server, load, own []int) Place {
		return Place{Layout: layout, Server: server, Load: load, Own: own}
	}
	pairs := cores{0: 0, 1: 1, 2: 0, 3: 1} // two cores of two threads each
	for _, c := range []struct {
		cpus   []int
		known  cores
		layout string
		want   Place
	}{
		{[]int{0}, nil, "", place(results.CoLocated, []int{0}, []int{0}, []int{0})},
		{[]int{0, 1}, nil, "", place(results.Split, []int{0}, []int{1}, []int{1})},
		{[]int{0, 1}, cores{0: 0, 1: 1}, "", place(results.Split, []int{0}, []int{1}, []int{1})},
		{[]int{0, 1}, cores{0: 0, 1: 0}, "", place(results.CoLocated, []int{1}, []int{1}, []int{0})},
		{[]int{0, 1}, cores{0: 0, 1: 0}, "split", place(results.Split, []int{0}, []int{1}, []int{1})},
		{[]int{0, 1}, nil, "co-located", place(results.CoLocated, []int{1}, []int{1}, []int{0})},
		{[]int{0, 1}, nil, "shared", place(results.Shared, []int{0, 1}, []int{0, 1}, []int{0, 1})},
		{[]int{2, 3, 6}, nil, "", place(results.Split, []int{2}, []int{3, 6}, []int{3, 6})},
		{[]int{0, 1, 2, 3}, nil, "", place(results.Split, []int{0, 1}, []int{2, 3}, []int{2, 3})},
		{[]int{0, 1, 2, 3}, pairs, "", place(results.Split, []int{0, 2}, []int{1, 3}, []int{1, 3})},
		{[]int{1, 2, 3}, pairs, "", place(results.Split, []int{1, 3}, []int{2}, []int{2})},
		{[]int{0, 1, 2, 3}, nil, "co-located", place(results.CoLocated, []int{3}, []int{3}, []int{0, 1, 2})},
		{[]int{0, 1, 2, 3, 4}, nil, "", place(results.Split, []int{0, 1}, []int{2, 3, 4}, []int{2, 3, 4})},
	} {
		got, err := arrange(c.cpus, c.known, c.layout)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%v %v %q", c.cpus, c.known, c.layout)
	}
	_, err := arrange([]int{0}, nil, "split")
	require.ErrorContains(t, err, "at least 2 CPUs")
	_, err = arrange([]int{0, 1}, nil, "apart")
	require.ErrorContains(t, err, `no layout "apart"`)
	require.Equal(t, []int{1}, Place{Server: []int{1}, Load: []int{1}}.inUse())
}

// What the kernel says of the cores fits the CPUs that there are.
func TestLocate(t *testing.T) {
	cpus, err := netpoll.CPUs()
	require.NoError(t, err)
	place, err := Locate("")
	require.NoError(t, err)
	require.Equal(t, len(cpus) >= 2 && place.cores != 1, place.Layout == results.Split)
	known := readCores(cpus)
	for cpu, core := range known {
		require.LessOrEqual(t, core, cpu)
		for _, side := range [][]int{place.Server, place.Load} {
			for _, other := range side {
				require.True(t, place.Layout != results.Split || known[other] != core || slices.Contains(side, cpu), "CPU %d and %d are threads of one core", cpu, other)
			}
		}
	}
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

// How many rounds there are is known before the first, and does not hang on what is measured.
func TestPlannedRounds(t *testing.T) {
	items := []Item{{Workload: workload.Workload{Name: "a"}}, {Workload: workload.Workload{Name: "b"}}, {Workload: workload.Workload{Name: "b"}}}
	b := Bench{Items: items, Duration: 940 * time.Millisecond, Time: 31 * time.Second} // with starting it, a second
	plan := func() int {
		rounds, all := b.Plan()
		require.Equal(t, rounds, int(all/(3*time.Second)))
		return rounds
	}
	require.Equal(t, 10, plan())
	b.Time = time.Second
	require.Equal(t, stats.MinimumRounds, plan(), "whatever it takes")
	b.Rounds = 2
	require.Equal(t, 2, plan(), "as was asked for")

	b.Rounds, b.Time, b.Half = 0, 20*time.Second, []string{"b"}
	rounds, all := b.Plan()
	require.Equal(t, 8, rounds)
	require.Equal(t, 20*time.Second, all)
	require.Equal(t, 6, b.Fewer())
	b.Time = 40 * time.Second
	rounds, _ = b.Plan()
	require.Equal(t, 20, rounds)
	require.Equal(t, 10, b.Fewer())

	b.Rounds = rounds
	seen := map[string]int{}
	for round := 1; round <= rounds; round++ {
		for _, item := range b.due(round) {
			seen[item.Workload.Name]++
		}
		require.InDelta(t, round, seen["b"], 1, "spread evenly, two of them in every second round")
	}
	require.Equal(t, map[string]int{"a": 20, "b": 20}, seen)
}

var stageFolders = []string{"stage0-naive", "stage1-reuseport", "stage2-conn-timer", "stage3-native-parser", "stage4-scatter-gather", "stage5-speculative-read"}

func stageServers() (servers []Server) {
	for _, n := range stageFolders {
		servers = append(servers, Server{Name: n})
	}
	return servers
}

func TestLadderPlan(t *testing.T) {
	b := Bench{Generator: Embedded}
	require.NoError(t, b.Ladder(stageServers(), &Server{Name: BareC}))
	var got []string
	for _, item := range b.Items {
		name := harness.ShortName(item.Server.Name)
		if strings.HasSuffix(item.Server.Name, Again) {
			name += Again
		}
		got = append(got, name+" "+item.Workload.Name)
	}
	slices.Sort(got)
	require.Equal(t, []string{
		"bare hello", "stage0 again hello", "stage0 hello", "stage1 hello", "stage2 browser", "stage2 hello", "stage3 again browser", "stage3 body64k", "stage3 browser", "stage3 hello", "stage3 pipelined",
		"stage4 again body64k", "stage4 again pipelined", "stage4 body64k", "stage4 hello", "stage4 idle1k", "stage4 pipelined", "stage5 again hello", "stage5 hello", "stage5 idle1k",
	}, got)
	require.True(t, b.showPublished)
	targets := map[string][]string{}
	for _, r := range b.Ratios {
		if r.Kind == results.Target {
			name := harness.ShortName(r.Head)
			targets[name] = append(targets[name], r.Workload)
		}
		if r.Metric == results.RequestsPerSecond {
			require.True(t, slices.ContainsFunc(b.Ratios, func(n results.Ratio) bool { return n.Kind == results.Noise && n.Workload == r.Workload }), "%s has a verdict and no floor", r.Workload)
		}
	}
	require.Equal(t, map[string][]string{"stage1": {"hello"}, "stage2": {"hello"}, "stage3": {"hello", "browser"}, "stage4": {"pipelined", "body64k"}, "stage5": {"hello", "idle1k"}}, targets)

	b = Bench{Generator: Wrk}
	require.NoError(t, b.Ladder(stageServers(), nil))
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
	testenv.Slow(t)
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

func TestBareC(t *testing.T) { testC(t, BuildBareC) }

func TestRingC(t *testing.T) {
	if err := netpoll.RingError(); err != nil {
		t.Skip(err)
	}
	testC(t, BuildRingC)
}

func testC(t *testing.T, build func(ctx context.Context, root, folder string) (Server, bool, error)) {
	root, err := harness.FindRoot()
	require.NoError(t, err)
	s, ok, err := build(t.Context(), root, t.TempDir())
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

	root, err := harness.FindRoot()
	require.NoError(t, err)
	servers, err := BuildStages(t.Context(), root, t.TempDir(), []string{"stage5-speculative-read"})
	require.NoError(t, err)
	m, err := bench(t).measure(t.Context(), Item{Server: servers[0], Workload: w})
	require.NoError(t, err)
	require.NotZero(t, m.Requests)
	require.Empty(t, m.Errors, "what the generator expects is what a stage answers")
}
