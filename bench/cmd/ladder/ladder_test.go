package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/report"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// execute runs the command as a shell would.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestMistakesAreOneClearLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"climb"}, `there is no subcommand "climb": choose one of `},
		{[]string{"run", "--fast"}, "unknown flag: --fast"},
		{[]string{"run", "now"}, `"now" is not understood by "ladder run": see ladder run --help`},
		{[]string{"run", "--load", "ab"}, `there is no generator "ab": choose embedded or wrk`},
		{[]string{"run", "--layout", "apart"}, `there is no layout "apart": choose co-located, split or shared`},
		{[]string{"run", "--rounds", "-1"}, "--rounds must be at least 1"},
		{[]string{"run", "--rounds", "many"}, `invalid argument "many" for "--rounds"`},
		{[]string{"compare"}, "compare needs two stages"},
		{[]string{"compare", "0", "9"}, `there is no stage "9": choose one of stage0-naive`},
		{[]string{"compare", "1", "stage1"}, "is named twice"},
		{[]string{"compare", "0", "1", "--workload", "helo"}, `there is no workload "helo": choose one of hello, `},
		{[]string{"compare", "--base", "HEAD"}, "name that stage, and no other"},
		{[]string{"compare", "--head", "HEAD", "0", "1"}, "--head needs --base"},
		{[]string{"compare", "5", "--base", "no-such-commit"}, `there is no commit "no-such-commit" here`},
		{[]string{"compare", "0", "1", "--rate", "-3"}, "--rate must be positive"},
		{[]string{"compare", "0", "1", "--rate", "3", "--load", "wrk"}, "wrk has no --rate"},
		{[]string{"mix", "0", "3"}, "mix needs two stages"},
		{[]string{"mix", "0", "3", "--files", "nothing.go"}, "stage3-native-parser has no file nothing.go"},
		{[]string{"scale", "--workers", "0"}, "--workers 0: at least 1"},
		{[]string{"scale", "--workload", "helo"}, `there is no workload "helo"`},
		{[]string{"guard"}, "no commit given to compare with"},
		{[]string{"guard", "--base", "no-such-commit"}, `there is no commit "no-such-commit" here`},
		{[]string{"guard", "--base", "HEAD", "--rounds", "3"}, "--rounds must be at least 6"},
		{[]string{"scale", "--workers", "2,1,2"}, "--workers 2 is there twice"},
		{[]string{"peers", "--workload", "hello,hello"}, "workload hello is named twice"},
		{[]string{"peers", "--workload", "helo"}, `there is no workload "helo"`},
		{[]string{"lab", "lock"}, `there is no lab "lock": choose one of price, hops, `},
		{[]string{"lab", "locks", "--rounds", "-1"}, "--rounds must be at least 1"},
		{[]string{"docs", "refresh", "--lab", "lock"}, `there is no lab "lock"`},
		{[]string{"merge"}, "no files given"},
		{[]string{"merge", "/nonexistent"}, "no such file"},
		{[]string{"report"}, "no files given"},
		{[]string{"load", "--target", "127.0.0.1:1", "--rate", "5", "--workload", "churn"}, "cannot be sent at a rate"},
		{[]string{"load", "--target", "127.0.0.1:1", "--source", "eth0"}, `bad source address "eth0"`},
		{[]string{"load"}, "no server given: use --target host:port"},
		{[]string{"load", "--target", "x", "--workload", "none"}, `there is no workload "none"`},
		{[]string{"load", "--target", "127.0.0.1:1", "--connections", "100000000"}, "use --connections"},
		{[]string{"load", "--target", "127.0.0.1:1", "--duration", "0s"}, "--duration must be positive"},
	} {
		_, err := execute(t, c.args...)
		require.ErrorContains(t, err, c.want, "%v", c.args)
		require.NotContains(t, oneLine(err), "\n")
	}
	require.Equal(t, "one two", oneLine(errors.New("one\n\ttwo\n")))
}

