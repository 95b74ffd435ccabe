package profile

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/bench/typecheck"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

const testRoot = "../.."

func TestEveryWrongTurnIsComplete(t *testing.T) {
	all, err := readTurns(testRoot)
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(testRoot, turnsFolder, "*.yaml"))
	require.NoError(t, err)
	require.Len(t, all, len(files))
	for i, turn := range all {
		require.Equal(t, turnOrder[i], turn.Name)
		for _, text := range []string{turn.Title, turn.Belief, turn.Published, turn.Lesson} {
			require.NotEmpty(t, text, turn.Name)
		}
		require.Contains(t, []string{expectSame, expectWorse, expectAddsUp}, turn.Expect)
		require.NotEmpty(t, turn.Evidence, turn.Name)
		_, err := turn.workloads()
		require.NoError(t, err, turn.Name)
		for _, e := range turn.Evidence {
			for _, name := range e.Categories {
				require.True(t, slices.Contains(categoryNames[:], name), "%s: %s is no category", turn.Name, name)
			}
			require.Equal(t, len(e.Categories) > 0, e.Saves != 0, turn.Name)
		}
		changes := 0
		for _, has := range []bool{len(turn.Edits) > 0, turn.Patch != "", len(turn.Parts) > 0, len(turn.Flags) > 0} {
			if has {
				changes++
			}
		}
		require.Equal(t, 1, changes, turn.Name)
	}
}

// Every wrong turn still fits the stage it is made from. A stage that changes
// under an edit makes this fail, with the text that is no longer there.
func TestEveryWrongTurnCompiles(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles a stage for each")
	}
	all, err := readTurns(testRoot)
	require.NoError(t, err)
	checker, err := typecheck.New(t.Context(), testRoot, "./stage...")
	require.NoError(t, err)
	outside := func(e harness.Edit) bool { return strings.HasPrefix(e.File, "shared/") }
	for _, turn := range all {
		t.Run(turn.Name, func(t *testing.T) {
			folder, err := harness.FindStage(testRoot, turn.Stage)
			require.NoError(t, err)
			// The type checker knows the stage alone. go vet compiles everything, but does not
			// link.
			compile := func(change harness.Change, folders ...string) {
				t.Helper()
				source, err := harness.Variant{Stage: turn.Stage, Change: change}.Source(t.Context(), testRoot)
				require.NoError(t, err)
				if b := turn.Benchmark; b != nil {
					source.Others[b.Folder+"/wrong_turn_test.go"] = []byte(b.Text)
				}
				switch {
				case len(source.Others) == 0 || !testenv.SlowToo() && !slices.ContainsFunc(change.Edits, outside):
					require.NoError(t, checker.Check(source.Files))
					return
				case !testenv.SlowToo(): // all that stands on a changed package is compiled too
					t.Log("it fits; compiled where what is slow by nature runs, see testenv.Slow")
					return
				}
				_, err = source.Go(t.Context(), append([]string{"vet"}, folders...)...)
				require.NoError(t, err)
			}
			folders := []string{"./" + folder}
			if turn.Benchmark != nil {
				folders = append(folders, "./"+turn.Benchmark.Folder)
			}
			change := turn.Change
			change.Edits = slices.Clone(change.Edits)
			for _, p := range turn.Parts {
				change.Edits = append(change.Edits, p.Edits...)
			}
			compile(change, folders...)
			// Each part alone: it may need what another one leaves away.
			for _, p := range turn.Parts {
				compile(harness.Change{Edits: p.Edits}, folders...)
			}
		})
	}
}

// ratio is one with an interval of the given bounds.
func ratio(head, base, w string, metric results.Metric, low, median, high float64) results.Ratio {
	return results.Ratio{
		Kind: results.Pair, Workload: w, Metric: metric, Head: head, Base: base,
		Ratio: stats.Interval{Low: low, Median: median, High: high, Rounds: 8, Confidence: 0.95},
	}
}

func noise(base, w string, bound float64) []results.Ratio {
	a := ratio(base+run.Again, base, w, results.RequestsPerSecond, 1-bound, 1, 1+bound)
	b := ratio(base+run.Again, base, w, results.ServerCPU, 1-bound, 1, 1+bound)
	a.Kind, b.Kind = results.Noise, results.Noise
	return []results.Ratio{a, b}
}

// judged gives ratios their verdicts, by the noise floor that is among them.
func judged(ratios []results.Ratio) []results.Ratio {
	d := &results.Document{Ratios: ratios}
	for i, r := range ratios {
		if r.Kind == results.Noise {
			ratios[i].Floor = r.Ratio.Floor()
		}
		ratios[i].Verdict = stats.Judge(r.Ratio, d.Floor(r.Workload, r.Metric))
	}
	return ratios
}

