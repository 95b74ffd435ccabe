package load

import (
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"
)

// made is a result whose latencies are the given ones, in milliseconds.
func made(t *testing.T, requestsPerSecond float64, latencies ...int64) Result {
	t.Helper()
	h := NewHistogram()
	for _, ms := range latencies {
		require.NoError(t, h.RecordValue(ms*1_000_000))
	}
	text, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
	require.NoError(t, err)
	return Result{
		Target: "10.0.0.1:8080", Workload: "hello", Pipeline: 1, Threads: 1, Connections: 10, Established: 9, Answered: 9, Sources: 1,
		Seconds: 2, Requests: uint64(len(latencies)), RequestsPerSecond: requestsPerSecond, ClientCPUNanos: 1000 * int64(len(latencies)), Histogram: string(text), Latency: LatencyOf(h),
		Errors: map[string]uint64{"status 500": 2},
	}
}

func TestMergeReadsPercentilesFromAllLatencies(t *testing.T) {
	quick := made(t, 100, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	slow := made(t, 50, 1000, 1000)
	merged, err := Merge([]Result{quick, slow})
	require.NoError(t, err)
	require.EqualValues(t, 20, merged.Requests)
	require.Equal(t, 150.0, merged.RequestsPerSecond)
	require.Equal(t, 20, merged.Connections)
	require.Equal(t, 18, merged.Established)
	require.EqualValues(t, 4, merged.Errors["status 500"])
	require.InDelta(t, 1e6, merged.Latency.P50, 1e4)
	require.InDelta(t, 1e6, merged.Latency.P90, 1e4, "18 of 20 took 1 ms; the mean of both 90% values would be 500 ms")
	require.InDelta(t, 1e9, merged.Latency.P99, 1e7)
	require.Equal(t, 1000.0, merged.ClientCPUNanosPerRequest)
	require.EqualValues(t, 2, quick.Errors["status 500"], "the results themselves stay as they are")

	again, err := Merge([]Result{merged, quick})
	require.NoError(t, err, "what was merged can be merged")
	require.EqualValues(t, 38, again.Requests)
}

func TestMergeTellsWhetherGeneratorsRanTogether(t *testing.T) {
	at := func(second float64) Result {
		r := made(t, 1, 1, 2)
		r.Began = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(second * 1e9))
		return r
	}
	for want, results := range map[float64][]Result{
		0.75:  {at(1), at(1.5)}, // each takes two seconds
		0.5:   {at(1), at(1.5), at(2)},
		never: {at(1), at(10)},
		0:     {at(1), made(t, 1, 1)},
	} {
		merged, err := Merge(results)
		require.NoError(t, err)
		require.InDelta(t, want, merged.Overlap, 1e-12)
	}
	_, err := Merge([]Result{at(1), at(3), at(1)})
	require.EqualError(t, err, "result 3 is result 1 once more")
}

func TestMergeRefusesWhatIsNotAlike(t *testing.T) {
	_, err := Merge(nil)
	require.ErrorContains(t, err, "no results")
	a, b := made(t, 1, 1), made(t, 1, 1)
	b.Workload = "browser"
	_, err = Merge([]Result{a, b})
	require.ErrorContains(t, err, "only like results can be merged")
	b = made(t, 1, 1)
	b.Histogram = "rubbish"
	_, err = Merge([]Result{a, b})
	require.ErrorContains(t, err, "result 2: the histogram of a result is damaged")
}
