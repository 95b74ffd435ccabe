package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxCPUs is above every number of a CPU or a node that Linux can have.
const maxCPUs = 8192

// A node is the CPUs that are near to the same memory.
type node struct {
	memory  bool    // it has some
	threads [][]int // its CPUs: the first threads of its cores, the second ones, and so on
	chosen  [][]int // those that loops get, in the same way
	loops   int     // how many they are
}

// Place chooses CPUs for so many loops, one each, in the order of the loops. There
// are fewer if there are not as many CPUs: then loops share. allowed are the CPUs
// that the process may use, which a cgroup may have limited; read gives the text of
// a file below /sys by its path, "" if there is none. What the kernel does not tell
// (in a container it may tell nothing) counts as one node of single cores.
//
// No two loops get threads of one core as long as another core is free: half a core
// is worse than memory that is far. Then nodes that have no memory come last, and
// the others are filled evenly, lower numbers first. The loops of one node stand
// together. Of each node a loop gets memory by itself: the kernel takes a page from
// the node of the thread that touches it first (numa(7)).
func Place(allowed []int, loops int, read func(name string) string) []int {
	nodes := readNodes(usable(allowed, read), read)
	for thread := 0; loops > 0 && slices.ContainsFunc(nodes, func(n *node) bool { return thread < len(n.threads) }); thread++ {
		for _, memory := range []bool{true, false} {
			for loops > 0 {
				n := leastLoaded(nodes, thread, memory)
				if n == nil {
					break
				}
				n.choose(thread)
				loops--
			}
		}
	}
	var placed []int
	for _, n := range nodes {
		placed = append(placed, slices.Concat(n.chosen...)...)
	}
	return placed
}

// choose gives the next CPU among the threads of that rank to a loop.
func (n *node) choose(thread int) {
	for len(n.chosen) <= thread {
		n.chosen = append(n.chosen, nil)
	}
	next := n.threads[thread][len(n.chosen[thread])]
	n.chosen[thread] = append(n.chosen[thread], next)
	n.loops++
}

// left is how many threads of that rank no loop has yet.
func (n *node) left(thread int) int {
	switch {
	case thread >= len(n.threads):
		return 0
	case thread >= len(n.chosen):
		return len(n.threads[thread])
	}
	return len(n.threads[thread]) - len(n.chosen[thread])
}

// leastLoaded is the node with the fewest loops among those that have a thread of
// that rank left, nil if none has.
func leastLoaded(nodes []*node, thread int, memory bool) (least *node) {
	for _, n := range nodes {
		if n.memory == memory && n.left(thread) > 0 && (least == nil || n.loops < least.loops) {
			least = n
		}
	}
	return least
}

// usable are those of allowed that are online: a mask may name others.
func usable(allowed []int, read func(string) string) []int {
	online, ok := numbers(read("devices/system/cpu/online"))
	both := slices.DeleteFunc(slices.Clone(allowed), func(cpu int) bool { return ok && !slices.Contains(online, cpu) })
	if len(both) == 0 {
		return allowed // who runs here knows better
	}
	return both
}

// readNodes finds the nodes of those CPUs that loops may get. Their numbers need
// not be consecutive, and a node may have no CPU, or none of these.
func readNodes(cpus []int, read func(string) string) (nodes []*node) {
	ids, _ := numbers(read("devices/system/node/online"))
	withMemory, known := numbers(read("devices/system/node/has_memory"))
	left := slices.Clone(cpus)
	for _, id := range ids {
		list, _ := numbers(read(fmt.Sprintf("devices/system/node/node%d/cpulist", id)))
		own := slices.DeleteFunc(list, func(cpu int) bool { return !slices.Contains(left, cpu) })
		if len(own) == 0 {
			continue
		}
		left = slices.DeleteFunc(left, func(cpu int) bool { return slices.Contains(own, cpu) })
		nodes = append(nodes, &node{memory: !known || slices.Contains(withMemory, id), threads: byThread(own, read)})
	}
	if len(left) > 0 {
		nodes = append(nodes, &node{memory: true, threads: byThread(left, read)})
	}
	return nodes
}

// byThread divides CPUs into the first threads of their cores, the second ones, and
// so on: of those that may be used. If a core's first thread is not among them, the
// second has the core for itself.
func byThread(cpus []int, read func(string) string) (threads [][]int) {
	for _, cpu := range cpus {
		siblings, ok := numbers(read(fmt.Sprintf("devices/system/cpu/cpu%d/topology/core_cpus_list", cpu)))
		if !ok { // before Linux 5.3 it had only this name
			siblings, _ = numbers(read(fmt.Sprintf("devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)))
		}
		rank := 0
		for _, sibling := range siblings {
			if sibling < cpu && slices.Contains(cpus, sibling) {
				rank++
			}
		}
		for len(threads) <= rank {
			threads = append(threads, nil)
		}
		threads[rank] = append(threads[rank], cpu)
	}
	return threads
}

// numbers reads a list as the kernel writes it, "0-3,8" and the end of the line, in
// ascending order. A list of nothing is a line of nothing; a file that is not there,
// or has anything else, is none.
func numbers(text string) (list []int, ok bool) {
	if text == "" {
		return nil, false
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil, true
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			return nil, false
		}
		last, err := strconv.Atoi(to)
		if err != nil || first < 0 || last < first || last >= maxCPUs {
			return nil, false
		}
		for n := first; n <= last; n++ {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), true
}
