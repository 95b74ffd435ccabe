package grade

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	special["loops on CPUs that they may not use"] = placementFigure(func(f placementFlaws) int { return f.forbidden })
	special["loops that share a core without need"] = placementFigure(func(f placementFlaws) int { return f.shared })
	special["loops that are on the wrong node"] = placementFigure(func(f placementFlaws) int { return f.far })
	behaviour("placements", "on each of the machines that the text speaks of, the loops get the right CPUs", placements)
	behaviour("pinned", "-pin binds each loop to a CPU of its own, as far as there are as many", pinned)
}

// placementProbe is put beside the learner's code, and asks Place.
//
//go:embed placement.go.txt
var placementProbe string

// A placementQuestion is a machine, as /sys shows it, and what is to be placed there. The probe
// reads it as JSON.
type placementQuestion struct {
	Files   map[string]string
	Allowed []int
	Loops   int

	name string
	want []int
	tree *tree
}

// A tree is a machine of which everything is known.
type tree struct {
	nodes   []treeNode
	online  []int
	old     bool // the kernel has only the old name of the list of siblings
	unknown bool // nothing is told
}

type treeNode struct {
	id     int
	memory bool
	cores  [][]int // the threads of each
}

func (n treeNode) cpus() []int {
	all := slices.Concat(n.cores...)
	slices.Sort(all)
	return all
}

