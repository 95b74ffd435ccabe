package profile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

var buildFolder string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "ladder-profile-test-")
	if err != nil {
		panic(err)
	}
	buildFolder = folder
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// built has the generator's command and two stages.
var built = sync.OnceValue(func() error {
	text, err := exec.Command("go", "build", "-buildvcs=false", "-o", buildFolder+string(filepath.Separator),
		"../cmd/ladder", "../../stage2-conn-timer", "../../stage5-speculative-read").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
})

func testLab(t *testing.T) *lab {
	t.Helper()
	require.NoError(t, built())
	place, err := run.Locate("")
	require.NoError(t, err)
	return &lab{root: "../..", bin: buildFolder, out: t.TempDir(), command: filepath.Join(buildFolder, "ladder"), place: place, workers: 1, warmup: 5 * time.Millisecond}
}

func stage(name string) run.Server {
	return run.Server{Name: name, Path: filepath.Join(buildFolder, name), Admin: true}
}

// few is hello over few connections.
func few(t *testing.T) workload.Workload {
	t.Helper()
	w, err := workload.ByName(workload.Hello)
	require.NoError(t, err)
	w.Connections = 4
	return w
}

const moment = 100 * time.Millisecond

func TestCountersCoverTheMeasuredPartOnly(t *testing.T) {
	t.Parallel()
	l := testLab(t)
	o, err := l.drive(t.Context(), stage("stage2-conn-timer"), few(t), moment)
	require.NoError(t, err)
	require.Equal(t, int64(o.result.Requests+o.result.Late), o.requests, "neither the warm-up nor a request less")
	require.Positive(t, o.cpuNanos())
	require.Zero(t, o.counters.Total.Accepts)
	require.Zero(t, o.counters.Total.Closes)
	require.EqualValues(t, o.requests, o.counters.Total.Reads)
	require.EqualValues(t, o.requests, o.counters.Total.Writes)
}

// The C loop has no admin listener: the generator counts, and reads what the loop has used.
func TestTheCLoopIsRecordedToo(t *testing.T) {
	t.Parallel()
	l := testLab(t)
	bare, ok, err := run.BuildBareC(t.Context(), l.root, t.TempDir())
	require.NoError(t, err)
	if !ok {
		t.Skip("no C compiler here")
	}
	o, err := l.drive(t.Context(), bare, few(t), moment)
	require.NoError(t, err)
	require.Equal(t, int64(o.result.Requests+o.result.Late), o.requests)
	require.Positive(t, o.cpuNanos())
}

func TestStraceAgreesWithTheCounters(t *testing.T) {
	t.Parallel()
	l := testLab(t)
	strace, err := newStraceRecorder(l.place.Own)
	if err != nil {
		t.Skip(err)
	}
	defer strace.remove()
	v, err := l.countCalls(t.Context(), stage("stage2-conn-timer"), few(t), moment, strace, nil)
	if err != nil && strings.Contains(err.Error(), "may not attach") {
		t.Skip(err)
	}
	require.NoError(t, err)
	_, name := v.disagreement()
	require.Empty(t, name, "counters %v, strace %v", v.own, v.strace)
	for _, call := range []string{"recvfrom", "sendto", "epoll_ctl"} {
		require.Equal(t, v.outcome.requests, v.own[call], call)
		require.InDelta(t, v.own[call], v.strace[call].calls, slack, call)
	}
}

// What is said of the two counts is true of the figures above it.
func TestWhatIsSaidOfTheCounts(t *testing.T) {
	view := func(requests, own, strace int64) string {
		v := &callView{
			server: "stage2-conn-timer", workload: "hello", outcome: outcome{requests: requests},
			own: map[string]int64{"recvfrom": requests, "epoll_pwait": own}, strace: map[string]straceCount{"recvfrom": {calls: requests, share: 0.1}, "epoll_pwait": {calls: strace}, "futex": {calls: 7}},
		}
		var out strings.Builder
		v.text(&out)
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, len([]rune(line)), console.Width+1, line)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	require.Contains(t, view(5000, 40, 40), "The two counts agree. Beside")
	require.Contains(t, view(5000, 40, 96), "The two counts agree. What strace has more is the Go runtime's own: epoll_pwait 56.")
	require.Contains(t, view(5000, 40, 340), "The two counts differ by 300 calls of epoll_pwait, and should not.")
	require.Contains(t, view(10, 5, 46), "too few requests")
	churn := &callView{outcome: outcome{requests: 5000}, queued: 100, own: map[string]int64{"accept4": 5000}, strace: map[string]straceCount{"accept4": {calls: 5095}}}
	require.Contains(t, strings.Join(churn.notes(), " "), "connections that came while strace began or ended: accept4 95.")
	require.Contains(t, view(5000, 40, 40), "strace saw calls of the Go runtime and of the admin listener: futex 7.")
}

