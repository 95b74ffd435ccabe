// Package load is the embedded load generator: a closed loop, in which a
// connection sends its next requests when all its answers are there, or an open
// one, in which requests are sent at a given rate.
//
// Its connections are spread over threads, each a locked OS thread with an
// epoll loop of its own. One answer costs one recvfrom, one sendto and one
// reading of the clock, and no allocation. Every answer is checked; one that
// is not the right one counts as an error, never as a request.
//
// What is asked for is package workload's; rounds, and where processes run, are package run's.
package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// Options say what to drive, and how.
type Options struct {
	Target   string // host:port
	Workload workload.Workload
	Threads  int // at least 1; no more are used than there are connections

	Warmup   time.Duration // answers in this time are checked, not counted
	Duration time.Duration // of the measured part

	// Timeout is how long an answer may be awaited once the measured part is
	// over, and how long all connections may take to be there before it.
	Timeout time.Duration

	// Rate, when not 0, makes it an open loop: so many requests per second, sent
	// when they are due on whichever connection is free. Latency counts from the
	// time at which a request was due.
	Rate float64

	// Sources are IP addresses of this machine that connections leave from, in
	// turns. Without any the kernel chooses, or several of 127.0.0.0/24 are used
	// when the ports of one would not do.
	Sources []string

	// ServerPID, when not 0, is a process on this machine whose CPU time is read
	// at both ends of the measured part.
	ServerPID int

	// AtRest, when given, is called after the warm-up, while no answer is
	// outstanding and every connection is open. An error ends the run.
	AtRest func() error

	// AtEnd, when given, is called after the measured part, again with no answer
	// outstanding and before any connection is closed.
	AtEnd func() error
}

// Result says what was measured. Counts are of the measured part, except
// those of connections and errors, which are of the whole run: an error in the
// warm-up is an error.
type Result struct {
	Target      string `json:"target"`
	Workload    string `json:"workload"`
	Pipeline    int    `json:"pipeline"`
	Threads     int    `json:"threads"`
	Connections int    `json:"connections"` // asked for
	Idle        int    `json:"idle"`        // asked for beside them
	Sources     int    `json:"sources"`     // addresses that they left from

	Rate float64 `json:"rate,omitempty"` // requests per second that were due; 0 for a closed loop

	Established   int               `json:"established"`              // connected when the measured part began, idle ones included; with a new one for every request, at the start
	Answered      int               `json:"answered"`                 // those that ever brought a right answer
	ConnectErrors map[string]uint64 `json:"connect_errors,omitempty"` // attempts that failed, by kind
	Reconnects    uint64            `json:"reconnects"`               // connections made anew, wanted or not
	Errors        map[string]uint64 `json:"errors,omitempty"`         // wrong answers and lost connections, by kind

	// StaleDates counts heads, among those that were looked at, whose Date was more than ten
	// seconds away from the time. Looked at are one of each second, and the last; none if the
	// server is not on this machine.
	StaleDates uint64 `json:"stale_dates,omitempty"`
	// Undated counts heads, among those that were looked at, without a Date (RFC 9110, section 6.6.1:
	// a server with a clock sends one).
	Undated uint64 `json:"undated,omitempty"`

	Began    time.Time `json:"began,omitzero"` // the measured part, by the clock of the generator's machine
	Seconds  float64   `json:"seconds"`
	Requests uint64    `json:"requests"` // right answers within Seconds
	Late     uint64    `json:"late"`     // right answers to requests due within Seconds that came after
	Unsent   uint64    `json:"unsent"`   // due within Seconds, never sent: no connection was free in time
	// SentLate are requests of an open loop that were sent more than a millisecond after they were
	// due although a connection was free: the generator's own doing, such as a CPU that it did not
	// get. WokeLate is by how much its loop was behind its time at most, 0 up to a millisecond.
	// Latency counts them all the same.
	SentLate          uint64  `json:"sent_late,omitempty"`
	WokeLate          int64   `json:"woke_late_ns,omitempty"`
	RequestsPerSecond float64 `json:"requests_per_second"`
	BytesRead         uint64  `json:"bytes_read"`

	Latency   Latency `json:"latency"`
	Histogram string  `json:"histogram,omitempty"` // of nanoseconds; HdrHistogram's V2 compressed form in base64

	ClientCPUNanosPerRequest float64 `json:"client_cpu_ns_per_request"`
	ClientReads              uint64  `json:"client_reads"`
	ClientWrites             uint64  `json:"client_writes"`
	ClientWaits              uint64  `json:"client_epoll_waits"`

	// ServerCPUNanosPerRequest is 0 without a ServerPID. Late answers count.
	ServerCPUNanosPerRequest float64 `json:"server_cpu_ns_per_request,omitempty"`
	ServerCPUNanos           int64   `json:"server_cpu_ns,omitempty"`
	ClientCPUNanos           int64   `json:"client_cpu_ns"`
	// Elapsed is what the CPU times are to be set against: until the last
	// answer, so a little longer than Seconds.
	Elapsed float64 `json:"elapsed_seconds"`

	// Overlap is for merged results: the share of the longest measured part in
	// which all generators measured. Rates add up only as far as that is near 1.
	Overlap float64 `json:"overlap,omitempty"`
}

