package netpoll

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// DescriptorLimit reads how many descriptors this process may have open, and up to where it may raise that itself, the
// hard limit; see getrlimit(2), RLIMIT_NOFILE. On an error both are 0.
func DescriptorLimit() (soft, hard int, err error) {
	var limit unix.Rlimit
	if err := prlimit(unix.Getrlimit, &limit); err != nil {
		return 0, 0, fmt.Errorf("cannot read the limit of open files: %w", err)
	}
	return descriptors(limit.Cur), descriptors(limit.Max), nil
}

// RaiseDescriptorLimit raises the soft limit of [DescriptorLimit] to the hard one, and answers both as they are then. On an
// error they are as they were, or 0 if unknown. The Go runtime does the same by itself at the start, unless the limit is
// set later.
func RaiseDescriptorLimit() (soft, hard int, err error) {
	soft, hard, err = DescriptorLimit()
	if err != nil || soft == hard {
		return soft, hard, err
	}
	limit := unix.Rlimit{Cur: uint64(hard), Max: uint64(hard)}
	if hard == math.MaxInt {
		limit = unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	}
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
