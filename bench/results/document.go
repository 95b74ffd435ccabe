// Package results holds what a run leaves behind: the document that is written as JSON, with the
// verdicts on its ratios and the notes on what disturbed it. How it is shown is package report's.
package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/stats"
)

// Schema and Version stand at the head of every JSON file. Version rises when
// a field changes its meaning or goes away; a new field does not raise it.
const (
	Schema  = "qps-ladder/bench"
	Version = 2 // since a verdict takes the noise floor too
)

// Complete is how a run ends that was not cut short.
const Complete = "complete"

// Document is one run of the bench. bench/README.md describes every field.
type Document struct {
	Schema  string    `json:"schema"`
	Version int       `json:"version"`
	Created time.Time `json:"created"`
	Command string    `json:"command"`
	Ended   string    `json:"ended"` // Complete, or why the run ended before

	Machine   Machine    `json:"machine"`
	Method    Method     `json:"method"`
	Servers   []Server   `json:"servers"`
	Workloads []Workload `json:"workloads"`

	Rows   []Row    `json:"rows"`
	Ratios []Ratio  `json:"ratios"`
	Notes  []string `json:"notes"` // what a reader must know, one line each
	// Remarks are what the command has to say beside its figures, such as what this machine capped;
	// they are among the notes too.
	Remarks []string `json:"remarks,omitempty"`

	Measurements []Measurement `json:"measurements"`
}

// Machine is where it ran. What could not be found out is empty.
type Machine struct {
	CPU          string   `json:"cpu"`
	CPUs         int      `json:"cpus"` // that this process may use
	Architecture string   `json:"architecture"`
	MemoryBytes  int64    `json:"memory_bytes"`
	Kernel       string   `json:"kernel"`
	Go           string   `json:"go"`
	Virtual      string   `json:"virtual"`
	Mitigations  []string `json:"mitigations"`
	LoadAverage  float64  `json:"load_average"` // of one minute, before the run

	Governor string `json:"governor,omitempty"` // what decides on the frequency of the CPUs in use, when the kernel tells
	Battery  bool   `json:"battery,omitempty"`  // no mains supply is connected

	// What the network and the scheduler are set to, as the kernel names it.
	CongestionControl string `json:"congestion_control,omitempty"` // of TCP: bbr paces what it sends, on the loopback too
	QueueDiscipline   string `json:"queue_discipline,omitempty"`   // the default one of network interfaces
	Tickless          string `json:"tickless,omitempty"`           // which CPUs run without a timer tick: "idle", or "idle, and 2-3 when busy"
	SMT               string `json:"smt,omitempty"`                // "on", "off", "notsupported", "notimplemented"
	Topology          string `json:"topology,omitempty"`           // of the CPUs that this process may use
	ClockSource       string `json:"clock_source,omitempty"`       // what time is read from
}

// Facts are what is known of the machine beside its CPU, kernel and Go, as names and what they are.
func (m Machine) Facts() (facts [][2]string) {
	for _, f := range [][2]string{
		{"Congestion control", m.CongestionControl}, {"Queueing discipline", m.QueueDiscipline}, {"Clock source", m.ClockSource},
		{"Topology", m.Topology}, {"SMT", strings.Replace(m.SMT, "not", "not ", 1)}, {"Tickless", m.Tickless},
	} {
		if f[1] != "" {
			facts = append(facts, f)
		}
	}
	return facts
}

