//go:build linux

package load

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// At a rate the number of requests is known beforehand, whatever the machine does meanwhile.
func TestRateSendsWhatIsDue(t *testing.T) {
	for _, pipeline := range []int{1, 4} {
		r := rig(t, say(good))
		result, err := Run(t.Context(), options(r, func(o *Options) {
			o.Rate, o.Warmup, o.Duration, o.Threads = 2000, 20*time.Millisecond, 200*time.Millisecond, 2
			o.Workload.Pipeline = pipeline
		}))
		require.NoError(t, err)
		require.Zero(t, result.Failures(), "%v", result.Errors)
		require.Zero(t, result.Unsent)
		require.InDelta(t, 400, result.Requests+result.Late, float64(pipeline), "2,000 a second for 0.2 s")
		require.Equal(t, 2000.0, result.Rate)
		h, err := DecodeHistogram(result.Histogram)
		require.NoError(t, err)
		require.EqualValues(t, result.Requests+result.Late, h.TotalCount(), "late answers have a latency too")
	}
}

// A stall counts for all requests that were due meanwhile, not only for the one that was on its
// way.
func TestStallCountsFromWhenRequestsWereDue(t *testing.T) {
	const stall = 300 * time.Millisecond
	var answers atomic.Int64
	r := rig(t, func(c net.Conn, next func() bool) {
		for next() {
			if answers.Add(1) == 1 {
				time.Sleep(stall) // the rigging itself
			}
			if _, err := io.WriteString(c, good); err != nil {
				return
			}
		}
	})
	result, err := Run(t.Context(), options(r, func(o *Options) {
		o.Rate, o.Warmup, o.Duration, o.Threads = 1000, 0, stall, 1
		o.Workload.Connections = 1
	}))
	require.NoError(t, err)
	require.Zero(t, result.Failures(), "%v", result.Errors)
	require.InDelta(t, 300, result.Requests+result.Late, 1)
	// The request that was due after k ms cannot have been answered before the stall's end.
	require.GreaterOrEqual(t, result.Latency.P50, int64(145*time.Millisecond))
	require.GreaterOrEqual(t, result.Latency.P90, int64(260*time.Millisecond))
	require.Less(t, result.WokeLate, int64(stall/2), "the generator had no part in it")
}

const generatorVariable = "LADDER_TEST_GENERATOR"

// generate is a generator as a process of its own, which can be stopped.
func generate(target string) {
	o := Options{
		Target: target, Workload: workload.Workload{Name: "test", Request: []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), Status: 200, Body: []byte("Hello"), Connections: 50, Pipeline: 1},
		Threads: 1, Duration: time.Second, Timeout: 5 * time.Second, Rate: 2000,
	}
	result, err := Run(context.Background(), o)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		panic(err)
	}
	os.Exit(0)
}

// A generator that was stopped says so, and does not leave it to the server.
func TestAStoppedGeneratorTakesTheBlame(t *testing.T) {
	const stop = 300 * time.Millisecond
	var answers atomic.Int64
	underWay := make(chan struct{})
	r := rig(t, func(c net.Conn, next func() bool) {
		for next() {
			if answers.Add(1) == 300 {
				close(underWay)
			}
			if _, err := io.WriteString(c, good); err != nil {
				return
			}
		}
	})
	own, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(own)
	cmd.Env = append(os.Environ(), generatorVariable+"="+r.listener.Addr().String())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	require.NoError(t, cmd.Start())
	select {
	case <-underWay:
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(stop) // the rigging itself
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	require.NoError(t, cmd.Wait())
	var result Result
	require.NoError(t, json.Unmarshal(out.Bytes(), &result))
	require.GreaterOrEqual(t, result.WokeLate, int64(stop)*9/10, "the first that was due while it was stopped")
	require.GreaterOrEqual(t, result.Latency.Max, int64(stop)*9/10, "the latencies have it too")
}

func TestWhatWasNeverSentIsNotForgotten(t *testing.T) {
	r := rig(t, func(_ net.Conn, next func() bool) {
		for next() {
		}
	})
	result, err := Run(t.Context(), options(r, func(o *Options) {
		o.Rate, o.Warmup, o.Duration, o.Timeout, o.Threads = 1000, 0, 50*time.Millisecond, 100*time.Millisecond, 1
		o.Workload.Connections = 2
	}))
	require.NoError(t, err)
	require.EqualValues(t, 48, result.Unsent, "two were sent, on the two connections")
	require.EqualValues(t, 2, result.Errors["no answer within 100ms"], "%v", result.Errors)
	require.GreaterOrEqual(t, result.Latency.Min, int64(99*time.Millisecond), "all have waited as long as that")
}

func TestRateOutlivesLostConnections(t *testing.T) {
	var answers atomic.Int64
	r := rig(t, func(c net.Conn, next func() bool) {
		for next() {
			text := good
			if answers.Add(1)%20 == 0 {
				text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nHello"
			}
			if _, err := io.WriteString(c, text); err != nil || len(text) > len(good) {
				return
			}
		}
	})
	result, err := Run(t.Context(), options(r, func(o *Options) { o.Rate, o.Duration, o.Warmup = 2000, 200*time.Millisecond, 0 }))
	require.NoError(t, err)
	require.Zero(t, result.Failures(), "%v", result.Errors)
	require.InDelta(t, 400, result.Requests+result.Late, 1)
	require.NotZero(t, result.Reconnects)
}
