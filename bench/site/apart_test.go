package site

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/results"
)

// A run of another machine is added without its rounds, and stands in the table with its ratios.
func TestMachinesAreAddedAndCompared(t *testing.T) {
	root := t.TempDir()
	d := wholeDocument(t)
	d.Ended, d.Machine = results.Complete, results.Machine{CPU: "Imaginary 9000", CPUs: 4, CongestionControl: "reno", SMT: "notsupported"}
	file := filepath.Join(root, "ladder.json")
	require.NoError(t, writeData(d, file))
	_, err := AddMachine(root, "imaginary-4", file)
	require.ErrorContains(t, err, "is no run of the ladder")

	d.Ratios = append(d.Ratios, results.Ratio{Kind: results.Step, Workload: "hello", Metric: results.RequestsPerSecond, Head: "stage1-reuseport", Base: "stage0-naive"})
	d.Build("")
	require.NoError(t, writeData(d, file))
	_, err = AddMachine(root, "imaginary-4", file)
	require.ErrorContains(t, err, "was not measured twice")

	// The last stage once more, as it was.
	const again = "stage1-reuseport again"
	d.Servers = append(d.Servers, results.Server{Name: again, Counters: true})
	for _, m := range d.Measurements {
		if m.Server == "stage1-reuseport" {
			m.Server = again
			d.Measurements = append(d.Measurements, m)
		}
	}
	d.Ratios = append(d.Ratios, results.Ratio{Kind: results.Noise, Workload: "hello", Metric: results.RequestsPerSecond, Head: again, Base: "stage1-reuseport"})
	d.Build("")
	require.NoError(t, writeData(d, file))
	_, err = AddMachine(root, "../x", file)
	require.ErrorContains(t, err, "is no name for a machine")
	path, err := AddMachine(root, "imaginary-4", file)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(root, "docs", "data", "machines", "imaginary-4.json"), path)
	added, err := results.Read(path)
	require.NoError(t, err)
	require.Empty(t, added.Measurements)
	table, err := (&builder{root: root}).machinesTable()
	require.NoError(t, err)
	for _, want := range []string{"imaginary-4", "Imaginary 9000, 4 CPUs", "congestion control reno; SMT not supported", "stage1, hello", "10,000", "2.00"} {
		require.Contains(t, table, want)
	}

	d.Ended = "interrupted"
	require.NoError(t, writeData(d, file))
	_, err = AddMachine(root, "x", file)
	require.ErrorContains(t, err, "did not complete: interrupted")

	d.Ended = results.Complete
	for i := range d.Measurements {
		if m := &d.Measurements[i]; m.Server == again {
			m.RequestsPerSecond *= 1.3
		}
	}
	d.Build("")
	require.NoError(t, writeData(d, file))
	_, err = AddMachine(root, "x", file)
	require.ErrorContains(t, err, "measure again when nothing else runs")
}

// What is shown whole says how it is measured as long as it is not there.
func TestTablesThatAreShownWhole(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "docs", "data"), 0o755))
	b := &builder{root: root}
	for name, table := range map[string]func() (string, error){rateName: b.rateTable, networkName: b.networkTable} {
		text, err := table()
		require.NoError(t, err)
		require.Contains(t, text, "ladder docs refresh --only "+name)
	}
	d := wholeDocument(t)
	d.Method.Rate = 40_000
	d.Ratios = append(d.Ratios, results.Ratio{Kind: results.Pair, Workload: "hello", Metric: results.ServerCPU, Head: "stage1-reuseport", Base: "stage0-naive"})
	d.Build("")
	require.NoError(t, writeWhole(d, filepath.Join(root, "docs", "data", "rate.json")))
	text, err := b.rateTable()
	require.NoError(t, err)
	for _, want := range []string{"hello, 40,000 a second", `<th scope="row">stage1</th>`, "9.00", "4.50", "0.50"} {
		require.Contains(t, text, want)
	}

	for i := range d.Servers {
		old := d.Servers[i].Name
		d.Servers[i].Name = []string{"stage5-speculative-read over lo", "stage5-speculative-read over veth"}[i]
		for k := range d.Rows {
			if d.Rows[k].Server == old {
				d.Rows[k].Server = d.Servers[i].Name
			}
		}
	}
	d.Ratios = []results.Ratio{{Kind: results.Pair, Workload: "hello", Metric: results.RequestsPerSecond, Head: d.Servers[1].Name, Base: d.Servers[0].Name}}
	require.NoError(t, writeWhole(d, filepath.Join(root, "docs", "data", "network.json")))
	text, err = b.networkTable()
	require.NoError(t, err)
	require.Contains(t, text, "hello, stage5 over veth")
}