// Method is how it was measured.
type Method struct {
	Layout      string  `json:"layout"` // CoLocated, Split or Shared
	ServerCPUs  []int   `json:"server_cpus"`
	Cores       int     `json:"cores,omitempty"` // that the usable CPUs are on, as far as the kernel tells; 0 when it does not
	LoadCPUs    []int   `json:"load_cpus"`
	Workers     int     `json:"workers"`
	LoadThreads int     `json:"load_threads"`
	Generator   string  `json:"generator"`      // "embedded" or "wrk"
	Rounds      int     `json:"rounds"`         // that were finished; not every workload is in all of them
	Seconds     float64 `json:"seconds"`        // of one measurement
	Rate        float64 `json:"rate,omitempty"` // requests per second that were due: an open loop; 0 for a closed one
	Warmup      float64 `json:"warmup_seconds"`
	Seed        uint64  `json:"seed"` // of the order within each round
	Took        float64 `json:"took_seconds"`
	Revision    string  `json:"revision"` // of the source, when known
	// UserSystem says where the division into user and system time comes from: Ticks or Accounted.
	UserSystem string `json:"user_system"`
	// What the CPUs in use did during all measurements together, as shares of their time.
	Steal  float64 `json:"steal_share"`  // taken by the hypervisor
	Others float64 `json:"others_share"` // taken by processes that are neither server nor generator
	// ServerOthers and LoadOthers are the same for the server's and the generator's CPUs, where those are not shared.
	ServerOthers float64 `json:"server_others_share,omitempty"`
	LoadOthers   float64 `json:"load_others_share,omitempty"`
	// MHz is the frequency of the server's CPUs at the end of the measurements, when the kernel
	// tells.
	MHz stats.Interval `json:"mhz,omitzero"`
}

// Where user and system time come from, for Method.UserSystem.
const (
	Ticks     = "estimated from ticks"
	Accounted = "accounted at every switch"
)

// Server is one that was measured.
type Server struct {
	Name      string `json:"name"`
	Published string `json:"published,omitempty"` // what the documents say, as it stands in the table
	Counters  bool   `json:"counters"`            // whether it has any
	Workers   int    `json:"workers,omitempty"`   // when not those of the whole run
}

// Workload is one that was used.
type Workload struct {
	Name        string `json:"name"`
	Summary     string `json:"summary"`
	Connections int    `json:"connections"`
	Pipeline    int    `json:"pipeline"`
	Idle        int    `json:"idle,omitempty"`
	Reconnect   bool   `json:"reconnect,omitempty"` // a new connection for every request
	// Rate is how many requests per second were due in an open loop of its own, on the workload that
	// Repeats names, where the server was not the limit; 0 when it was measured as the whole run was.
	Rate    float64 `json:"rate,omitempty"`
	Repeats string  `json:"repeats,omitempty"`

	RequestBytes int `json:"request_bytes"`
	BodyBytes    int `json:"body_bytes"`
	Rounds       int `json:"rounds,omitempty"` // in which it was to be measured
}

// Measurement is one server under one workload in one round.
type Measurement struct {
	Round    int    `json:"round"` // from 1
	Order    int    `json:"order"` // within the round, from 1
	Server   string `json:"server"`
	Workload string `json:"workload"`

	RequestsPerSecond float64           `json:"requests_per_second"`
	Requests          uint64            `json:"requests"`
	Established       int               `json:"established"`
	ConnectErrors     map[string]uint64 `json:"connect_errors,omitempty"`
	Errors            map[string]uint64 `json:"errors,omitempty"`
	Latency           load.Latency      `json:"latency_ns"`
	Histogram         string            `json:"histogram,omitempty"`

	ServerCPUNanos  float64 `json:"server_cpu_ns_per_request"`
	ServerUserShare float64 `json:"server_user_share"` // of ServerCPUNanos; see Method.UserSystem
	ClientCPUNanos  float64 `json:"client_cpu_ns_per_request"`
	// ServerBusy and ClientBusy are the shares of their CPUs' time in which server and generator ran, or
	// stood in line behind other processes. A side with fewer threads than CPUs has as many CPUs as those.
	ServerBusy float64 `json:"server_busy"`
	ClientBusy float64 `json:"client_busy"`
	// ServerOthers and ClientOthers are what processes that are neither took of each side's CPUs.
	ServerOthers float64 `json:"server_others_share,omitempty"`
	ClientOthers float64 `json:"client_others_share,omitempty"`

	// Counters are per request, from the server's own; nil without an admin
	// listener. Gauges are not among them.
	Counters map[string]float64 `json:"counters_per_request,omitempty"`
	GCCycles int64              `json:"gc_cycles"`

	Resident              int64   `json:"resident_bytes"`                // at the end of the measured part
	ResidentPerConnection float64 `json:"resident_bytes_per_connection"` // what the connections added
	HeldPerConnection     float64 `json:"held_bytes_per_connection"`     // buffers held while at rest
	HeapPerConnection     float64 `json:"heap_bytes_per_connection"`     // what the connections added to the Go heap that lives; idle workloads only
	LoopRequests          []int64 `json:"loop_requests,omitempty"`       // by each loop of the server
	LoopConnections       []int64 `json:"loop_connections,omitempty"`    // of each loop while at rest
	Unsent                uint64  `json:"unsent,omitempty"`              // due at the rate, never sent
	Undated               uint64  `json:"undated,omitempty"`             // heads without a Date, among those looked at
	Late                  uint64  `json:"late,omitempty"`                // answered after the end of the measured part
	SentLate              uint64  `json:"sent_late,omitempty"`           // by the generator's own doing, see load.Result
	WokeLate              int64   `json:"woke_late_ns,omitempty"`        // likewise
	StealShare            float64 `json:"steal_share"`                   // of the CPUs in use
	OthersShare           float64 `json:"others_share"`                  // likewise, neither server nor generator
	Seconds               float64 `json:"seconds"`                       // of the measured part
	MHz                   float64 `json:"mhz,omitempty"`                 // of the server's CPUs at its end, when the kernel tells
	Reconnects            uint64  `json:"reconnects,omitempty"`          // connections made anew, warm-up included; with wrk unknown
	StaleDates            uint64  `json:"stale_dates,omitempty"`         // heads with a Date that was not the time; see load.Result
}

