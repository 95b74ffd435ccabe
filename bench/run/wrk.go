package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// FindWrk tells whether wrk is there; the error says what to do when it is not.
func FindWrk() error {
	if _, err := exec.LookPath("wrk"); err != nil {
		return errors.New("wrk is not installed: install it (apt-get install wrk), or leave LOAD and --load away for the embedded generator")
	}
	return nil
}

// WrkCan tells whether wrk can do a workload.
func WrkCan(w workload.Workload) error {
	switch {
	case w.Reconnect:
		return fmt.Errorf("wrk cannot do %s: it never makes a connection anew by itself", w.Name)
	case len(w.Opening) > 0:
		return fmt.Errorf("wrk cannot do %s: it knows no WebSockets", w.Name)
	case w.Idle > 0:
		return fmt.Errorf("wrk cannot do %s: it has no idle connections", w.Name)
	}
	return nil
}

// WholeSeconds is how long wrk measures when asked for d: it knows nothing shorter than a second.
func WholeSeconds(d time.Duration) time.Duration { return max(time.Second, d.Round(time.Second)) }

// wrkScript sends prebuilt bytes as they stand, and prints what was measured as
// JSON behind wrk's own text. Setting wrk.request, not a function of the name
// request, keeps wrk from calling into Lua for each of them.
const wrkScript = `local bytes = %s
wrk.init = function() wrk.request = function() return bytes end end
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format('\n{"requests":%%d,"microseconds":%%d,"bytes":%%d,"connect":%%d,"read":%%d,"write":%%d,"status":%%d,"timeout":%%d,' ..
    '"min":%%d,"mean":%%d,"p50":%%d,"p90":%%d,"p99":%%d,"p999":%%d,"max":%%d}\n',
    summary.requests, summary.duration, summary.bytes, e.connect, e.read, e.write, e.status, e.timeout,
    latency.min, latency.mean, latency:percentile(50), latency:percentile(90), latency:percentile(99), latency:percentile(99.9), latency.max))
end
`

// wrkResult is what the script prints; times are in microseconds.
type wrkResult struct {
	Requests     uint64  `json:"requests"`
	Microseconds float64 `json:"microseconds"`
	Bytes        uint64  `json:"bytes"`
	Connect      uint64  `json:"connect"`
	Read         uint64  `json:"read"`
	Write        uint64  `json:"write"`
	Status       uint64  `json:"status"`
	Timeout      uint64  `json:"timeout"`
	Min          int64   `json:"min"`
	Mean         float64 `json:"mean"`
	P50          int64   `json:"p50"`
	P90          int64   `json:"p90"`
	P99          int64   `json:"p99"`
	P999         int64   `json:"p999"`
	Max          int64   `json:"max"`
}

// luaString quotes bytes for Lua: a decimal escape for everything that is not plain.
func luaString(b []byte) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, c := range b {
		if c >= ' ' && c <= '~' && c != '"' && c != '\\' {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, `\%03d`, c)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// wrk drives s with wrk. It knows whole seconds only, and has no warm-up: the
// embedded generator does that, and finds the wrong answers that wrk does not see.
func (b *Bench) wrk(ctx context.Context, s *harness.Server, w workload.Workload) (result load.Result, before, after reading, err error) {
	var warm load.Result
	if b.Warmup > 0 {
		warm, err = b.warm(ctx, s, w)
	}
	if err == nil {
		before, err = b.look(ctx, s, 0)
	}
	if err == nil {
		result, err = b.runWrk(ctx, s, w)
	}
	if err == nil {
		after, err = b.look(ctx, s, 0)
		for kind, n := range warm.Errors {
			result.Errors["in the warm-up, which wrk has no part in: "+kind] = n
		}
		result.StaleDates = warm.StaleDates
	}
	return result, before, after, err
}

func (b *Bench) runWrk(ctx context.Context, s *harness.Server, w workload.Workload) (result load.Result, err error) {
	folder, err := os.MkdirTemp("", "ladder-wrk-")
	if err != nil {
		return result, err
	}
	defer os.RemoveAll(folder)
	script := filepath.Join(folder, "request.lua")
	text := fmt.Sprintf(wrkScript, luaString(bytes.Repeat(w.Request, w.Pipeline)))
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		return result, err
	}
	seconds := int(WholeSeconds(b.Duration).Seconds())
	threads := b.loadThreads(w)
	server, err := load.CPUOf(s.PID())
	if err != nil {
		return result, err
	}
	g, err := harness.Start(ctx, harness.Command{Name: "wrk", Path: "wrk", CPUs: b.place.Load, Args: []string{
		"-t", strconv.Itoa(threads), "-c", strconv.Itoa(w.Connections), "-d", strconv.Itoa(seconds) + "s",
		"--timeout", "10s", "-s", script, "http://" + s.Ready.Address + "/"}})
	if err != nil {
		return result, err
	}
	defer g.Close()
	said := g.Rest()
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	_, figures, ok := strings.Cut(said, "\n{")
	if g.ExitCode() != 0 || !ok {
		return result, g.EndedError("")
	}
	var r wrkResult
	if err := json.Unmarshal([]byte("{"+figures), &r); err != nil {
		return result, fmt.Errorf("what wrk said is not understood: %w", err)
	}
	result = r.convert(w, threads)
	if now, err := load.CPUOf(s.PID()); err == nil {
		result.ServerCPUNanos = now - server
	}
	result.ClientCPUNanos = g.CPUNanos()
	if n := float64(r.Requests); n > 0 {
		result.ServerCPUNanosPerRequest, result.ClientCPUNanosPerRequest = float64(result.ServerCPUNanos)/n, float64(result.ClientCPUNanos)/n
	}
	return result, nil
}

// convert brings wrk's figures into the generator's form. An answer whose
// status is wrong is no request here.
func (r wrkResult) convert(w workload.Workload, threads int) load.Result {
	out := load.Result{
		Workload: w.Name, Pipeline: w.Pipeline, Threads: threads, Connections: w.Connections,
		Established: w.Connections - int(min(r.Connect, uint64(w.Connections))),
		Seconds:     r.Microseconds / 1e6, Requests: r.Requests - min(r.Status, r.Requests), BytesRead: r.Bytes,
		Latency: load.Latency{
			Min: r.Min * 1000, Mean: r.Mean * 1000, P50: r.P50 * 1000, P90: r.P90 * 1000, P99: r.P99 * 1000, P999: r.P999 * 1000, Max: r.Max * 1000,
		},
		Errors: map[string]uint64{}, ConnectErrors: map[string]uint64{},
	}
	out.Elapsed = out.Seconds
	if out.Seconds > 0 {
		out.RequestsPerSecond = float64(out.Requests) / out.Seconds
	}
	for kind, n := range map[string]uint64{"read error": r.Read, "write error": r.Write, "status of 400 or more": r.Status, "timeout": r.Timeout} {
		if n > 0 {
			out.Errors[kind] = n
		}
	}
	if r.Connect > 0 {
		out.ConnectErrors["connect error"] = r.Connect
	}
	return out
}

// warm drives s with the embedded generator. That a result has errors in it is not an error here.
func (b *Bench) warm(ctx context.Context, s *harness.Server, w workload.Workload) (result load.Result, err error) {
	g, err := Drive{Command: b.Command, CPUs: b.place.Load, Address: s.Ready.Address, Workload: w, Threads: 1, Duration: b.Warmup}.start(ctx)
	if err != nil {
		return result, err
	}
	defer g.Close()
	if result, err = g.readResult(ctx); err == nil {
		err = g.Wait(harness.Patience)
	}
	return result, err
}
