//go:build linux

package load

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func TestMain(m *testing.M) {
	if os.Getenv("LADDER_TEST_FEW_PORTS") != "" {
		fewPorts()
	}
	if target := os.Getenv(generatorVariable); target != "" {
		generate(target)
	}
	goleak.VerifyTestMain(m)
}

// rigged is a server that does exactly what serve does with each connection.
// serve gets a function that awaits the next request, false at the end.
type rigged struct {
	listener net.Listener
	group    sync.WaitGroup
	accepted atomic.Int64
}

func rig(t *testing.T, serve func(c net.Conn, next func() bool)) *rigged {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &rigged{listener: listener}
	r.group.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			r.accepted.Add(1)
			r.group.Go(func() {
				defer c.Close()
				reader := bufio.NewReader(c)
				serve(c, func() bool {
					for {
						line, err := reader.ReadString('\n')
						if err != nil {
							return false
						}
						if line == "\r\n" {
							return true
						}
					}
				})
			})
		}
	})
	t.Cleanup(func() { listener.Close(); r.group.Wait() })
	return r
}

const good = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello"

func say(text string) func(net.Conn, func() bool) {
	return func(c net.Conn, next func() bool) {
		for next() {
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}

func options(r *rigged, change ...func(*Options)) Options {
	o := Options{
		Target: r.listener.Addr().String(),
		Workload: workload.Workload{
			Name: "test", Request: []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), Status: 200, Body: []byte("Hello"),
			Connections: 8, Pipeline: 1,
		},
		Threads: 2, Warmup: 20 * time.Millisecond, Duration: 100 * time.Millisecond, Timeout: 5 * time.Second,
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

func TestRightAnswersAreRequests(t *testing.T) {
	r := rig(t, say(good))
	result, err := Run(t.Context(), options(r))
	require.NoError(t, err)
	require.NotZero(t, result.Requests)
	require.Zero(t, result.Failures(), "%v %v", result.Errors, result.ConnectErrors)
	require.Equal(t, 8, result.Established)
	require.Equal(t, 8, result.Answered)
	require.Equal(t, 2, result.Threads)
	require.Zero(t, result.Reconnects)
	require.EqualValues(t, 8, r.accepted.Load())
	require.Equal(t, 0.1, result.Seconds)
	require.InEpsilon(t, float64(result.Requests)/0.1, result.RequestsPerSecond, 1e-9)
	require.Positive(t, result.ClientCPUNanosPerRequest)
	require.GreaterOrEqual(t, result.ClientReads, result.Requests)
	require.GreaterOrEqual(t, result.BytesRead, result.Requests*uint64(len(good)))

	h, err := DecodeHistogram(result.Histogram)
	require.NoError(t, err)
	require.EqualValues(t, result.Requests+result.Late, h.TotalCount())
	require.Equal(t, result.Latency, LatencyOf(h))
	require.Positive(t, result.Latency.P50)
}

func TestPipelined(t *testing.T) {
	r := rig(t, say(good))
	result, err := Run(t.Context(), options(r, func(o *Options) { o.Workload.Pipeline = 16 }))
	require.NoError(t, err)
	require.Zero(t, result.Failures(), "%v", result.Errors)
	require.NotZero(t, result.Requests)
	// Whole batches only, although the answers came in any number of pieces.
	require.Zero(t, (result.Requests+result.Late)%16)
}

func TestAnswersInSmallPieces(t *testing.T) {
	r := rig(t, func(c net.Conn, next func() bool) {
		for next() {
			for i := range good {
				if _, err := io.WriteString(c, good[i:i+1]); err != nil {
					return
				}
			}
		}
	})
	result, err := Run(t.Context(), options(r))
	require.NoError(t, err)
	require.Zero(t, result.Failures(), "%v", result.Errors)
	require.NotZero(t, result.Requests)
}

func TestRequestsLargerThanTheSocketBuffer(t *testing.T) {
	r := rig(t, func(c net.Conn, next func() bool) {
		buffer := make([]byte, 32<<20)
		for {
			if _, err := io.ReadFull(c, buffer); err != nil {
				return
			}
			if _, err := io.WriteString(c, good); err != nil {
				return
			}
		}
	})
	result, err := Run(t.Context(), options(r, func(o *Options) {
		o.Workload.Request = make([]byte, 32<<20)
		o.Workload.Connections, o.Threads = 2, 1
		o.Timeout = time.Minute // of much memory, on a machine that does other things
	}))
	require.NoError(t, err)
	require.Zero(t, result.Failures(), "%v", result.Errors)
	require.NotZero(t, result.Requests+result.Late)
	require.Greater(t, result.ClientWrites, result.Requests+result.Late, "one request takes several writes")
}

func TestWrongAnswersAreErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, kind string }{
		"bytes":   {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHellO", "body differs"},
		"length":  {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nHell", "length 4"},
		"status":  {"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 5\r\n\r\nHello", "status 500"},
		"garbage": {"220 mail.example ESMTP\r\n", "not an HTTP/1 answer"},
		"date":    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDate: Mon, 41 Jan 2024 00:00:00 GMT\r\n\r\nHello", "the Date is garbled"},
		"type":    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/html\r\n\r\nHello", `Content-Type "text/html"`},
		"no type": {good, `Content-Type ""`},
		"twice":   {good + good, "answer to no request"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rig(t, say(c.text))
			result, err := Run(t.Context(), options(r, func(o *Options) {
				if strings.HasSuffix(name, "type") {
					o.Workload.ContentType = "text/plain"
				}
			}))
			require.NoError(t, err)
			require.Zero(t, result.Requests+result.Late)
			require.NotZero(t, result.Errors[c.kind], "%v", result.Errors)
			require.Zero(t, result.RequestsPerSecond)
			require.Zero(t, result.Latency.Max, "a wrong answer has no latency either")
		})
	}
}

// A server that is always one answer ahead of the requests would have no latency.
func TestAnswersThatNobodyAskedForAreErrors(t *testing.T) {
	var connections atomic.Int64
	given := make(chan struct{}, 8)
	r := rig(t, func(c net.Conn, next func() bool) {
		if connections.Add(1) > 8 {
			say(good)(c, next)
			return
		}
		io.WriteString(c, good)
		given <- struct{}{}
		for next() { // answered already
		}
	})
	result, err := Run(t.Context(), options(r, func(o *Options) {
		o.Warmup = 0
		o.AtRest = func() error { // nothing has been sent, and every answer is there
			for range 8 {
				<-given
			}
			return nil
		}
	}))
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"answer to no request": 8}, result.Errors)
}