// Row is one server under one workload over all rounds: medians with intervals.
type Row struct {
	Server   string `json:"server"`
	Workload string `json:"workload"`

	RequestsPerSecond stats.Interval `json:"requests_per_second"`
	ServerCPUMicros   stats.Interval `json:"server_cpu_us_per_request"`
	ClientCPUMicros   stats.Interval `json:"client_cpu_us_per_request"`
	P50Micros         stats.Interval `json:"p50_us"`
	P90Micros         stats.Interval `json:"p90_us"`
	P99Micros         stats.Interval `json:"p99_us"`
	P999Micros        stats.Interval `json:"p99.9_us"`
	UserCPUMicros     stats.Interval `json:"server_user_us_per_request"`   // see Method.UserSystem
	SystemCPUMicros   stats.Interval `json:"server_system_us_per_request"` // likewise
	UserShare         stats.Interval `json:"server_user_share"`            // likewise
	// RequestsPerCPUSecond is how many requests a second of the server's CPU time serves.
	RequestsPerCPUSecond stats.Interval `json:"requests_per_cpu_second"`
	Busy                 float64        `json:"server_busy"`
	ClientBusy           float64        `json:"client_busy"`
	Saturated            Side           `json:"saturated,omitempty"` // by the medians of the two; "" when unknown

	Counters              map[string]float64 `json:"counters_per_request,omitempty"` // medians
	SystemCalls           float64            `json:"system_calls_per_request"`
	RequestsPerWait       float64            `json:"requests_per_epoll_wait"`
	GCCyclesPerSecond     float64            `json:"gc_cycles_per_second"`
	Resident              float64            `json:"resident_bytes"`
	ResidentPerConnection stats.Interval     `json:"resident_bytes_per_connection"`
	HeldPerConnection     stats.Interval     `json:"held_bytes_per_connection"`
	HeapPerConnection     stats.Interval     `json:"heap_bytes_per_connection"`
	LoopConnections       []float64          `json:"loop_connections,omitempty"` // of the loop with the fewest to that with the most, medians
	Unsent                uint64             `json:"unsent,omitempty"`           // of all rounds
	Reconnects            uint64             `json:"reconnects,omitempty"`       // of all rounds
	StaleDates            uint64             `json:"stale_dates,omitempty"`      // of all rounds
	Undated               uint64             `json:"undated,omitempty"`          // of all rounds: heads without a Date
	Late                  uint64             `json:"late,omitempty"`             // of all rounds: answered after the end of the measured part
	MaxMicros             float64            `json:"max_us,omitempty"`           // the longest latency of all rounds
	SentLate              uint64             `json:"sent_late,omitempty"`        // of all rounds: by the generator's own doing
	WokeLateMicros        float64            `json:"woke_late_us,omitempty"`     // by how much the generator was behind its time at most

	requests uint64 // of all rounds

	Asked       int               `json:"connections_asked"`
	Established int               `json:"connections_established"` // the least of all rounds
	Errors      map[string]uint64 `json:"errors,omitempty"`        // of all rounds, connect errors included
}