func TestNoAllocationFromStage3On(t *testing.T) {
	t.Parallel()
	l := testLab(t)
	before, err := l.allocations(t.Context(), stage("stage2-conn-timer"), few(t), moment)
	require.NoError(t, err)
	require.Contains(t, before.sites, site{"net/http.readRequest", "main.(*conn).parse"})
	require.InDelta(t, 1, before.sites[site{"net/http.readRequest", "main.(*conn).parse"}].objects, 0.05, "one for each request")
	require.Greater(t, before.all.objects, 5.0)

	after, err := l.allocations(t.Context(), stage("stage5-speculative-read"), few(t), moment)
	require.NoError(t, err)
	require.Empty(t, after.sites)
	var out strings.Builder
	allocTable(&out, []*allocView{before, after})
	require.Regexp(t, `1\.0\d\d +–  http\.readRequest for conn\.parse\n`, out.String())
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len([]rune(line)), console.Width+1, line)
	}
	after.text(&out)
	require.Contains(t, out.String(), "None.")
}

// The whole way with Go's own profiler, which needs no tool and no permission.
func TestFlameGraphWithGoAlone(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	l := testLab(t)
	var told []string
	tell := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	// Go's profiler takes whole seconds: the server is busy for as much of these as can be. On a machine that does other
	// things that may be none of the first, so the time grows until something is seen.
	var sides [][]*record
	for seconds := 2 * time.Second; len(sides) == 0; seconds *= 2 {
		s, err := newSampler(t.Context(), l, ProfilerGo, seconds, tell)
		require.NoError(t, err)
		sides, err = s.takeAll(t.Context(), []run.Server{stage("stage2-conn-timer")}, few(t), tell)
		s.close()
		if seconds > 30*time.Second || err == nil || !strings.Contains(err.Error(), "no sample") {
			require.NoError(t, err)
		}
	}
	require.Contains(t, told[0], "CPU profile of Go")
	var out strings.Builder
	_, err := l.writeFlame(&out, sides)
	require.NoError(t, err)
	require.Contains(t, out.String(), "kernel: TCP send")
	require.FileExists(t, filepath.Join(l.out, "flame-stage2-hello.html"))
	b, err := os.ReadFile(filepath.Join(l.out, "profile-stage2-hello-go.pb.gz"))
	require.NoError(t, err)
	p, err := parseProfile(b)
	require.NoError(t, err)
	require.Contains(t, p.Comments[0], "stage2-conn-timer on hello")
}

// overtaken is a recorder whose profile is over before the load is.
type overtaken struct{ *goRecorder }

func (o overtaken) finish(ctx context.Context) error {
	select {
	case <-o.recording.ended:
	case <-ctx.Done():
	}
	return o.goRecorder.finish(ctx)
}

// On a busy machine the load may take longer than it should, and than the profile.
func TestProfileThatEndsBeforeTheLoad(t *testing.T) {
	t.Parallel()
	l := testLab(t)
	recorder := &goRecorder{seconds: 1}
	o, err := l.drive(t.Context(), stage("stage2-conn-timer"), few(t), time.Second, overtaken{recorder})
	require.NoError(t, err)
	r, err := newRecord(recorder.profile, "stage2-conn-timer", "hello", goSource, o)
	require.NoError(t, err)
	whole := 0.0
	for _, part := range r.split() {
		whole += part
	}
	require.InEpsilon(t, o.cpuNanos(), whole, 0.001, "the parts still come to all of it")
}

func TestPerfSeesIntoTheKernel(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	l := testLab(t)
	perf, err := newPerfRecorder(t.Context(), l.place.Own)
	var no *perfUnavailable
	if errors.As(err, &no) {
		t.Skip(no.reason)
	}
	require.NoError(t, err)
	s := &sampler{lab: l, perf: perf, seconds: 400 * time.Millisecond, tell: t.Logf}
	defer s.close()
	records, err := s.take(t.Context(), stage("stage2-conn-timer"), few(t))
	require.NoError(t, err)
	parts := records[0].split()
	require.Positive(t, parts[kernelSend])
	require.Positive(t, parts[parsing]+parts[headMaking]+parts[goMemory]+parts[looping])
	inlined := false
	for _, l := range records[0].profile.Location {
		inlined = inlined || len(l.Line) > 1
	}
	require.True(t, inlined, "functions inside others have their names")
}

