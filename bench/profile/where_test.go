package profile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func TestWhereTable(t *testing.T) {
	table := newWhereTable([][]*record{{recorded(t, "go"), recorded(t, "perf")}, {half(t)}})
	require.Equal(t, "perf (cpu-clock)", table.Source, "what sees more")
	require.Len(t, table.Columns, 2)
	for _, c := range table.Columns {
		var cpu, share float64
		require.Len(t, c.Rows, categories)
		for _, row := range c.Rows {
			cpu += row.CPU
			share += row.Share
			require.InDelta(t, ceiling(row.Share), row.Ceiling, 1e-12)
		}
		require.InEpsilon(t, c.CPU, cpu, 1e-9)
		require.InEpsilon(t, 1, share, 1e-9)
		require.InEpsilon(t, c.CPU, c.sum(category.isKernel)+c.sum(category.isRuntime)+c.sum(groups[2].has), 1e-9)
	}
	require.InEpsilon(t, 2*table.Columns[1].CPU, table.Columns[0].CPU, 1e-9)

	var out strings.Builder
	table.text(&out)
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len([]rune(line)), 150)
	}
	require.Regexp(t, `(?m)^all +20\.00 100% +10\.00 100%`, out.String())
	require.Contains(t, out.String(), "Amdahl")

	folder := t.TempDir()
	require.NoError(t, table.write(folder, func(string, ...any) {}))
	b, err := os.ReadFile(filepath.Join(folder, "where-hello.json"))
	require.NoError(t, err)
	var read whereTable
	require.NoError(t, json.Unmarshal(b, &read))
	require.Equal(t, *table, read)
	b, err = os.ReadFile(filepath.Join(folder, "where-hello.md"))
	require.NoError(t, err)
	require.Contains(t, string(b), "| **all** | **20.00** | **10.00** |")
}

func TestGuessing(t *testing.T) {
	servers := []run.Server{{Name: "stage0-naive"}, {Name: "stage1-reuseport"}}
	table := newWhereTable([][]*record{{recorded(t, "perf")}, {half(t)}})
	largest := table.Columns[0].largest()
	var out strings.Builder
	guesses := ask(strings.NewReader("99\nx\n17\n"+itoa(int(largest)+1)+"\n"), &out, servers, workload.Workload{Name: "hello"})
	require.Equal(t, map[string]category{"stage0-naive": bodyCopying, "stage1-reuseport": largest}, guesses)
	require.Contains(t, out.String(), `"99" is no number from 1 to`)
	require.Contains(t, out.String(), `"x" is no number from 1 to`)
	out.Reset()
	table.judge(&out, guesses)
	require.Contains(t, out.String(), "stage0: the largest is "+largest.String())
	require.Contains(t, out.String(), "You guessed copying bodies")
	require.Contains(t, out.String(), "stage1: right")

	out.Reset()
	guesses = ask(strings.NewReader(""), &out, servers, workload.Workload{Name: "hello"})
	require.Empty(t, guesses)
	table.judge(&out, guesses)
	require.Contains(t, out.String(), "no guess")
}

func itoa(n int) string { return thousands(int64(n)) }