// Kind says what a ratio is for.
type Kind string

// The kinds of ratio.
const (
	Step   Kind = "step"   // a stage to the one before, on hello
	Total  Kind = "total"  // a stage to stage0, on hello
	Target Kind = "target" // a stage to the one before, where its step must show
	Noise  Kind = "noise"  // a server to itself
	Pair   Kind = "pair"   // asked for
)

// Metric is what a ratio compares.
type Metric string

// The metrics of ratios. Of all but the first less is better.
const (
	RequestsPerSecond Metric = "requests per second"
	ServerCPU         Metric = "server CPU per request"
	ClientCPU         Metric = "client CPU per request"
	HeldMemory        Metric = "buffer bytes per idle connection"
	LatencyP50        Metric = "p50 latency"
	LatencyP99        Metric = "p99 latency"
)

// metrics says of each how a measurement has it, what a table calls it, and which words a verdict
// has.
var metrics = map[Metric]struct {
	of                   func(Measurement) float64
	short, better, worse string
}{
	RequestsPerSecond: {func(m Measurement) float64 { return m.RequestsPerSecond }, "req/s", "faster", "slower"},
	ServerCPU:         {func(m Measurement) float64 { return m.ServerCPUNanos }, "server CPU", "faster", "slower"},
	ClientCPU:         {func(m Measurement) float64 { return m.ClientCPUNanos }, "client CPU", "faster", "slower"},
	HeldMemory:        {func(m Measurement) float64 { return m.HeldPerConnection }, "idle buffer", "less", "more"},
	LatencyP50:        {func(m Measurement) float64 { return float64(m.Latency.P50) }, "p50", "faster", "slower"},
	LatencyP99:        {func(m Measurement) float64 { return float64(m.Latency.P99) }, "p99", "faster", "slower"},
}

// Short is what a table calls it.
func (m Metric) Short() string { return metrics[m].short }

// LessIsBetter tells in which direction an improvement goes.
func (m Metric) LessIsBetter() bool { return m != RequestsPerSecond }

// Ratio is head over base, paired round by round.
type Ratio struct {
	Kind     Kind           `json:"kind"`
	Workload string         `json:"workload"`
	Metric   Metric         `json:"metric"`
	Head     string         `json:"head"`
	Base     string         `json:"base"`
	Ratio    stats.Interval `json:"ratio"`
	Floor    float64        `json:"floor,omitempty"` // the noise floor that Verdict goes by, as a share; 0 when there is none
	Verdict  stats.Verdict  `json:"verdict"`

	// HeadValue and BaseValue are the medians, for metrics whose base may be 0.
	HeadValue float64 `json:"head_value"`
	BaseValue float64 `json:"base_value"`
}

// Read reads a document back. A file of another schema or a later version is an error.
func Read(path string) (*Document, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d Document
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, fmt.Errorf("%s is not a report: %w", path, err)
	}
	if d.Schema != Schema || d.Version < 1 || d.Version > Version {
		return nil, fmt.Errorf("%s is no report that this version reads: schema %q version %d", path, d.Schema, d.Version)
	}
	if d.Version == 1 {
		d.fromFirst()
	}
	return &d, nil
}

// fromFirst brings the ratios of a document of version 1 into the form of today. Its verdicts, which
// knew no floor, stay.
func (d *Document) fromFirst() {
	words := map[stats.Verdict]stats.Verdict{
		"no difference this run can tell": stats.CannotTell, "too few rounds for an interval": stats.TooFew,
	}
	for i := range d.Ratios {
		r := &d.Ratios[i]
		r.Verdict = cmp.Or(words[r.Verdict], r.Verdict)
		if r.Kind == Noise && r.Ratio.Bounded() {
			r.Floor = r.Ratio.Floor()
		}
	}
}
