package run

import (
	"fmt"
	"slices"

	"github.com/qps-ladder/qps-ladder/bench/results"
)

// Place says on which CPUs server and generator run.
type Place struct {
	Layout string // results.CoLocated, results.Split or results.Shared
	Server []int
	Load   []int
	Own    []int // for this process, which has little to do
}

// splitFrom is the number of CPUs from which server and generator get halves of their own.
const splitFrom = 4

// Arrange chooses the CPUs. An empty layout means the one that suits their
// number: below four, server and generator share one, which is then always
// saturated, so that every microsecond saved shows; from four on they get
// disjoint halves.
func Arrange(cpus []int, layout string) (Place, error) {
	if len(cpus) == 0 {
		return Place{}, fmt.Errorf("no CPU to run on")
	}
	if layout == "" {
		layout = results.CoLocated
		if len(cpus) >= splitFrom {
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
		half := len(cpus) / 2
		return Place{Layout: layout, Server: cpus[:half], Load: cpus[half:], Own: cpus[half:]}, nil
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
