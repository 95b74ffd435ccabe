package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/stats"
)

// CSV writes the rows, one line for each server under each workload, with the
// names of the JSON's fields as header. Counters come last, by name.
func CSV(out io.Writer, d *results.Document) error {
	counters := map[string]bool{}
	for _, r := range d.Rows {
		for name := range r.Counters {
			counters[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(counters))
	intervals := []struct {
		name string
		of   func(results.Row) stats.Interval
	}{
		{"requests_per_second", func(r results.Row) stats.Interval { return r.RequestsPerSecond }},
		{"server_cpu_us_per_request", func(r results.Row) stats.Interval { return r.ServerCPUMicros }},
		{"client_cpu_us_per_request", func(r results.Row) stats.Interval { return r.ClientCPUMicros }},
		{"requests_per_cpu_second", func(r results.Row) stats.Interval { return r.RequestsPerCPUSecond }},
		{"p50_us", func(r results.Row) stats.Interval { return r.P50Micros }},
		{"p90_us", func(r results.Row) stats.Interval { return r.P90Micros }},
		{"p99_us", func(r results.Row) stats.Interval { return r.P99Micros }},
		{"p99.9_us", func(r results.Row) stats.Interval { return r.P999Micros }},
		{"resident_bytes_per_connection", func(r results.Row) stats.Interval { return r.ResidentPerConnection }},
		{"heap_bytes_per_connection", func(r results.Row) stats.Interval { return r.HeapPerConnection }},
		{"held_bytes_per_connection", func(r results.Row) stats.Interval { return r.HeldPerConnection }},
	}
	header := []string{"server", "workload", "rounds"}
	for _, i := range intervals {
		header = append(header, i.name, i.name+"_low", i.name+"_high")
	}
	header = append(header, "server_user_us_per_request", "server_system_us_per_request", "server_busy", "client_busy", "saturated", "system_calls_per_request",
		"requests_per_epoll_wait", "gc_cycles_per_second", "resident_bytes", "connections_asked", "connections_established", "reconnects", "unsent", "late", "max_us", "sent_late", "woke_late_us", "undated", "errors")
	w := csv.NewWriter(out)
	_ = w.Write(append(header, names...)) // Flush tells
	figure := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	for _, r := range d.Rows {
		line := []string{r.Server, r.Workload, strconv.Itoa(r.RequestsPerSecond.Rounds)}
		for _, i := range intervals {
			v := i.of(r)
			low, high := figure(v.Low), figure(v.High)
			if !v.Bounded() {
				low, high = "", ""
			}
			line = append(line, figure(v.Median), low, high)
		}
		failures := uint64(0)
		for _, n := range r.Errors {
			failures += n
		}
		line = append(line, figure(r.UserCPUMicros.Median), figure(r.SystemCPUMicros.Median), figure(r.Busy), figure(r.ClientBusy), string(r.Saturated), figure(r.SystemCalls),
			figure(r.RequestsPerWait), figure(r.GCCyclesPerSecond), figure(r.Resident), strconv.Itoa(r.Asked), strconv.Itoa(r.Established), fmt.Sprint(r.Reconnects), fmt.Sprint(r.Unsent), fmt.Sprint(r.Late),
			figure(r.MaxMicros), fmt.Sprint(r.SentLate), figure(r.WokeLateMicros), fmt.Sprint(r.Undated), fmt.Sprint(failures))
		for _, name := range names {
			text := ""
			if v, ok := r.Counters[name]; ok {
				text = figure(v)
			}
			line = append(line, text)
		}
		_ = w.Write(line)
	}
	w.Flush()
	return w.Error()
}
