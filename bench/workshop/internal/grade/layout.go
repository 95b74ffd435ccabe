package grade

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

func init() {
	special["shared cache lines"] = specialFigure{"pair of loops", sharedLines}
	behaviour("tallies", "each loop's tally is right, and stands where it is said to stand", rightTallies)
}

// cacheLine is that of the processors that Go runs on, or a part of it.
const cacheLine = 64

// probe is put beside the learner's code. It asks where each loop counts, counts, and looks where memory changes.
//
//go:embed probe.go.txt
var probe string

// tallies are what the probe has found.
type tallies struct {
	loops     []tally
	own, tied float64 // nanoseconds for a count, all CPUs counting: the learner's, and with all in one line
}

// tally is that of one loop: what it says, and all places where memory changes with it: a sum of all
// loops is a place of each.
type tally struct {
	requests, errors int64
	places           []uint64
}

// probeTallies makes tallies for a few loops and for more, as many as are drawn.
func (s *Subject) probeTallies() (all []tallies, err error) {
	binary, err := s.BuildWith("zz_probe.go", probe)
	if err != nil {
		return nil, fmt.Errorf("newTallies, count and slot have to stay: %w", errors.New(strings.Join(strings.Fields(err.Error()), " ")))
	}
	random := s.random("tallies")
	for _, loops := range []int{2 + random.IntN(7), 9 + random.IntN(7)} {
		t, err := s.probeOf(binary, loops)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// probeOf has the probe make tallies for so many loops.
func (s *Subject) probeOf(binary string, loops int) (t tallies, err error) {
	ctx, cancel := context.WithTimeout(s.Context, time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, binary)
	command.Env = append(command.Environ(), fmt.Sprintf("QPS_LADDER_PROBE=%d", loops))
	output, err := command.Output()
	if err != nil {
		return t, fmt.Errorf("counting on its own does not end well: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(lines) != loops+1 {
		return t, errors.New("the probe was answered in another way than expected")
	}
	for _, line := range lines[:loops] {
		var numbers []uint64
		for _, field := range strings.Fields(line) {
			n, err := strconv.ParseUint(field, 10, 64)
			if err != nil {
				return t, err
			}
			numbers = append(numbers, n)
		}
		if len(numbers) < 4 {
			return t, errors.New("the probe was answered in another way than expected")
		}
		t.loops = append(t.loops, tally{int64(numbers[0]), int64(numbers[1]), numbers[2:]})
	}
	_, err = fmt.Sscan(lines[loops], &t.own, &t.tied)
	return t, err
}

// sharedLines is how many pairs of loops have counters in the same cache line, or what leads to them beside another's.
func sharedLines(s *Subject) (float64, error) {
	all, err := s.probeTallies()
	if err != nil {
		return 0, err
	}
	most := 0.0
	for _, t := range all {
		pairs, shared := 0, 0
		for i := range t.loops {
			for j := range i {
				pairs++
				if meet(t.loops[i].places, t.loops[j].places) {
					shared++
				}
			}
		}
		most = max(most, float64(shared)/float64(pairs))
	}
	last := all[len(all)-1]
	s.note(fmt.Sprintf("for information: a count takes %.1f ns with all CPUs counting; with all tallies in one cache line, %.1f ns", last.own, last.tied))
	return most, nil
}

func meet(a, b []uint64) bool {
	for _, x := range a {
		for _, y := range b {
			if x/cacheLine == y/cacheLine {
				return true
			}
		}
	}
	return false
}

// probedErrors is how many errors the probe counts for a loop; beside them come as many requests as the loop's number, and one.
func probedErrors(loop int) int64 { return int64(13 * 17 * 19 * (23 + loop)) }

func rightTallies(s *Subject) error {
	all, err := s.probeTallies()
	if err != nil {
		return err
	}
	for _, t := range all {
		for i, got := range t.loops {
			if want := (tally{requests: probedErrors(i) + int64(i) + 1, errors: probedErrors(i)}); got.requests != want.requests || got.errors != want.errors {
				return fmt.Errorf("loop %d answered %d requests and %d of them 404; where its tally stands are %d and %d", i, want.requests, want.errors, got.requests, got.errors)
			}
		}
	}
	return nil
}
