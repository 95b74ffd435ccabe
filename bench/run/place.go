package run

import (
	"fmt"
	"slices"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// Place says on which CPUs server and generator run.
type Place struct {
	Layout string // results.CoLocated, results.Split or results.Shared
	Server []int
	Load   []int
	Own    []int // for this process, which has little to do

	cores int // that all usable CPUs are on, 0 when the kernel does not tell
}

// Locate chooses among the CPUs that this process may use. An empty layout means the one that suits
// them: see arrange.
func Locate(layout string) (Place, error) {
	cpus, err := netpoll.CPUs()
	if err != nil {
		return Place{}, err
	}
	known := readCores(cpus)
	p, err := arrange(cpus, known, layout)
	if len(known) == len(cpus) {
		p.cores = len(known.group(cpus))
	}
	return p, err
}

// cores says of CPUs which core each is a thread of, by the lowest CPU of that core. One that is not
// in it is taken for a core of its own.
type cores map[int]int

// group puts CPUs of one core together, in the order of their first.
func (c cores) group(cpus []int) (groups [][]int) {
	at := map[int]int{}
	for _, cpu := range cpus {
		core, known := c[cpu]
		if i, seen := at[core]; known && seen {
			groups[i] = append(groups[i], cpu)
			continue
		}
		if known {
			at[core] = len(groups)
		}
		groups = append(groups, []int{cpu})
	}
	return groups
}

// arrange chooses the CPUs. An empty layout means the one that suits them: from two cores on server
// and generator get cores of their own, one each or halves, as a server's clients are elsewhere in
// life too. Two threads of one core are not that. On a single core they share a CPU.
func arrange(cpus []int, known cores, layout string) (Place, error) {
	if len(cpus) == 0 {
		return Place{}, fmt.Errorf("no CPU to run on")
	}
	groups := known.group(cpus)
	if layout == "" {
		layout = results.CoLocated
		if len(groups) >= 2 {
			layout = results.Split
		}
	}
	switch layout {
	case results.CoLocated:
		// The last one: interrupts and the rest of the system like the first best.
		shared, others := cpus[len(cpus)-1:], cpus[:len(cpus)-1]
		if len(others) == 0 {
			others = shared
		}
		return Place{Layout: layout, Server: shared, Load: shared, Own: others}, nil
	case results.Split:
		if len(cpus) < 2 {
			return Place{}, fmt.Errorf("layout %q needs at least 2 CPUs, and this process may use one: use --layout %s", layout, results.CoLocated)
		}
		if len(groups) < 2 { // asked for all the same
			groups = cores(nil).group(cpus)
		}
		half := len(groups) / 2
		server, load := slices.Concat(groups[:half]...), slices.Concat(groups[half:]...)
		slices.Sort(server)
		slices.Sort(load)
		return Place{Layout: layout, Server: server, Load: load, Own: load}, nil
	case results.Shared:
		return Place{Layout: layout, Server: cpus, Load: cpus, Own: cpus}, nil
	}
	return Place{}, fmt.Errorf("there is no layout %q: choose %s, %s or %s", layout, results.CoLocated, results.Split, results.Shared)
}

func (p Place) inUse() []int {
	all := slices.Concat(p.Server, p.Load)
	slices.Sort(all)
	return slices.Compact(all)
}