// Exit code 2 is for what was typed, whoever finds it out; 1 for everything else.
func TestExitCodes(t *testing.T) {
	for _, args := range [][]string{
		{"climb"}, {"run", "--fast"}, {"run", "now"}, {"run", "--layout", "apart"}, {"run", "--rounds", "-1"}, {"run", "--load", "ab"},
		{"compare", "0", "9"}, {"compare", "0", "1", "--workload", "helo"}, {"mix", "0"}, {"guard"}, {"scale", "--workers", "0"},
		{"load"}, {"load", "--target", "127.0.0.1:1", "--duration", "0s"}, {"load", "--target", "127.0.0.1:1", "--source", "eth0"}, {"merge"}, {"report"}, {"serve"}, {"serve", "9"},
		{"where", "--workload", "helo"}, {"where", "9"}, {"where", "--layout", "sideways"}, {"where", "--duration", "-1s"},
		{"where", "--profiler", "both"}, {"where", "--profiler", "gdb"}, {"flame"}, {"flame", "1", "2", "3"}, {"flame", "3", "--admin", ":9090"},
		{"flame", "--admin", ":9", "--profiler", "perf"}, {"stat", "9"}, {"allocs", "9"}, {"syscalls", "--workers", "-1"},
		{"wrong-turn", "shortcut"}, {"wrong-turn", "router", "--rounds", "-1"}, {"lab", "lock"}, {"lab", "locks", "--time", "0s"},
		{"docs", "sing"}, {"docs", "refresh", "--only", "dust"}, {"docs", "serve", "9"},
		{"workshop", "sing"}, {"workshop", "hint"}, {"workshop", "hint", "99"}, {"workshop", "check", "1", "--workload", "helo"}, {"workshop", "classroom"},
	} {
		_, err := execute(t, args...)
		require.Error(t, err, "%v", args)
		require.Equal(t, 2, exitCode(err), "%v: %v", args, err)
		require.NotContains(t, oneLine(err), "\n")
	}
	for _, args := range [][]string{
		{"merge", "/nonexistent"}, {"report", "/nonexistent"}, {"workshop", "classroom", "/nonexistent"},
		{"load", "--target", "127.0.0.1:1", "--timeout", "1ms", "--duration", "1ms"},
	} {
		_, err := execute(t, args...)
		require.Error(t, err, "%v", args)
		require.Equal(t, 1, exitCode(err), "%v: %v", args, err)
	}
}

// A flag's name has one meaning: the kind of its value is the same wherever it stands.
func TestFlagsHaveOneMeaning(t *testing.T) {
	kinds := map[string]string{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		require.NotEmpty(t, cmd.Short, cmd.CommandPath())
		for _, name := range []string{"base", "head", "workload", "json", "out", "duration", "layout", "rounds", "time", "source", "profiler", "quick", "file"} {
			flag := cmd.Flags().Lookup(name)
			if flag == nil {
				continue
			}
			if kind, known := kinds[name]; known {
				require.Equal(t, kind, flag.Value.Type(), "--%s of %s", name, cmd.CommandPath())
			}
			kinds[name] = flag.Value.Type()
		}
		for _, gone := range []string{"stage", "seconds", "from"} {
			require.Nil(t, cmd.Flags().Lookup(gone), "--%s of %s: stages are arguments", gone, cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	require.Len(t, kinds, 13)
}

func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		line, want string
	}{
		{"compare ", "3\tnative-parser"},
		{"compare 3 ", "2\tconn-timer"},
		{"guard 5 ", "4\t"},
		{"compare 2 3 --workload ", "browser\t"},
		{"where --workload ", "browser\t"},
		{"flame --profiler ", "perf"},
		{"run --layout ", "split"},
		{"workshop check ", "2\tconn-timer"},
		{"wrong-turn ", "router"},
		{"lab ", "locks\tWhat a lock costs"},
	} {
		out, err := execute(t, append([]string{"__complete"}, strings.Split(c.line, " ")...)...)
		require.NoError(t, err)
		require.Contains(t, out, c.want, c.line)
	}
	out, err := execute(t, "__complete", "compare", "3", "")
	require.NoError(t, err)
	require.NotContains(t, out, "native-parser", "it is named already")
}

func TestListsAndHelp(t *testing.T) {
	out, err := execute(t, "workloads")
	require.NoError(t, err)
	for _, w := range workload.All() {
		require.Contains(t, out, w.Name)
		require.Contains(t, strings.Join(strings.Fields(out), " "), w.Summary)
	}
	out, err = execute(t, "--version")
	require.NoError(t, err)
	require.Contains(t, out, "ladder, commit ")
	for _, sub := range []string{"run", "compare", "peers", "scale", "mix", "guard", "generators", "load", "merge", "report", "workloads", "serve", "docs", "workshop", "flame", "where", "syscalls", "allocs", "stat", "wrong-turn", "lab"} {
		out, err = execute(t, sub, "--help")
		require.NoError(t, err)
		require.Contains(t, out, "ladder "+sub)
	}
}

// A terminal of 80 columns breaks no word: in no help, in no list, and not in what a bare make
// prints.
func TestHelpFitsATerminal(t *testing.T) {
	fits := func(name, text string) {
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, runewidth.StringWidth(strings.TrimRight(line, "\n")), console.Width, "%s: %s", name, line)
		}
	}
	var walk func(*cobra.Command, []string)
	walk = func(cmd *cobra.Command, path []string) {
		text, err := execute(t, append(path, "--help")...)
		require.NoError(t, err)
		fits(strings.Join(path, " "), text)
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub, append(slices.Clone(path), sub.Name()))
			}
		}
	}
	walk(newRoot(), nil)
	text, err := execute(t, "workloads")
	require.NoError(t, err)
	fits("workloads", text)
	makefile, err := os.ReadFile(filepath.Join("..", "..", "..", "Makefile"))
	require.NoError(t, err)
	for _, found := range regexp.MustCompile(`(?m)^## (.+) \| (.+)$`).FindAllStringSubmatch(string(makefile), -1) {
		fits("make", fmt.Sprintf("  make %-22s %s", found[1], found[2]))
	}
}