func TestDatesThatStandStillAreSeen(t *testing.T) {
	with := func(date string) string {
		return "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDate: " + date + "\r\n\r\nHello"
	}
	for name, c := range map[string]struct {
		text  string
		stale bool
	}{
		"none": {good, false}, "right": {with(time.Now().UTC().Format(http.TimeFormat)), false},
		"old": {with("Mon, 01 Jan 2024 00:00:00 GMT"), true}, "future": {with("Fri, 01 Jan 2100 00:00:00 GMT"), true},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Run(t.Context(), options(rig(t, say(c.text))))
			require.NoError(t, err)
			require.Zero(t, result.Failures(), "%v", result.Errors)
			require.Equal(t, c.stale, result.StaleDates > 0)
			require.Equal(t, name == "none", result.Undated > 0)
		})
	}
	// One that was right when the run began is looked at again at the end.
	c := checker{dates: true, head: head{date: time.Now().Unix()}}
	c.judgeDate()
	require.Zero(t, c.stale)
	c.head.date -= dateSlack + 1
	c.judgeDate()
	require.EqualValues(t, 1, c.stale)
}

func TestOneWrongByteAmongManyIsSeen(t *testing.T) {
	var answers atomic.Int64
	r := rig(t, func(c net.Conn, next func() bool) {
		for next() {
			text := good
			if answers.Add(1) == 50 {
				text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHelIo"
			}
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	})
	result, err := Run(t.Context(), options(r))
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"body differs": 1}, result.Errors)
	require.NotZero(t, result.Requests)
}

