package load

import (
	"errors"
	"fmt"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Merge puts the results of several generators that drove one server at the
// same time together: counts and rates add up, and so do the histograms, from
// which the percentiles are read anew. Percentiles are never averaged. What
// generators must have in common is checked.
func Merge(results []Result) (Result, error) {
	if len(results) == 0 {
		return Result{}, errors.New("no results to merge")
	}
	first := results[0]
	out := Result{
		Target: first.Target, Workload: first.Workload, Pipeline: first.Pipeline, Began: first.Began, Overlap: overlap(results),
		Errors: map[string]uint64{}, ConnectErrors: map[string]uint64{},
	}
	all := NewHistogram()
	for i, r := range results {
		if r.Workload != out.Workload || r.Pipeline != out.Pipeline {
			return Result{}, fmt.Errorf("result %d is of %s, %d at once, the first of %s, %d at once: only like results can be merged", i+1, r.Workload, r.Pipeline, out.Workload, out.Pipeline)
		}
		for j, other := range results[:i] {
			if r.Histogram == other.Histogram && r.Began.Equal(other.Began) && !r.Began.IsZero() {
				return Result{}, fmt.Errorf("result %d is result %d once more", i+1, j+1)
			}
		}
		if r.Target != out.Target {
			out.Target = "several addresses"
		}
		h, err := DecodeHistogram(r.Histogram)
		if err != nil {
			return Result{}, fmt.Errorf("result %d: %w", i+1, err)
		}
		all.Merge(h)
		out.Threads += r.Threads
		out.Connections += r.Connections
		out.Idle += r.Idle
		out.Sources += r.Sources
		out.Rate += r.Rate
		out.Established += r.Established
		out.Answered += r.Answered
		out.Reconnects += r.Reconnects
		out.StaleDates += r.StaleDates
		out.Undated += r.Undated
		out.SentLate += r.SentLate
		out.WokeLate = max(out.WokeLate, r.WokeLate)
		out.Requests += r.Requests
		out.Late += r.Late
		out.Unsent += r.Unsent
		out.BytesRead += r.BytesRead
		out.ClientReads += r.ClientReads
		out.ClientWrites += r.ClientWrites
		out.ClientWaits += r.ClientWaits
		out.ClientCPUNanos += r.ClientCPUNanos
		// Each measured in its own window, so that rates add up, not requests over one time.
		out.RequestsPerSecond += r.RequestsPerSecond
		if r.Began.Before(out.Began) {
			out.Began = r.Began
		}
		out.Seconds = max(out.Seconds, r.Seconds)
		out.Elapsed = max(out.Elapsed, r.Elapsed)
		add(out.Errors, r.Errors)
		add(out.ConnectErrors, r.ConnectErrors)
	}
	if n := float64(out.Requests + out.Late); n > 0 {
		out.ClientCPUNanosPerRequest = float64(out.ClientCPUNanos) / n
	}
	out.Latency = LatencyOf(all)
	encoded, err := all.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		return Result{}, err
	}
	out.Histogram = string(encoded)
	return out, nil
}

// never is the overlap of results that were not measured at the same time; 0 is unknown.
const never = 1e-9

// overlap is the share of the longest measured part in which all were measuring,
// 0 when they did not say when they began.
func overlap(results []Result) float64 {
	var first, last time.Time // of the time in which all were
	longest := 0.0
	for i, r := range results {
		if r.Began.IsZero() {
			return 0
		}
		end := r.Began.Add(time.Duration(r.Seconds * float64(time.Second)))
		if i == 0 || r.Began.After(first) {
			first = r.Began
		}
		if i == 0 || end.Before(last) {
			last = end
		}
		longest = max(longest, r.Seconds)
	}
	if longest == 0 || !last.After(first) {
		return never
	}
	return last.Sub(first).Seconds() / longest
}
