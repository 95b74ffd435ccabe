package profile

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func TestWhereTable(t *testing.T) {
	table := newWhereTable([][]*record{{recorded(t, "go"), recorded(t, "perf")}, {half(t)}})
	require.Equal(t, "perf (cpu-clock)", table.Source, "what sees more")
	require.Len(t, table.Servers, 2)
	for _, c := range table.Servers {
		var cpu, share float64
		require.Len(t, c.Rows, categories)
		for _, row := range c.Rows {
			cpu += row.CPUMicros
			share += row.Share
			require.InDelta(t, ceiling(row.Share), row.Ceiling, 1e-12)
		}
		require.InEpsilon(t, c.CPUMicros, cpu, 1e-9)
		require.InEpsilon(t, 1, share, 1e-9)
		require.InEpsilon(t, c.CPUMicros, c.sum(category.isKernel)+c.sum(category.isRuntime)+c.sum(groups[2].has), 1e-9)
	}
	require.InEpsilon(t, 2*table.Servers[1].CPUMicros, table.Servers[0].CPUMicros, 1e-9)

	var out strings.Builder
	table.text(&out, 0)
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len([]rune(line)), console.Width+1, line)
	}
	require.Regexp(t, `(?m)^all +20\.0 100% +10\.0 100% +−10\.0$`, out.String())
	require.Contains(t, out.String(), "Amdahl")

	folder := t.TempDir()
	require.NoError(t, table.write(folder, func(string, ...any) {}))
	read, err := ReadWhere(filepath.Join(folder, "where-hello.json"))
	require.NoError(t, err)
	require.Equal(t, table, read)
	b, err := os.ReadFile(filepath.Join(folder, "where-hello.md"))
	require.NoError(t, err)
	require.Contains(t, string(b), "| **all** | **20.00** | **10.00** |")
}

// A terminal that is too narrow for six stages gets two tables of three, and a
// file one of six.
func TestWhereTableFitsATerminal(t *testing.T) {
	var sides [][]*record
	for i := range 6 {
		r := half(t)
		r.server = "stage" + itoa(i)
		sides = append(sides, []*record{r})
	}
	bare := half(t)
	bare.server = run.BareC
	table := newWhereTable(append(sides, []*record{bare}))
	require.Len(t, table.stages(), 6, "the C loop is in the picture alone")
	for columns, want := range map[int]string{
		0:   `(?m)^ +stage0 +stage1 +stage2 +stage3 +stage4 +stage5$`,
		80:  `(?m)^ +stage0 +stage1 +stage2$(?s:.*)^ +stage3 +stage4 +stage5$`,
		20:  `(?m)^ +stage0$(?s:.*)^ +stage5$`,
		120: `(?m)^ +stage0 +stage1 +stage2 +stage3 +stage4 +stage5$`,
	} {
		var out strings.Builder
		table.text(&out, columns)
		require.Regexp(t, want, out.String(), columns)
		require.Equal(t, 6, strings.Count(out.String(), "100%"), columns)
		if columns < console.Width {
			continue
		}
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, len([]rune(line)), columns+1, line)
		}
	}
}

func TestReadingWhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "where.json")
	_, err := ReadWhere(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	for text, want := range map[string]string{
		`{`: "where.json: ",
		`{"schema":"qps-ladder/where","version":2}`: `version 2 is not understood, only qps-ladder/where version 1`,
		`{"schema":"qps-ladder/bench","version":1}`: `schema "qps-ladder/bench"`,
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := ReadWhere(path)
		require.ErrorContains(t, err, want)
	}
}

func TestGuessing(t *testing.T) {
	servers := []run.Server{{Name: "stage0-naive"}, {Name: "stage1-reuseport"}}
	table := newWhereTable([][]*record{{recorded(t, "perf")}, {half(t)}})
	largest := table.Servers[0].largest()
	var out strings.Builder
	guesses, err := ask(t.Context(), strings.NewReader("99\nx\n17\n"+itoa(int(largest)+1)+"\n"), &out, servers, workload.Workload{Name: "hello"})
	require.NoError(t, err)
	require.Equal(t, map[string]category{"stage0-naive": bodyCopying, "stage1-reuseport": largest}, guesses)
	require.Contains(t, out.String(), `"99" is no number from 1 to`)
	require.Contains(t, out.String(), `"x" is no number from 1 to`)
	list, _, _ := strings.Cut(out.String(), "The largest part")
	for line := range strings.Lines(list) {
		require.LessOrEqual(t, len([]rune(line)), console.Width+1, line)
	}
	out.Reset()
	table.judge(&out, guesses)
	said := strings.Join(strings.Fields(out.String()), " ")
	require.Contains(t, said, "stage0: the largest is "+largest.String())
	require.Contains(t, said, "You guessed copying bodies")
	require.Contains(t, said, "stage1: right")

	out.Reset()
	guesses, err = ask(t.Context(), strings.NewReader(""), &out, servers, workload.Workload{Name: "hello"})
	require.NoError(t, err)
	require.Empty(t, guesses)
	table.judge(&out, guesses)
	require.Contains(t, out.String(), "no guess")
}

// Ctrl-C at the question ends it, although nobody answers.
func TestInterruptedQuestion(t *testing.T) {
	silent, _ := io.Pipe()
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := ask(ctx, silent, interrupter{cancel}, []run.Server{{Name: "stage0-naive"}}, workload.Workload{Name: "hello"})
	require.ErrorIs(t, err, context.Canceled)
}

// interrupter is an output that somebody answers with Ctrl-C.
type interrupter struct{ cancel context.CancelFunc }

func (i interrupter) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "The largest part") {
		i.cancel()
	}
	return len(b), nil
}

func itoa(n int) string { return console.Thousands(int64(n)) }
