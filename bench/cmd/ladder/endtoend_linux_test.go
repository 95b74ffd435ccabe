package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/profile"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// What these tests measure is too short to be worth anything: they hold the commands to what they
// print and write.

// short is a measurement that only shows that all of it works. On a machine that is all others', a round of 50 ms may have
// no answer, and then there is no ratio to write down.
const short = "--rounds 1 --duration 150ms --warmup 5ms"

// ladder runs the command in a folder, as a process of its own, with variables beside those of this
// one.
func ladder(t *testing.T, folder string, env []string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	own, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), own, args...)
	cmd.Dir = folder
	cmd.Env = append(append(os.Environ(), mainVariable+"=1"), env...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err = cmd.Run()
	return out.String(), complaints.String(), err
}

func testRoot(t *testing.T) string {
	t.Helper()
	root, err := harness.FindRoot()
	require.NoError(t, err)
	return root
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(b)
}

// make ladder: builds, measures, prints and writes.
func TestRunEndToEnd(t *testing.T) {
	root, folder := testRoot(t), t.TempDir()
	names, err := harness.Stages(root)
	require.NoError(t, err)
	out, complaints, err := ladder(t, root, nil, append([]string{"run", "--ceiling=false", "--out", folder}, strings.Fields(short)...)...)
	require.NoError(t, err, "%s%s", out, complaints)

	d, err := results.Read(filepath.Join(folder, "ladder.json"))
	require.NoError(t, err)
	require.Equal(t, results.Complete, d.Ended)
	require.Equal(t, 1, d.Method.Rounds)
	require.Equal(t, "ladder run --ceiling=false --out "+folder+" "+short, d.Command)
	require.NotEmpty(t, d.Measurements)
	var requests uint64
	for _, m := range d.Measurements {
		requests += m.Requests
		require.Empty(t, m.Errors)
		require.Empty(t, m.ConnectErrors)
		require.Contains(t, m.Counters, "reads")
	}
	require.Positive(t, requests)
	for i, name := range append(names, names[len(names)-1]+run.Again) {
		_, ok := d.Row(name, "hello")
		require.True(t, ok, "%s on hello", name)
		number, what, _ := strings.Cut(strings.TrimPrefix(name, "stage"), "-")
		if i < len(names) {
			require.Regexp(t, `(?m)^`+number+" "+what+` +[0-9,]+\b`, out, "its line of the progression")
		}
	}
	// One verdict for each target of each step: so few rounds allow no other.
	verdicts := 0
	for _, name := range names[1:] {
		targets := 0
		for _, r := range d.Ratios {
			if r.Kind == results.Target && r.Head == name {
				targets++
			}
		}
		require.Positive(t, targets, name)
		verdicts += targets
	}
	steps, _, _ := strings.Cut(out[strings.Index(out, "Each step on its own target"):], "\nCompared")
	require.Equal(t, verdicts, strings.Count(steps, "too few rounds\n"), steps)

	require.Contains(t, complaints, "building 6 stages\n")
	require.Contains(t, complaints, "1 round, fixed now, of ")
	for _, name := range []string{"ladder.json", "ladder.md", "ladder.html", "ladder.csv", "ladder-light.svg", "ladder-dark.svg"} {
		require.NotEmpty(t, read(t, folder, name))
		require.Contains(t, complaints, "written: "+filepath.Join(folder, name)+"\n")
	}
	lines := strings.Split(strings.TrimSpace(read(t, folder, "ladder.csv")), "\n")
	require.Greater(t, len(lines), len(names))
	dated, err := filepath.Glob(filepath.Join(folder, "ladder-[0-9]*.*"))
	require.NoError(t, err)
	require.Len(t, dated, 2, "a JSON and a Markdown that the next run does not overwrite")
}

// A comparison has rounds enough for verdicts, and speaks of the run before it.
func TestCompareEndToEnd(t *testing.T) {
	testenv.Slow(t)
	root, folder := testRoot(t), t.TempDir()
	comparable := 0 // ratios of the run before that have an interval
	for again := range 2 {
		out, complaints, err := ladder(t, root, nil, strings.Fields("compare 0 1 --rounds 6 --duration 50ms --warmup 5ms --seed 7 --out "+folder)...)
		require.NoError(t, err, "%s%s", out, complaints)
		d, err := results.Read(filepath.Join(folder, "compare.json"))
		require.NoError(t, err)
		measured := 0
		for _, m := range d.Measurements {
			if m.Workload == workload.Hello { // what was not the server's limit is measured again, at a rate
				measured++
			}
		}
		require.Equal(t, 6*3, measured)
		require.EqualValues(t, 7, d.Method.Seed)
		// Where a server answered nothing in so short a time, as on a machine that is all others',
		// a round has no ratio.
		bounded := 0
		for _, r := range d.Ratios {
			if r.Ratio.Bounded() {
				bounded++
			}
		}
		require.Equal(t, len(d.Ratios)-bounded, strings.Count(out, "too few rounds\n"), out)
		require.Regexp(t, `(?m)^1 reuseport +0 naive +req/s(, hello)? +[0-9.]+ .*[a-z]$`, out)
		require.Regexp(t, `(?m)^0 naive +itself +server CPU(, hello)? +[0-9.]+ .*floor [0-9.]+%$`, out)
		if again == 1 && bounded == len(d.Ratios) && comparable == len(d.Ratios) {
			require.Regexp(t, `(?m)^The run (of|before)`, strings.Join(d.Notes, "\n"))
		}
		comparable = bounded
	}
}