// cpuList writes numbers as the kernel does: "0-3,8" and the end of the line.
func cpuList(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		end := i
		for end+1 < len(cpus) && cpus[end+1] == cpus[end]+1 {
			end++
		}
		if end == i {
			parts = append(parts, strconv.Itoa(cpus[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", cpus[i], cpus[end]))
		}
		i = end + 1
	}
	return strings.Join(parts, ",") + "\n"
}

// files are what the kernel shows of t. A CPU that is offline stands nowhere but among those that
// are possible.
func (t *tree) files() map[string]string {
	files := map[string]string{}
	if t.unknown {
		return files
	}
	isOnline := func(cpu int) bool { return slices.Contains(t.online, cpu) }
	only := func(cpus []int) []int {
		cpus = slices.DeleteFunc(slices.Clone(cpus), func(cpu int) bool { return !isOnline(cpu) })
		slices.Sort(cpus)
		return cpus
	}
	files["devices/system/cpu/online"] = cpuList(t.online)
	var ids, memory []int
	for _, n := range t.nodes {
		ids = append(ids, n.id)
		if n.memory {
			memory = append(memory, n.id)
		}
		files[fmt.Sprintf("devices/system/node/node%d/cpulist", n.id)] = cpuList(only(n.cpus()))
		for _, core := range n.cores {
			for _, cpu := range only(core) {
				if !t.old {
					files[fmt.Sprintf("devices/system/cpu/cpu%d/topology/core_cpus_list", cpu)] = cpuList(only(core))
				}
				files[fmt.Sprintf("devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)] = cpuList(only(core))
			}
		}
	}
	files["devices/system/node/online"] = cpuList(ids)
	files["devices/system/node/has_memory"] = cpuList(memory)
	return files
}

// cores makes so many cores with threads that are step apart, from a CPU on.
func cores(first, n, threads, step int) (all [][]int) {
	for i := range n {
		var core []int
		for t := range threads {
			core = append(core, first+i+t*step)
		}
		all = append(all, core)
	}
	return all
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// machines are those that have a name, each with what is right on it.
func machines() (all []placementQuestion) {
	add := func(name string, t *tree, allowed []int, loops int, want ...int) *placementQuestion {
		if t.online == nil {
			t.online = allowed
		}
		all = append(all, placementQuestion{Files: t.files(), Allowed: allowed, Loops: loops, name: name, want: want, tree: t})
		return &all[len(all)-1]
	}
	two := func() *tree {
		return &tree{nodes: []treeNode{{0, true, cores(0, 8, 1, 0)}, {1, true, cores(8, 8, 1, 0)}}}
	}
	add("8 loops on two nodes", two(), upTo(16), 8, 0, 1, 2, 3, 8, 9, 10, 11)
	add("one loop on two nodes", two(), upTo(16), 1, 0)
	add("3 loops on two nodes", two(), upTo(16), 3, 0, 1, 8)
	add("20 loops on 16 CPUs", two(), upTo(16), 20, upTo(16)...)
	add("CPUs that alternate between two nodes", &tree{nodes: []treeNode{
		{0, true, [][]int{{0}, {2}, {4}, {6}, {8}, {10}, {12}, {14}}}, {1, true, [][]int{{1}, {3}, {5}, {7}, {9}, {11}, {13}, {15}}},
	}}, upTo(16), 8, 0, 2, 4, 6, 1, 3, 5, 7)
	twice := func() *tree {
		return &tree{nodes: []treeNode{{0, true, cores(0, 4, 2, 8)}, {1, true, cores(4, 4, 2, 8)}}}
	}
	add("8 loops on 8 cores with two threads", twice(), upTo(16), 8, 0, 1, 2, 3, 4, 5, 6, 7)
	add("11 loops on 8 cores with two threads", twice(), upTo(16), 11, 0, 1, 2, 3, 8, 9, 4, 5, 6, 7, 12)
	add("threads of a core that are neighbours", &tree{nodes: []treeNode{{0, true, [][]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}}}}}, upTo(8), 5, 0, 2, 4, 6, 1)
	old := &tree{nodes: []treeNode{{0, true, [][]int{{0, 1}, {2, 3}}}}, old: true}
	add("an old kernel", old, upTo(4), 2, 0, 2)
	add("numbers with gaps", &tree{nodes: []treeNode{{0, true, [][]int{{0}, {8}, {16}}}, {8, true, [][]int{{32}, {40}, {48}}}, {250, true, [][]int{{1000}}}}},
		[]int{0, 8, 16, 32, 40, 48, 1000}, 4, 0, 8, 32, 1000)
	offline := twice()
	offline.online = []int{1, 2, 3, 4, 5, 8, 12}
	add("CPUs that are offline", offline, upTo(16), 6, 1, 2, 3, 8, 4, 5)
	add("a mask of a cgroup", twice(), []int{2, 3, 10, 12, 13}, 4, 2, 3, 12, 13)
	add("a mask with second threads alone", twice(), []int{8, 9, 10, 11}, 2, 8, 9)
	far := func() *tree {
		return &tree{nodes: []treeNode{{0, false, cores(0, 4, 1, 0)}, {1, true, cores(4, 4, 1, 0)}, {2, true, nil}}}
	}
	add("a node without memory, one without CPUs", far(), upTo(8), 4, 4, 5, 6, 7)
	add("more loops than CPUs near memory", far(), upTo(8), 6, 0, 1, 4, 5, 6, 7)
	add("a core far from memory before half of a near one", &tree{nodes: []treeNode{{0, true, cores(0, 2, 2, 4)}, {1, false, cores(2, 2, 2, 4)}}}, upTo(8), 5, 0, 1, 4, 2, 3)
	add("nodes of different sizes", &tree{nodes: []treeNode{{0, true, cores(0, 2, 1, 0)}, {1, true, cores(2, 6, 1, 0)}}}, upTo(8), 6, 0, 1, 2, 3, 4, 5)
	add("nothing in /sys", &tree{unknown: true}, []int{3, 4, 7}, 2, 3, 4)
	damaged := add("a damaged /sys", twice(), upTo(16), 4, 0, 1, 2, 3)
	for name := range damaged.Files {
		damaged.Files[name] = []string{"0-\n", "a\n", "7-3\n", ",\n", "0-99999999999999999999\n", "-5\n", "\x00"}[len(name)%7]
	}
	silent := add("no list of memory", twice(), upTo(16), 2, 0, 4)
	delete(silent.Files, "devices/system/node/has_memory")
	forgotten := add("a CPU that no node has", two(), upTo(17), 5, 0, 1, 8, 9, 16)
	forgotten.Files["devices/system/cpu/online"] = "0-16\n"
	return all
}

// randomMachine draws a machine with up to four nodes, and a mask.
func randomMachine(random *rand.Rand) placementQuestion {
	t := &tree{}
	id, next := 0, 0
	var all []int
	threads := 1 + random.IntN(2)
	for range 1 + random.IntN(4) {
		id += random.IntN(3)
		n := treeNode{id: id, memory: random.IntN(4) > 0}
		id++
		for range random.IntN(7) {
			var core []int
			for range threads {
				next += random.IntN(2) * random.IntN(3)
				core = append(core, next)
				all = append(all, next)
				next++
			}
			n.cores = append(n.cores, core)
		}
		t.nodes = append(t.nodes, n)
	}
	if len(all) == 0 {
		return randomMachine(random)
	}
	if !slices.ContainsFunc(t.nodes, func(n treeNode) bool { return n.memory }) {
		t.nodes[0].memory = true
	}
	if random.IntN(2) == 0 { // the numbers have no order
		shuffled := slices.Clone(all)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		i := 0
		for _, n := range t.nodes {
			for _, core := range n.cores {
				for k := range core {
					core[k] = shuffled[i]
					i++
				}
				slices.Sort(core)
			}
		}
	}
	pick := func(share int) (some []int) {
		for _, cpu := range all {
			if random.IntN(8) < share {
				some = append(some, cpu)
			}
		}
		return some
	}
	t.online = pick(7)
	allowed := pick(7)
	if !slices.ContainsFunc(allowed, func(cpu int) bool { return slices.Contains(t.online, cpu) }) {
		t.online, allowed = all, all
	}
	return placementQuestion{Files: t.files(), Allowed: allowed, Loops: 1 + random.IntN(len(all)+2), tree: t}
}

// placementFlaws are how many loops are where they should not be.
type placementFlaws struct{ forbidden, shared, far int }

// flaws holds an answer against the rules of the text.
func (q *placementQuestion) flaws(answer []int) (f placementFlaws) {
	usable := slices.DeleteFunc(slices.Clone(q.Allowed), func(cpu int) bool { return !slices.Contains(q.tree.online, cpu) })
	seen := map[int]bool{}
	for _, cpu := range answer {
		if seen[cpu] || !slices.Contains(usable, cpu) {
			f.forbidden++
		}
		seen[cpu] = true
	}
	should := min(q.Loops, len(usable))
	f.forbidden += max(should-len(answer), len(answer)-should)

	// How many CPUs of each core may be used, and are; and how many loops each node should have,
	// and has.
	type counted struct{ has, should int }
	var nodes []counted
	var ranks [][]int // of each node, how many threads of each rank there are
	busy, free := 0, 0
	for _, n := range q.tree.nodes {
		var c counted
		var rank []int
		for _, core := range n.cores {
			may, used := 0, 0
			for _, cpu := range core {
				if !slices.Contains(usable, cpu) {
					continue
				}
				if len(rank) == may {
					rank = append(rank, 0)
				}
				rank[may]++
				may++
				if seen[cpu] {
					used++
				}
			}
			c.has += used
			if used > 0 {
				busy++
			} else if may > 0 {
				free++
			}
		}
		nodes, ranks = append(nodes, c), append(ranks, rank)
	}
	inUse := 0
	for _, c := range nodes {
		inUse += c.has
	}
	f.shared = min(inUse-busy, free)

	left := should
	for thread := 0; thread < 2; thread++ {
		for _, memory := range []bool{true, false} {
			for left > 0 {
				least := -1
				for i, n := range q.tree.nodes {
					if n.memory == memory && thread < len(ranks[i]) && ranks[i][thread] > 0 && (least < 0 || nodes[i].should < nodes[least].should) {
						least = i
					}
				}
				if least < 0 {
					break
				}
				ranks[least][thread]--
				nodes[least].should++
				left--
			}
		}
	}
	for _, c := range nodes {
		f.far += max(c.has-c.should, 0)
	}
	return f
}

// place asks the learner's Place.
func (s *Subject) place(questions []placementQuestion) (answers [][]int, err error) {
	binary, err := s.BuildWith("zz_probe.go", placementProbe)
	if err != nil {
		return nil, fmt.Errorf("the function Place has to stay: %w", errors.New(strings.Join(strings.Fields(err.Error()), " ")))
	}
	asked, err := json.Marshal(questions)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.Context, 20*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, binary)
	command.Env = append(command.Environ(), "QPS_LADDER_PROBE=1")
	command.Stdin = bytes.NewReader(asked)
	output, err := command.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) && len(failed.Stderr) > 0 {
			line, _, _ := strings.Cut(string(failed.Stderr), "\n")
			return nil, errors.New("the call of Place does not end well: " + line)
		}
		return nil, fmt.Errorf("the call of Place does not end well: %w", err)
	}
	if err := json.Unmarshal(output, &answers); err != nil || len(answers) != len(questions) {
		return nil, errors.New("the probe was answered in another way than expected")
	}
	return answers, nil
}

