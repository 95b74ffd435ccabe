package serve

import (
	"fmt"
	"syscall"
)

// limitFiles sets how many descriptors this process may have, at most as many as its hard limit
// allows. Left alone, a Go program has the hard limit: the runtime raises the soft one when it starts, so
// that `ulimit -Sn` in a shell has no effect on it (`ulimit -Hn` has).
func limitFiles(most uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("cannot read the limit of open files: %w", err)
	}
	if most > limit.Max {
		return fmt.Errorf("-max-files %d is above the hard limit, %d (ulimit -Hn)", most, limit.Max)
	}
	limit.Cur = most
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("cannot set the limit of open files to %d: %w", most, err)
	}
	return nil
}