// A commit is built in a worktree, which is there as long as its server is started, and gone afterwards.
func TestCompareWithACommit(t *testing.T) {
	testenv.Slow(t)
	root, folder := testRoot(t), t.TempDir()
	worktrees := func() string {
		list, err := exec.Command("git", "-C", root, "worktree", "list").Output()
		require.NoError(t, err)
		return string(list)
	}
	before := worktrees()
	out, complaints, err := ladder(t, root, nil, strings.Fields("compare 5 --base HEAD --rounds 6 --duration 50ms --warmup 5ms --out "+folder)...)
	require.NoError(t, err, "%s%s", out, complaints)
	require.Equal(t, before, worktrees())
	d, err := results.Read(filepath.Join(folder, "compare.json"))
	require.NoError(t, err)
	rounds := map[string]int{}
	for _, m := range d.Measurements {
		if m.Workload == workload.Hello {
			rounds[m.Server]++
		}
	}
	require.Equal(t, results.Complete, d.Ended, d.Notes)
	require.Equal(t, 6, rounds["stage5 as it is"], rounds)
	require.Len(t, rounds, 3, "%v: the base once more", rounds)
}

// marks are the figures of a README, as docs/README.md describes them.
var marks = regexp.MustCompile(`(?s)(<!--(?:figure|cite|ladder)(?: [^<>]*?)?-->)(.*?)(<!--/-->)`)

// Measures into docs/data, and writes the READMEs' figures from there.
func TestRefreshEndToEnd(t *testing.T) {
	testenv.Slow(t)
	root, clone := testRoot(t), t.TempDir()
	copyTree(t, root, clone)
	names, err := harness.Stages(root)
	require.NoError(t, err)

	// A README that an earlier hand has spoilt between the marks, and only there.
	readme := filepath.Join(clone, "README.md")
	before := read(t, readme)
	require.NoError(t, os.WriteFile(readme, []byte(marks.ReplaceAllString(before, "${1}0.00${3}")), 0o644))

	began := time.Now().Add(-time.Second)
	env := []string{shortenVariable + "=" + short, rootVariable + "=" + root}
	out, complaints, err := ladder(t, clone, env, "docs", "refresh", "--quick", "--only", "ladder")
	require.NoError(t, err, "%s%s", out, complaints)
	require.Regexp(t, `written anew:[^\n]*README\.md`, out)

	d, err := results.Read(filepath.Join(clone, "docs", "data", "ladder.json"))
	require.NoError(t, err)
	require.True(t, d.Created.After(began), "measured anew")
	require.Equal(t, "make ladder QUICK=1", d.Command)
	require.Equal(t, 1, d.Method.Rounds)
	for _, name := range names {
		_, ok := d.Row(name, "hello")
		require.True(t, ok, name)
	}
	require.Empty(t, d.Measurements, "what no page reads is left out")
	for _, theme := range []string{"light", "dark"} {
		name := "ladder-" + theme + ".svg"
		require.NotEqual(t, read(t, root, "docs", "data", name), read(t, clone, "docs", "data", name))
	}
	for _, name := range []string{"shared.json", "peers.json", "ablation.json", "where.json"} {
		require.Equal(t, read(t, root, "docs", "data", name), read(t, clone, "docs", "data", name), "was not to be measured")
	}

	for _, name := range append([]string{"."}, names...) {
		old, now := read(t, root, name, "README.md"), read(t, clone, name, "README.md")
		require.Equal(t, marks.ReplaceAllString(old, "$1$3"), marks.ReplaceAllString(now, "$1$3"), "%s: nothing but figures changes", name)
		for _, found := range marks.FindAllStringSubmatch(now, -1) {
			require.NotEqual(t, "0.00", found[2], "%s: %s was left", name, found[1])
		}
	}
	now := read(t, readme)
	require.Contains(t, now, "Measured on "+d.Created.Format("2006-01-02")+" with `make docs-refresh`")
	require.Contains(t, now, ", 1 rounds; `docs/data/ladder.json` has more of it.")
	for i := range names {
		require.Regexp(t, `(?m)^\| `+string(rune('0'+i))+` [a-z-]+ \| [0-9,]+ \|`, now)
	}
	out, _, err = ladder(t, clone, nil, "docs", "readmes")
	require.NoError(t, err)
	require.Empty(t, out, "the READMEs say what the results do")
}

