package grade

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

func init() {
	special["shared cache lines"] = specialFigure{"pair of loops", sharedLines}
	behaviour("tallies", "each loop's tally is right, and stands where it is said to stand", rightTallies)
}

// cacheLine is that of the processors that Go runs on, or a part of it.
const cacheLine = 64

// tallyLoops is for how many loops the probe makes tallies.
const tallyLoops = 8

// probe is put beside the learner's code. It asks where each loop counts, and counts.
//
//go:embed probe.go.txt
var probe string

// tallies are what the probe has found.
type tallies struct {
	addresses [tallyLoops][2]uint64 // of requests and errors
	counts    [tallyLoops][2]int64
	own, tied float64 // nanoseconds for a count, all CPUs counting: the learner's, and with all in one line
}

func (s *Subject) probeTallies() (t tallies, err error) {
	binary, err := s.BuildWith("zz_probe.go", probe)
	if err != nil {
		return t, fmt.Errorf("newTallies, count and slot have to stay: %w", errors.New(strings.Join(strings.Fields(err.Error()), " ")))
	}
	ctx, cancel := context.WithTimeout(s.Context, 20*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, binary)
	command.Env = append(command.Environ(), "QPS_LADDER_PROBE=1")
	output, err := command.Output()
	if err != nil {
		return t, fmt.Errorf("counting on its own does not end well: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(lines) != tallyLoops+1 {
		return t, errors.New("the probe was answered in another way than expected")
	}
	for i := range tallyLoops {
		if _, err := fmt.Sscan(lines[i], &t.addresses[i][0], &t.addresses[i][1], &t.counts[i][0], &t.counts[i][1]); err != nil {
			return t, err
		}
	}
	_, err = fmt.Sscan(lines[tallyLoops], &t.own, &t.tied)
	return t, err
}

// sharedLines is how many pairs of loops have counters in the same cache line.
func sharedLines(s *Subject) (float64, error) {
	t, err := s.probeTallies()
	if err != nil {
		return 0, err
	}
	pairs, shared := 0, 0
	for i := range tallyLoops {
		for j := range i {
			pairs++
			if meet(t.addresses[i], t.addresses[j]) {
				shared++
			}
		}
	}
	s.note(fmt.Sprintf("for information: a count takes %.1f ns with all CPUs counting; with all tallies in one cache line, %.1f ns", t.own, t.tied))
	return float64(shared) / float64(pairs), nil
}

func meet(a, b [2]uint64) bool {
	for _, x := range a {
		for _, y := range b {
			if x/cacheLine == y/cacheLine {
				return true
			}
		}
	}
	return false
}

func rightTallies(s *Subject) error {
	t, err := s.probeTallies()
	if err != nil {
		return err
	}
	for i, got := range t.counts {
		if want := [2]int64{int64(i + 2), 1}; got != want {
			return fmt.Errorf("loop %d answered %d requests and one of them 404; where its tally stands are %d and %d", i, want[0], got[0], got[1])
		}
	}
	return nil
}
