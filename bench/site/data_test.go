package site

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/results"
)

// wholeDocument is one with its rounds, as a run leaves it.
func wholeDocument(t *testing.T) *results.Document {
	t.Helper()
	d := &results.Document{
		Schema: results.Schema, Version: results.Version,
		Servers:   []results.Server{{Name: "stage0-naive", Counters: true}, {Name: "stage1-reuseport", Counters: true}},
		Workloads: []results.Workload{{Name: "hello"}},
		Ratios: []results.Ratio{
			{Kind: results.Pair, Workload: "hello", Metric: results.LatencyP99, Head: "stage1-reuseport", Base: "stage0-naive"},
			{Kind: results.Target, Workload: "hello", Metric: results.RequestsPerSecond, Head: "stage1-reuseport", Base: "stage0-naive"},
		},
	}
	d.Method.Seed = 1<<64 - 1
	for round := 1; round <= 6; round++ {
		for i, s := range d.Servers {
			d.Measurements = append(d.Measurements, results.Measurement{
				Round: round, Server: s.Name, Workload: "hello", RequestsPerSecond: 10_000.123456 * float64(i+1), ServerCPUNanos: 9000 / float64(i+1),
				Counters: map[string]float64{"reads": 1, "handoffs": 0},
			})
		}
	}
	d.Build("")
	return d
}

// What writeData leaves out is read as it was, but for digits that nobody sees.
func TestDataIsReadAsItWasWritten(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "docs", "data")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	require.NoError(t, writeData(wholeDocument(t), filepath.Join(folder, "x.json")))
	b, err := os.ReadFile(filepath.Join(folder, "x.json"))
	require.NoError(t, err)
	require.Contains(t, string(b), `"seed":18446744073709551615`)
	require.Contains(t, string(b), `"counters_per_request":{"handoffs":0,"reads":1}`)
	require.NotContains(t, string(b), "10000.123456")

	r := &dataFiles{stages: []string{"stage0-naive", "stage1-reuseport"}}
	require.NoError(t, r.read(root, "x.json"))
	d := r.documents[0]
	require.Len(t, d.Ratios, 1, "that of its target")
	for key, want := range map[string]string{
		"hello.stage1.qps": "20.0 K", "hello.stage0.handoffs": "0", "hello.stage1/stage0.ratio": "2.00 [2.00–2.00]", "hello.stage1/stage0.cpu": "0.50 [0.50–0.50]",
	} {
		f, err := r.figure(key)
		require.NoError(t, err)
		require.Equal(t, want, f.text, key)
	}
	require.Len(t, d.Ratios, 2, "that which was asked for too")

	d.Measurements = nil
	_, err = r.figure("hello.stage1/stage0.cpu")
	require.NoError(t, err, "what was asked for stays")
	_, err = r.figure("hello.stage1/stage0.client-cpu")
	require.ErrorContains(t, err, "x.json does not compare stage1 with stage0 by client CPU per request: make docs-refresh")
}

// docs/data holds what is read: no rounds.
func TestDataIsPruned(t *testing.T) {
	b, err := newBuilder(root)
	require.NoError(t, err)
	for _, r := range append(slices.Collect(maps.Values(b.results.named)), b.results) {
		for i, d := range r.documents {
			require.Empty(t, d.Measurements, "%s: make docs-readmes takes them out", r.files[i])
		}
	}
}