// The other parts of a refresh, which build and measure some 40 servers.
func TestRefreshOfEachPart(t *testing.T) {
	testenv.Slow(t)
	for part, files := range map[string][]string{
		"shared":   {"shared.json"},
		"peers":    {"peers.json"},
		"ablation": {"ablation.json"},
		"profiles": {"where.json", "profiles/stage0.folded", "profiles/stage5.folded"},
		"labs":     {"labs/locks.json"},
	} {
		t.Run(part, func(t *testing.T) {
			root, clone := testRoot(t), t.TempDir()
			copyTree(t, root, clone)
			env := []string{shortenVariable + "=" + short, rootVariable + "=" + root}
			out, complaints, err := ladder(t, clone, env, "docs", "refresh", "--quick", "--rounds", "1", "--lab", "locks", "--only", part)
			require.NoError(t, err, "%s%s", out, complaints)
			for _, name := range files {
				require.NotEqual(t, read(t, root, "docs", "data", name), read(t, clone, "docs", "data", name), "%s is as it was", name)
			}
			if d, err := results.Read(filepath.Join(clone, "docs", "data", part+".json")); part != "profiles" && part != "labs" {
				require.NoError(t, err)
				require.Equal(t, results.Complete, d.Ended)
				require.Equal(t, 1, d.Method.Rounds)
			}
			_, complaints, err = ladder(t, clone, nil, "docs", "readmes")
			require.NoError(t, err, complaints)
		})
	}
}

// What looks into a server writes JSON as what measures does, in place of the text or beside it.
func TestLooksAsJSON(t *testing.T) {
	testenv.Slow(t)
	root, folder := testRoot(t), t.TempDir()
	look := func(schema string, args ...string) (text string, result map[string]any) {
		t.Helper()
		file := filepath.Join(folder, schema+".json")
		to := file
		if schema == "allocs" {
			to = "-"
		}
		args = append(args, "--out", folder, "--json", to)
		out, complaints, err := ladder(t, root, nil, args...)
		require.NoError(t, err, "%s%s", out, complaints)
		written := out
		if to == file {
			written = read(t, file)
		}
		require.NoError(t, json.Unmarshal([]byte(written), &result), written)
		require.Equal(t, "qps-ladder/"+schema, result["schema"])
		require.EqualValues(t, 1, result["version"])
		return out, result
	}
	list := func(of map[string]any, name string) []any {
		t.Helper()
		require.IsType(t, []any{}, of[name])
		require.NotEmpty(t, of[name])
		return of[name].([]any)
	}
	element := func(of map[string]any, name string) map[string]any {
		t.Helper()
		return list(of, name)[0].(map[string]any)
	}

	out, calls := look("syscalls", "syscalls", "2", "--workload", "c1", "--duration", "100ms")
	require.Regexp(t, `(?m)^recvfrom +1\.00`, out)
	run := element(calls, "runs")
	require.Equal(t, "stage2-conn-timer", run["server"])
	require.InDelta(t, 1, run["counters"].(map[string]any)["recvfrom"], 0.01)

	out, allocs := look("allocs", "allocs", "2", "--duration", "100ms")
	require.True(t, strings.HasPrefix(out, "{"), "in place of the text")
	run = element(allocs, "runs")
	require.Greater(t, run["objects_per_request"], 5.0)
	require.Positive(t, element(run, "sites")["objects_per_request"])

	out, flame := look("flame", "flame", "2", "--profiler", "go", "--duration", "1s")
	require.Contains(t, out, "kernel: TCP send")
	require.FileExists(t, flame["page"].(string))
	require.FileExists(t, list(flame, "profiles")[0].(string))
	require.Equal(t, "qps-ladder/where", flame["where"].(map[string]any)["schema"])

	out, turn := look("wrong-turn", "wrong-turn", "256-bytes", "--rounds", "1", "--duration", "400ms")
	require.Contains(t, out, "To remember")
	require.Equal(t, "256-bytes", turn["name"])
	require.Equal(t, "worse", turn["expect"])
	require.Contains(t, out, list(turn, "evidence")[0], "the first is the head of a table")
	require.Contains(t, strings.Join(strings.Fields(out), " "), list(turn, "verdict")[0])
	require.Equal(t, results.Complete, turn["run"].(map[string]any)["ended"])
}