// A server with a pattern in what it gets wrong is found out: of large bodies a share is compared, but
// by chance. Here the wrong ones are never among every 16th, which once were those compared.
func TestEveryWrongBodyHasAChanceToBeSeen(t *testing.T) {
	right := strings.Repeat("a", mergedBody+1)
	text := func(body string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	var answers, wrong atomic.Int64 // each run has a connection of its own, and the last one's may still be served
	r := rig(t, func(c net.Conn, next func() bool) {
		for next() {
			body := right
			if answers.Add(1)%20 == 1 {
				wrong.Add(1)
				body = right[1:] + "b"
			}
			if _, err := io.WriteString(c, text(body)); err != nil {
				return
			}
		}
	})
	const enough = 300 // all of them escape once in a hundred million times
	for wrong.Load() < enough {
		result, err := Run(t.Context(), options(r, func(o *Options) {
			o.Workload.Body, o.Workload.Connections, o.Threads, o.Duration = []byte(right), 1, 1, 200*time.Millisecond
		}))
		require.NoError(t, err)
		if result.Errors["body differs"] > 0 {
			return
		}
	}
	t.Fatalf("%d wrong bodies among %d went unseen", wrong.Load(), answers.Load())
}

// What a server does at the very end of a closed loop is in the figures too.
func TestAStallAtTheEndIsNotDropped(t *testing.T) {
	const stall = 300 * time.Millisecond
	var first sync.Once
	var begin time.Time
	r := rig(t, func(c net.Conn, next func() bool) {
		stalled := false
		for next() {
			first.Do(func() { begin = time.Now() })
			if !stalled && time.Since(begin) > 30*time.Millisecond {
				stalled = true
				time.Sleep(stall) // the rigging itself
			}
			if _, err := io.WriteString(c, good); err != nil {
				return
			}
		}
	})
	result, err := Run(t.Context(), options(r, func(o *Options) { o.Warmup = 0 }))
	require.NoError(t, err)
	require.Zero(t, result.Failures(), "%v", result.Errors)
	require.EqualValues(t, 8, result.Late, "one of each connection")
	require.GreaterOrEqual(t, result.Latency.Max, int64(stall)*99/100)
	h, err := DecodeHistogram(result.Histogram)
	require.NoError(t, err)
	require.EqualValues(t, result.Requests+8, h.TotalCount())
}

func TestConnectionsThatTheServerEnds(t *testing.T) {
	t.Run("after an announcement", func(t *testing.T) {
		r := rig(t, func(c net.Conn, next func() bool) {
			if next() {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nHello")
			}
		})
		result, err := Run(t.Context(), options(r))
		require.NoError(t, err)
		require.Zero(t, result.Failures(), "%v", result.Errors)
		require.NotZero(t, result.Requests)
		require.NotZero(t, result.Reconnects)
	})
	t.Run("between requests", func(t *testing.T) {
		r := rig(t, func(c net.Conn, next func() bool) {
			if next() {
				io.WriteString(c, good)
			}
		})
		result, err := Run(t.Context(), options(r))
		require.NoError(t, err)
		require.NotZero(t, result.Reconnects)
		require.NotZero(t, result.Failures(), "the next request was on its way")
	})
	t.Run("without an answer", func(t *testing.T) {
		r := rig(t, func(c net.Conn, next func() bool) { next() })
		result, err := Run(t.Context(), options(r))
		require.NoError(t, err)
		require.Zero(t, result.Requests)
		require.NotZero(t, result.Errors["closed before the answer"])
		require.Zero(t, result.Answered)
	})
	t.Run("in the middle of one", func(t *testing.T) {
		r := rig(t, func(c net.Conn, next func() bool) {
			if next() {
				io.WriteString(c, good[:len(good)-2])
			}
		})
		result, err := Run(t.Context(), options(r))
		require.NoError(t, err)
		require.Zero(t, result.Requests)
		require.NotZero(t, result.Errors["closed before the answer"])
	})
}

func TestChurnMakesAConnectionForEachRequest(t *testing.T) {
	r := rig(t, func(c net.Conn, next func() bool) {
		if next() {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nHello")
		}
	})
	result, err := Run(t.Context(), options(r, func(o *Options) { o.Workload.Reconnect = true }))
	require.NoError(t, err)
	require.Zero(t, result.Failures(), "%v", result.Errors)
	require.NotZero(t, result.Requests)
	require.GreaterOrEqual(t, uint64(r.accepted.Load()), result.Requests+result.Late)
	require.Equal(t, 8, result.Established)
}

func TestIdleConnectionsAskOnce(t *testing.T) {
	var mutex sync.Mutex
	perConnection := map[net.Conn]int{}
	r := rig(t, func(c net.Conn, next func() bool) {
		for next() {
			mutex.Lock()
			perConnection[c]++
			mutex.Unlock()
			if _, err := io.WriteString(c, good); err != nil {
				return
			}
		}
	})
	rested := false
	result, err := Run(t.Context(), options(r, func(o *Options) {
		o.Workload.Connections, o.Workload.Idle, o.Warmup = 1, 50, 0
		o.AtRest = func() error { rested = true; return nil }
	}))
	require.NoError(t, err)
	require.True(t, rested)
	require.Equal(t, 51, result.Established)
	require.Equal(t, 51, result.Answered)
	mutex.Lock()
	defer mutex.Unlock()
	once := 0
	for _, n := range perConnection {
		if n == 1 {
			once++
		}
	}
	require.Equal(t, 50, once)
}

func TestNothingThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener.Close()
	o := options(&rigged{listener: listener})
	result, err := Run(t.Context(), o)
	require.ErrorContains(t, err, "cannot connect to "+o.Target+": connection refused: nothing listens there")
	require.Equal(t, map[string]uint64{"connection refused": 8 * attempts}, result.ConnectErrors)
	require.Zero(t, result.Established)
}