// perf that refuses is one line and no end of the matter.
func TestWithoutPermissionGoIsUsed(t *testing.T) {
	testenv.Slow(t)
	l := testLab(t)
	folder := t.TempDir()
	refusing := "#!/bin/sh\necho 'Error: Access to performance monitoring and observability operations is limited. Consider perf_event_paranoid' >&2\nexit 255\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "perf"), []byte(refusing), 0o755))
	t.Setenv("PATH", folder)
	var told []string
	tell := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	s, err := newSampler(t.Context(), l, ProfilerAuto, 0, tell)
	require.NoError(t, err)
	require.True(t, s.useGo)
	require.Nil(t, s.perf)
	require.Len(t, told, 1)
	require.NotContains(t, told[0], "\n")
	require.Contains(t, told[0], "CPU profile of Go")
	require.Contains(t, told[0], "kernel.perf_event_paranoid=1 kernel.kptr_restrict=0")

	_, err = newSampler(t.Context(), l, ProfilerPerf, 0, tell)
	require.ErrorContains(t, err, "perf_event_paranoid")
	require.NotContains(t, err.Error(), "\n")

	t.Setenv("PATH", t.TempDir())
	_, err = newSampler(t.Context(), l, ProfilerPerf, 0, tell)
	require.ErrorContains(t, err, "perf is not installed")
}

func TestIdleServerHasNoProfile(t *testing.T) {
	t.Parallel()
	l := testLab(t)
	require.NoError(t, l.session(t.Context(), stage("stage2-conn-timer"), func(s *session) error {
		_, err := takeRunning(t.Context(), s.Ready.Admin, 100*time.Millisecond)
		require.ErrorIs(t, err, errIdle)
		require.ErrorContains(t, err, "got no request in 1 s")
		require.NotContains(t, err.Error(), "\n")
		return nil
	}))
}

// killer kills the server in the middle of its recording.
type killer struct{ recorder }

func (k killer) start(ctx context.Context, s *session) error {
	if err := k.recorder.start(ctx, s); err != nil {
		return err
	}
	return s.Kill()
}

func TestServerThatDiesIsNamed(t *testing.T) {
	l := testLab(t)
	_, err := l.drive(t.Context(), stage("stage2-conn-timer"), few(t), moment, killer{&goRecorder{seconds: 2}})
	require.ErrorContains(t, err, "stage2-conn-timer ended while it was being looked at (signal: killed)")
	require.NotContains(t, err.Error(), "\n")
	require.Empty(t, children(t))
}

func TestInterruptedRecordingLeavesNothing(t *testing.T) {
	l := testLab(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := l.drive(ctx, stage("stage2-conn-timer"), few(t), time.Minute, canceller{cancel})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, children(t))
}

type canceller struct{ cancel context.CancelFunc }

func (c canceller) start(context.Context, *session) error { c.cancel(); return nil }
func (c canceller) finish(context.Context) error          { return nil }
func (c canceller) abandon()                              {}

// children lists the processes that this one has started and that are still there.
func children(t *testing.T) (out []string) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	for _, task := range tasks {
		b, _ := os.ReadFile(task) // a thread may have ended
		out = append(out, strings.Fields(string(b))...)
	}
	return out
}

// A profile that breaks off is no profile.
func TestProfileThatIsCutShort(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile("testdata/stage0-go.pb.gz")
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/debug/counters":
			fmt.Fprint(w, `{"stage":"stage2-conn-timer","total":{"requests":1},"runtime":{}}`)
		case "/debug/pprof/goroutine":
			fmt.Fprint(w, "runtime/pprof.profileWriter")
		case "/debug/pprof/profile":
			w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
			w.Write(whole[:len(whole)/2])
		}
	}))
	defer server.Close()
	_, err = takeRunning(t.Context(), server.Listener.Addr().String(), time.Second)
	require.ErrorContains(t, err, "cut short")
	require.NotContains(t, err.Error(), "\n")
}

func TestNobodyListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, err = takeRunning(t.Context(), address, time.Second)
	require.ErrorContains(t, err, "refused; is that the -admin address")
	_, err = takeRunning(t.Context(), "http://"+address+"/", time.Second)
	require.ErrorContains(t, err, "refused", "an address as it stands in a browser")
}