// copyTree copies the files that make the repository, and nothing that was built or laid out in it.
func copyTree(t *testing.T, root, clone string) {
	t.Helper()
	skipped := map[string]bool{".git": true, "work": true, "bench/out": true, "docs/_site": true}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case skipped[filepath.ToSlash(name)]:
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(clone, name), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(clone, name), b, 0o644)
	}))
}

// fakePerf does what perf stat does as far as this project can tell: see perf-stat(1), --control
// and -x.
const fakePerf = `#!/bin/sh
[ "$1" = stat ] || exit 9
trap 'printf "%s\n" 4200000,,instructions,1,100.00,, 2100000,,cycles,1,100.00,, "<not supported>,,cache-misses,0,100.00,," 7,,context-switches:u,1,100.00,, 12,,cpu-migrations,1,100.00,, >&2; exit 0' INT
read -r order <&3
[ "$order" = enable ] || exit 9
echo "$@" > "$0.args"
echo ack >&4
while :; do sleep 0.02; done
`

// make stat: what perf counts, for each request.
func TestStatEndToEnd(t *testing.T) {
	testenv.Slow(t)
	root, folder := testRoot(t), t.TempDir()
	perf := filepath.Join(folder, "perf")
	require.NoError(t, os.WriteFile(perf, []byte(fakePerf), 0o755))
	path := "PATH=" + folder + string(filepath.ListSeparator) + os.Getenv("PATH")
	out, complaints, err := ladder(t, root, []string{path}, "stat", "4", "5", "--duration", "50ms", "--json", filepath.Join(folder, "stat.json"))
	require.NoError(t, err, "%s%s", out, complaints)
	var table profile.StatTable
	require.NoError(t, json.Unmarshal([]byte(read(t, folder, "stat.json")), &table))
	require.Equal(t, "qps-ladder/stat", table.Schema)
	require.Len(t, table.Servers, 2)
	require.InEpsilon(t, 2, table.Servers[1].PerRequest["instructions"]/table.Servers[1].PerRequest["cycles"], 1e-9)
	require.True(t, table.Servers[0].UserOnly)
	require.NotContains(t, table.Servers[0].PerRequest, "cache-misses")
	require.Equal(t, "counting stage4-scatter-gather on hello\ncounting stage5-speculative-read on hello\n", complaints)
	require.Contains(t, out, "Per request on hello, by perf stat\n")
	require.Regexp(t, `(?m)^ +stage4 +stage5$`, out)
	require.Regexp(t, `(?m)^instructions +[0-9.]+ +[0-9.]+$`, out)
	require.Regexp(t, `(?m)^instr\. per cycle +2\.00 +2\.00$`, out)
	require.Contains(t, out, "Not counted here: ")
	require.Contains(t, out, "cache misses")
	require.Contains(t, out, "What happens in the kernel is not counted")
	require.Regexp(t, `^stat -x , -e instructions,.* -D -1 --control fd:3,4 -p [0-9]+\n$`, read(t, perf+".args"))

	// With --pin each stands there twice, and the second has bound its loops.
	out, complaints, err = ladder(t, root, []string{path}, "stat", "5", "--pin", "--duration", "50ms", "--out", folder)
	require.NoError(t, err, "%s%s", out, complaints)
	require.Regexp(t, `(?m)^ +stage5 +stage5 -pin$`, out)
	require.Regexp(t, `(?m)^migrations in all +12 +12$`, out)

	// One that may not count is one line.
	require.NoError(t, os.WriteFile(perf, []byte("#!/bin/sh\necho 'Error: No permission: see perf_event_paranoid' >&2\nexit 255\n"), 0o755))
	_, complaints, err = ladder(t, root, []string{path}, "stat", "5", "--duration", "50ms", "--out", folder)
	require.Error(t, err)
	require.Regexp(t, `(?s)^counting stage5-speculative-read on hello\nladder: [^\n]*perf_event_paranoid[^\n]*\n$`, complaints)

	require.NoError(t, os.Remove(perf))
	_, complaints, err = ladder(t, root, []string{"PATH=" + folder}, "stat", "5")
	require.Error(t, err)
	require.Contains(t, complaints, "perf is not installed")
}

// The real perf takes what the fake one does.
func TestStatWithPerf(t *testing.T) {
	if _, err := exec.LookPath("perf"); err != nil {
		t.Skip("perf is not installed")
	}
	out, complaints, err := ladder(t, testRoot(t), nil, "stat", "5", "--duration", "50ms", "--out", t.TempDir())
	if err != nil && strings.Contains(complaints, "perf_event_paranoid") {
		t.Skip(complaints)
	}
	require.NoError(t, err, "%s%s", out, complaints)
	require.Regexp(t, `(?m)^page-faults +[0-9.]+$|^page faults +[0-9.]+$`, out)
}