func TestServerThatDies(t *testing.T) {
	r := rig(t, say(good))
	o := options(r, func(o *Options) { o.Duration, o.Warmup = time.Minute, 0 })
	var connections []net.Conn
	var mutex sync.Mutex
	var answers atomic.Int64
	dead := make(chan struct{})
	r2 := rig(t, func(c net.Conn, next func() bool) {
		mutex.Lock()
		connections = append(connections, c)
		mutex.Unlock()
		for next() {
			if answers.Add(1) == 500 {
				close(dead)
			}
			if _, err := io.WriteString(c, good); err != nil {
				return
			}
		}
	})
	go func() {
		<-dead
		r2.listener.Close()
		mutex.Lock()
		defer mutex.Unlock()
		for _, c := range connections {
			c.Close()
		}
	}()
	o.Target = r2.listener.Addr().String()
	result, err := Run(t.Context(), o)
	require.ErrorIs(t, err, errLost)
	require.ErrorContains(t, err, "connection refused")
	require.NotZero(t, result.Requests, "what was measured until then is kept")
	require.Less(t, result.Seconds, 60.0)
	require.NotZero(t, result.Failures())
}

func TestServerThatSleeps(t *testing.T) {
	const pause = 20 * time.Millisecond
	r := rig(t, func(c net.Conn, next func() bool) {
		for next() {
			time.Sleep(pause) // the rigging itself: this server is slow
			if _, err := io.WriteString(c, good); err != nil {
				return
			}
		}
	})
	result, err := Run(t.Context(), options(r))
	require.NoError(t, err)
	require.Zero(t, result.Failures())
	// 8 connections, none can have more than one answer in 20 ms.
	require.LessOrEqual(t, result.Requests, uint64(8*100/20))
	require.GreaterOrEqual(t, result.Latency.Min, pause.Nanoseconds()*99/100, "three digits")
}

func TestServerThatNeverAnswers(t *testing.T) {
	r := rig(t, func(c net.Conn, next func() bool) {
		for next() {
		}
	})
	result, err := Run(t.Context(), options(r, func(o *Options) { o.Timeout = 2 * time.Second })) // connecting has to fit in, too
	require.NoError(t, err)
	require.Zero(t, result.Requests)
	require.NotZero(t, result.Errors["no answer within 2s"], "%v", result.Errors)
}

func TestStopKeepsWhatThereIs(t *testing.T) {
	r := rig(t, say(good))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result, err := Run(ctx, options(r, func(o *Options) {
		o.Duration = time.Minute
		o.AtRest = func() error {
			time.AfterFunc(50*time.Millisecond, cancel)
			return nil
		}
	}))
	require.ErrorIs(t, err, context.Canceled)
	require.NotZero(t, result.Requests)
	require.Less(t, result.Seconds, 60.0)
}

func TestAtRestCanRefuse(t *testing.T) {
	r := rig(t, say(good))
	_, err := Run(t.Context(), options(r, func(o *Options) { o.AtRest = func() error { return fmt.Errorf("not today") } }))
	require.EqualError(t, err, "not today")
}

func TestServerCPUIsRead(t *testing.T) {
	r := rig(t, say(good))
	result, err := Run(t.Context(), options(r, func(o *Options) { o.ServerPID = os.Getpid() }))
	require.NoError(t, err)
	require.Positive(t, result.ServerCPUNanosPerRequest)
	// This process is both, so the two clocks are one.
	require.InEpsilon(t, result.ClientCPUNanos, result.ServerCPUNanos, 0.05)
}

func TestBadOptions(t *testing.T) {
	r := rig(t, say(good))
	for want, change := range map[string]func(*Options){
		"no workload":                 func(o *Options) { o.Workload.Name = "" },
		"must be at least 1":          func(o *Options) { o.Workload.Connections = 0 },
		"--threads":                   func(o *Options) { o.Threads = 0 },
		"--duration":                  func(o *Options) { o.Duration = 0 },
		"--timeout":                   func(o *Options) { o.Timeout = 0 },
		"--rate must be positive":     func(o *Options) { o.Rate = -1 },
		"cannot be sent at a rate":    func(o *Options) { o.Rate, o.Workload.Reconnect = 10, true },
		"bad source address":          func(o *Options) { o.Sources = []string{"eth0"} },
		"cannot be pipelined":         func(o *Options) { o.Workload.Reconnect, o.Workload.Pipeline = true, 2 },
		"write host:port":             func(o *Options) { o.Target = "127.0.0.1" },
		"port 0":                      func(o *Options) { o.Target = "127.0.0.1:0" },
		"CPU time of process 4194305": func(o *Options) { o.ServerPID = 1<<22 + 1 },
	} {
		_, err := Run(t.Context(), options(r, change))
		require.ErrorContains(t, err, want)
	}
}