// placementFigure counts over many machines that nobody knows beforehand.
func placementFigure(of func(placementFlaws) int) specialFigure {
	return specialFigure{"machine", func(s *Subject) (float64, error) {
		const n = 200
		random := s.random("machines")
		questions := make([]placementQuestion, n)
		for i := range questions {
			questions[i] = randomMachine(random)
		}
		answers, err := s.place(questions)
		if err != nil {
			return 0, err
		}
		flaws := 0
		for i := range questions {
			flaws += of(questions[i].flaws(answers[i]))
		}
		return float64(flaws) / n, nil
	}}
}

func placements(s *Subject) error {
	questions := machines()
	answers, err := s.place(questions)
	if err != nil {
		return err
	}
	for i, q := range questions {
		if !slices.Equal(answers[i], q.want) {
			return fmt.Errorf("%s: CPUs %v, not %v", q.name, answers[i], q.want)
		}
	}
	return nil
}

// pinned looks at the masks of a server's threads, with -pin and without.
func pinned(s *Subject) error {
	for _, flags := range [][]string{{"-pin"}, {}} {
		err := s.with(func(server *Server) error {
			// A server is ready before all of its threads have begun.
			var all int
			var bound []int
			var err error
			server.await(func(harness.Reading) bool {
				all, bound, err = threadMasks(server.PID())
				return err != nil || all < 2 || len(bound) >= pinnedLoops || len(flags) == 0
			})
			if err != nil || all < 2 {
				return err // with one CPU every thread has it
			}
			loops := min(all, pinnedLoops)
			switch {
			case len(flags) == 0 && len(bound) > 0:
				return fmt.Errorf("without -pin, %d threads are bound to one CPU", len(bound))
			case len(flags) > 0 && len(bound) != pinnedLoops:
				return fmt.Errorf("with -pin and %d loops, %d threads are bound to one CPU", pinnedLoops, len(bound))
			}
			slices.Sort(bound)
			if different := len(slices.Compact(bound)); len(flags) > 0 && different != loops {
				return fmt.Errorf("with -pin and %d loops on %d CPUs, they are bound to %d different ones", pinnedLoops, all, different)
			}
			return server.helloOver(10)
		}, append(flags, "-workers", strconv.Itoa(pinnedLoops))...)
		if err != nil {
			return err
		}
	}
	return nil
}

const pinnedLoops = 4

// threadMasks reads how many CPUs a process may use, and the CPU of each thread that may use one
// alone: Cpus_allowed_list in proc_pid_status(5).
func threadMasks(pid int) (all int, bound []int, err error) {
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		return 0, nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		for line := range strings.Lines(string(text)) {
			list, ok := strings.CutPrefix(line, "Cpus_allowed_list:")
			if !ok {
				continue
			}
			n, first := 0, -1
			for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
				from, to, isRange := strings.Cut(part, "-")
				a, err := strconv.Atoi(from)
				b := a
				if isRange && err == nil {
					b, err = strconv.Atoi(to)
				}
				if err != nil {
					return 0, nil, fmt.Errorf("the kernel says that the CPUs of a thread are %q", list)
				}
				if first < 0 {
					first = a
				}
				n += b - a + 1
			}
			if all = max(all, n); n == 1 {
				bound = append(bound, first)
			}
		}
	}
	return all, bound, nil
}