// Latency is in nanoseconds, from just before a request was sent, or from when
// it was due at a given rate, until its answer was read. Late answers count, and
// those that never came with the time that they were waited for: a stall at the
// end would else be in no figure. With pipelining every answer counts from the sending of its
// batch; with a new connection for each request, from its beginning.
type Latency struct {
	Min  int64   `json:"min"`
	Mean float64 `json:"mean"`
	P50  int64   `json:"p50"`
	P90  int64   `json:"p90"`
	P99  int64   `json:"p99"`
	P999 int64   `json:"p99.9"`
	Max  int64   `json:"max"`
}

// Failures is the number of errors of both kinds.
func (r Result) Failures() (n uint64) {
	for _, v := range r.Errors {
		n += v
	}
	for _, v := range r.ConnectErrors {
		n += v
	}
	return n
}

// NewHistogram returns an empty histogram as Result uses them: nanoseconds up
// to five minutes, three digits, in steps of 64 ns at the least.
func NewHistogram() *hdr.Histogram { return hdr.New(64, longest, 3) }

const longest = int64(5 * time.Minute)

// DecodeHistogram reads Result.Histogram back.
func DecodeHistogram(text string) (*hdr.Histogram, error) {
	h, err := hdr.Decode([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the histogram of a result is damaged: %w", err)
	}
	return h, nil
}

// LatencyOf reads the figures off a histogram; an empty one has none.
func LatencyOf(h *hdr.Histogram) Latency {
	if h.TotalCount() == 0 {
		return Latency{}
	}
	at := h.ValueAtPercentilesSlice([]float64{50, 90, 99, 99.9})
	return Latency{Min: h.Min(), Mean: h.Mean(), P50: at[0], P90: at[1], P99: at[2], P999: at[3], Max: h.Max()}
}

// Check says what cannot be done whatever the server is: a value that is out of bounds, or two that
// exclude each other. Run begins with it.
func (o *Options) Check() error {
	switch {
	case o.Workload.Name == "":
		return errors.New("no workload chosen")
	case o.Workload.Connections < 1 || o.Workload.Pipeline < 1 || o.Workload.Idle < 0:
		return errors.New("connections and pipeline depth must be at least 1")
	case o.Workload.Reconnect && o.Workload.Pipeline > 1:
		return errors.New("a new connection for every request cannot be pipelined: use --pipeline 1")
	case len(o.Workload.Opening) > 0 && o.Workload.Reconnect:
		return errors.New("a WebSocket is not opened for every message")
	case o.Threads < 1:
		return errors.New("--threads must be at least 1")
	case o.Duration <= 0:
		return errors.New("--duration must be positive")
	case o.Rate < 0 || math.IsNaN(o.Rate) || math.IsInf(o.Rate, 0):
		return errors.New("--rate must be positive")
	case o.Rate > 0 && o.Workload.Reconnect:
		return fmt.Errorf("%s cannot be sent at a rate: it makes a new connection for every request", o.Workload.Name)
	case o.Warmup < 0 || o.Timeout <= 0:
		return errors.New("--warmup must not be negative, --timeout must be positive")
	}
	for _, host := range o.Sources {
		if _, err := netip.ParseAddr(host); err != nil {
			return fmt.Errorf("bad source address %q: write an IP address of this machine", host)
		}
	}
	return nil
}

// Run drives the target. It returns what it has so far together with an error
// when the server goes away or ctx ends; the figures are then of the time
// until that.
func Run(ctx context.Context, o Options) (Result, error) {
	result := Result{Target: o.Target, Workload: o.Workload.Name, Pipeline: o.Workload.Pipeline, Connections: o.Workload.Connections, Idle: o.Workload.Idle, Rate: o.Rate}
	if err := o.Check(); err != nil {
		return result, err
	}
	address, err := netpoll.ParseAddress(o.Target)
	if err != nil {
		return result, err
	}
	if address.Port() == 0 {
		return result, fmt.Errorf("bad target %q: port 0 is no port to connect to", o.Target)
	}
	threads, err := startThreads(&o, address)
	if err != nil {
		return result, err
	}
	defer threads.close()
	result.Threads, result.Sources = len(threads.all), max(1, len(threads.all[0].sources))
	stop := context.AfterFunc(ctx, threads.stop)
	defer stop()

	err = threads.run(phase{kind: connecting, length: o.Timeout})
	for _, t := range threads.all {
		result.Established += t.open
	}
	if err == nil && (o.Warmup > 0 || o.Workload.Idle > 0) {
		err = threads.run(phase{kind: warming, length: o.Warmup, timeout: o.Timeout})
	}
	if err == nil && o.AtRest != nil {
		err = o.AtRest()
	}
	if err == nil {
		err = threads.measure(&result)
	}
	threads.collect(&result)
	if err == nil && o.AtEnd != nil {
		err = o.AtEnd()
	}
	if err == nil {
		err = ctx.Err()
	}
	return result, err
}

// measure runs the measured part between two readings of the CPU clocks.
func (s *threads) measure(r *Result) error {
	// Where every request has its own, those of the beginning have long been closed.
	if !s.o.Workload.Reconnect {
		r.Established = 0
	}
	for _, t := range s.all {
		if !s.o.Workload.Reconnect {
			r.Established += t.open
		}
		t.before = t.counters
	}
	client := netpoll.ProcessCPUNanoseconds()
	var server int64
	var err error
	if s.o.ServerPID != 0 {
		if server, err = CPUOf(s.o.ServerPID); err != nil {
			return err
		}
	}
	r.Began = time.Now().UTC()
	begin := s.now()
	err = s.run(phase{kind: measuring, length: s.o.Duration, timeout: s.o.Timeout})
	elapsed := s.now() - begin
	r.Elapsed = elapsed.Seconds()
	r.Seconds = min(elapsed, s.o.Duration).Seconds()
	if s.o.ServerPID != 0 {
		// A server that has died has no clock any more; err says so better.
		if now, clockErr := CPUOf(s.o.ServerPID); clockErr == nil {
			r.ServerCPUNanos = now - server
		}
	}
	r.ClientCPUNanos = netpoll.ProcessCPUNanoseconds() - client
	return err
}

// collect adds up what the threads have.
func (s *threads) collect(r *Result) {
	r.Errors, r.ConnectErrors = map[string]uint64{}, map[string]uint64{}
	all := NewHistogram()
	for _, t := range s.all {
		r.Requests += t.requests
		r.Late += t.late
		r.Unsent += t.unsent
		r.Reconnects += t.reconnects
		r.StaleDates += t.checker.stale
		r.Undated += t.checker.undated
		r.SentLate += t.plan.late
		r.WokeLate = max(r.WokeLate, int64(t.plan.latest))
		done := t.counters.Sub(t.before)
		r.BytesRead += done.ReadBytes
		r.ClientReads += done.Reads
		r.ClientWrites += done.Writes
		r.ClientWaits += done.EpollWaits
		add(r.Errors, t.errors)
		add(r.ConnectErrors, t.connectErrors)
		for i := range t.connections {
			if t.connections[i].answered {
				r.Answered++
			}
		}
		all.Merge(t.latency)
	}
	if r.Seconds > 0 {
		r.RequestsPerSecond = float64(r.Requests) / r.Seconds
	}
	if n := float64(r.Requests + r.Late); n > 0 {
		r.ClientCPUNanosPerRequest = float64(r.ClientCPUNanos) / n
		r.ServerCPUNanosPerRequest = float64(r.ServerCPUNanos) / n
	}
	r.Latency = LatencyOf(all)
	if encoded, err := all.Encode(hdr.V2CompressedEncodingCookieBase); err == nil {
		r.Histogram = string(encoded)
	}
}

func add(to, from map[string]uint64) {
	for kind := range maps.Keys(from) {
		to[kind] += from[kind]
	}
}