func TestLoadPrintsAResult(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "Hello, World!") })}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	args := []string{"load", "--target", listener.Addr().String(), "--connections", "4", "--warmup", "1ms", "--duration", "50ms"}

	out, err := execute(t, args...)
	require.NoError(t, err)
	require.Contains(t, out, "4 connections on 1 threads, 4 established, 4 answered")
	require.Contains(t, out, "requests per second")

	out, err = execute(t, append(args, "--json", "-")...)
	require.NoError(t, err)
	var r load.Result
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.NotZero(t, r.Requests)
	require.Equal(t, workload.Hello, r.Workload)

	// Two results become one.
	folder := t.TempDir()
	path := filepath.Join(folder, "a.json")
	require.NoError(t, os.WriteFile(path, []byte(out), 0o600))
	_, err = execute(t, "merge", path, path)
	require.ErrorContains(t, err, "result 2 is result 1 once more")
	out, err = execute(t, append(args, "--json", "-")...)
	require.NoError(t, err)
	second := filepath.Join(folder, "b.json")
	require.NoError(t, os.WriteFile(second, []byte(out), 0o600))
	merged, err := execute(t, "merge", path, second)
	require.NoError(t, err)
	require.Contains(t, merged, "generator 2: ")
	require.Contains(t, merged, "together: hello at "+listener.Addr().String()+": 8 connections on 2 threads, 8 established")
	require.Contains(t, merged, "measured at the same time for 0% of their time only")
	require.NoError(t, os.WriteFile(path, []byte(`{"nonsense": 1}`), 0o600))
	_, err = execute(t, "merge", path)
	require.ErrorContains(t, err, "holds no result of ladder load --json")

	out, err = execute(t, append(args, "--rate", "400")...)
	require.NoError(t, err)
	require.Contains(t, out, "400 per second were due")

	out, err = execute(t, append(args, "--workload", "json")...)
	require.ErrorContains(t, err, "errors, see above")
	require.Contains(t, out, "error: length 13")
	out, err = execute(t, append(args, "--workload", "json", "--json", "-")...)
	require.ErrorContains(t, err, "errors, see above", "a script must not take this for a measurement")
	require.Contains(t, out, "length 13")
}

func TestHoldWaitsForItsParent(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, handshake(&out, bufio.NewReader(strings.NewReader("go\n")), "ready"))
	require.Equal(t, "ready\n", out.String())
	require.ErrorContains(t, handshake(&out, bufio.NewReader(strings.NewReader("")), "ready"), "--hold wants a line")
}

// A report is made anew from its JSON.
func TestReportFromJSON(t *testing.T) {
	d := &results.Document{
		Schema: results.Schema, Version: results.Version, Ended: results.Complete, Servers: []results.Server{{Name: "one"}}, Workloads: []results.Workload{{Name: "hello"}},
		Measurements: []results.Measurement{{Round: 1, Server: "one", Workload: "hello", RequestsPerSecond: 1234}},
	}
	d.Build("")
	folder := t.TempDir()
	paths, err := report.Write(d, folder, "made")
	require.NoError(t, err)
	out, err := execute(t, "report", paths[0])
	require.NoError(t, err)
	require.Contains(t, out, "1,234")
	require.FileExists(t, filepath.Join(folder, "made.html"))
	require.FileExists(t, filepath.Join(folder, "made.csv"))
}