func TestVerdicts(t *testing.T) {
	w := []workload.Workload{{Name: "hello"}}
	j := &experiment{turn: wrongTurn{Expect: expectSame}, base: run.Server{Name: "stage5"}, changed: run.Server{Name: "with it"}}
	verdict := func(speed, cpu [3]float64, bound float64) string {
		d := &results.Document{Ratios: judged(append(noise("stage5", "hello", bound),
			ratio("with it", "stage5", "hello", results.RequestsPerSecond, speed[0], speed[1], speed[2]),
			ratio("with it", "stage5", "hello", results.ServerCPU, cpu[0], cpu[1], cpu[2])))}
		return strings.Join(j.verdict(d, w), "\n")
	}
	level, slower := [3]float64{0.99, 1, 1.01}, [3]float64{0.88, 0.9, 0.92}
	dearer := [3]float64{1.08, 1.1, 1.12}
	require.Contains(t, verdict(level, level, 0.01), "what was to be expected")
	require.Contains(t, verdict(level, level, 0.01), "differs by up to 1.0% in requests per second")
	require.Contains(t, verdict(slower, dearer, 0.01), "This machine says otherwise")
	require.Contains(t, verdict(slower, dearer, 0.2), "what was to be expected", "within the floor")
	j.turn.Expect = expectWorse
	require.Contains(t, verdict(slower, dearer, 0.01), "what was to be expected")
	require.Contains(t, verdict(level, dearer, 0.01), "what was to be expected")
	require.Contains(t, verdict(level, level, 0.01), "no larger than noise")
	require.Contains(t, verdict(dearer, level, 0.01), "This machine says otherwise", "faster is not worse")
}

func TestVerdictOfParts(t *testing.T) {
	j := &experiment{
		turn:    wrongTurn{Expect: expectAddsUp, Parts: []part{{Name: "one", What: "the first"}, {Name: "two", What: "the second"}}},
		base:    run.Server{Name: "stage5"},
		changed: run.Server{Name: "stopped early"},
		single:  []run.Server{{Name: "only one"}, {Name: "only two"}},
	}
	d := &results.Document{Ratios: judged(append(noise("stopped early", "hello", 0.01),
		ratio("only one", "stopped early", "hello", results.ServerCPU, 0.97, 0.99, 1.01),
		ratio("only two", "stopped early", "hello", results.ServerCPU, 0.96, 0.97, 0.98),
		ratio("all of them", "stopped early", "hello", results.ServerCPU, 0.95, 0.96, 0.97)))}
	text := strings.Join(j.verdict(d, []workload.Workload{{Name: "hello"}}), "\n")
	require.Contains(t, text, "alone, 1 of the 2 can be told from noise; all of them together can.")
	require.Contains(t, text, "only one: -1.0%, lost in noise: the first")
	require.Contains(t, text, "only two: -3.0%, faster: the second")
	require.Contains(t, text, "all of them: -4.0%; one after the other they would make -4.0%")

	// What is no larger than what a server differs from itself is told from nothing.
	d.Ratios = judged(append(noise("stopped early", "hello", 0.05), d.Ratios[2:]...))
	text = strings.Join(j.verdict(d, []workload.Workload{{Name: "hello"}}), "\n")
	require.NotContains(t, text, "faster")
	require.Contains(t, text, "In this run they cannot")
}

// What is smaller than noise is no confirmation either, although its interval
// excludes that there is no difference.
func TestVerdictGoesByTheNoise(t *testing.T) {
	j := &experiment{turn: wrongTurn{Expect: expectWorse}, base: run.Server{Name: "stage5"}, changed: run.Server{Name: "with it"}}
	d := &results.Document{Ratios: judged(append(noise("stage5", "hello", 0.2),
		ratio("with it", "stage5", "hello", results.RequestsPerSecond, 0.94, 0.95, 0.96),
		ratio("with it", "stage5", "hello", results.ServerCPU, 1.04, 1.05, 1.06)))}
	text := strings.Join(j.verdict(d, []workload.Workload{{Name: "hello"}}), "\n")
	require.Contains(t, text, "no larger than noise")
	require.NotContains(t, text, "That is what was to be expected")
}

// The kernel enters sendmsg through functions that sendto has not: all of them
// are the call around tcp_sendmsg.
func TestCallAroundSending(t *testing.T) {
	all, err := readTurns(testRoot)
	require.NoError(t, err)
	var e evidence
	for _, turn := range all {
		if turn.Name == "sendmsg" {
			e = turn.Evidence[0]
		}
	}
	k := func(names ...string) (frames []frame) {
		for _, name := range names {
			frames = append(frames, frame{name, kernelCode})
		}
		return append(frames, frame{"netpoll.sendto", projectCode})
	}
	for _, path := range [][]string{{"__sys_sendto", "__x64_sys_sendto"}, {"____sys_sendmsg", "___sys_sendmsg", "__sys_sendmsg"}} {
		r := &record{stacks: []stack{
			{k(append([]string{"tcp_sendmsg"}, path...)...), 100},
			{k(append([]string{"copy_from_user"}, path...)...), 3},
			{k(path...), 4},
			{k("tcp_recvmsg", "__sys_recvfrom"), 50},
		}}
		within, around := r.outside(e)
		require.Equal(t, int64(100), within, path)
		require.Equal(t, int64(7), around, path)
	}
}

func TestSentencesFitTheLine(t *testing.T) {
	j := &experiment{stage: "stage5-speculative-read", base: run.Server{Name: "stage5"}}
	var out strings.Builder
	j.out = &out
	j.say("%s", strings.Repeat("seven letters ", 40))
	j.row("%-9s|", "a")
	all, err := readTurns(testRoot)
	require.NoError(t, err)
	for _, turn := range all {
		j.paragraph("Why it looks right", turn.Belief)
	}
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len([]rune(line)), console.Width+1, line)
	}
	require.Equal(t, "stage5", j.called("stage5"))
	require.Equal(t, "stage5 with router", j.called("with router"))
}
