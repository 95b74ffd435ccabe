package netpoll

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// RaiseDescriptorLimit raises the number of descriptors that this process may have open as far as it may go, the hard
// limit, and answers both limits as they are then; see getrlimit(2), RLIMIT_NOFILE. On an error they are as they were, or
// 0 if unknown. The Go runtime does the same by itself at the start, unless the limit is set later.
func RaiseDescriptorLimit() (soft, hard int, err error) {
	var limit unix.Rlimit
	if err := prlimit(unix.Getrlimit, &limit); err != nil {
		return 0, 0, fmt.Errorf("cannot read the limit of open files: %w", err)
	}
	soft, hard = descriptors(limit.Cur), descriptors(limit.Max)
	if soft == hard {
		return soft, hard, nil
	}
	limit.Cur = limit.Max
	if err := prlimit(unix.Setrlimit, &limit); err != nil {
		return soft, hard, fmt.Errorf("cannot raise the limit of open files from %d to %d: %w", soft, hard, err)
	}
	return hard, hard, nil
}

func prlimit(call func(int, *unix.Rlimit) error, limit *unix.Rlimit) error {
	if _, errno, injected := consult(CallPrlimit64, -1); injected {
		return failure(errno)
	}
	return call(unix.RLIMIT_NOFILE, limit)
}

func descriptors(limit uint64) int { return int(min(limit, math.MaxInt)) }
