package load

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// CPUOf is the CPU time that all threads of a process have used so far, those
// that have ended included, in nanoseconds: the kernel's run time, not a count
// of ticks. See clock_getcpuclockid(3); the clock's number is made as the
// kernel makes it (CPUCLOCK_SCHED, posix-timers.h).
func CPUOf(pid int) (int64, error) {
	const pidMax = 1 << 22 // see proc(5), pid_max
	if pid <= 0 || pid > pidMax {
		return 0, fmt.Errorf("cannot read the CPU time of process %d: no such process", pid)
	}
	var now unix.Timespec
	if err := unix.ClockGettime(^int32(pid)<<3|2, &now); err != nil {
		return 0, fmt.Errorf("cannot read the CPU time of process %d: %w", pid, err)
	}
	return now.Nano(), nil
}
