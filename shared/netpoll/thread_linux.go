package netpoll

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// PinThread binds the calling thread to one CPU, one of [CPUs], see sched_setaffinity(2). The goroutine must hold the thread
// with runtime.LockOSThread, and end without unlocking it, so that the Go runtime puts no other goroutine on it.
func PinThread(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	_, errno, injected := consult(CallSchedSetaffinity, -1)
	err := failure(errno)
	if !injected {
		err = unix.SchedSetaffinity(0, &set)
	}
	if err != nil {
		return fmt.Errorf("cannot pin a thread to CPU %d: %w", cpu, err)
	}
	return nil
}

// startMask is read before anything can be pinned: threads that are ended while pinned may live on, the main one for instance.
var startMask, startMaskError = affinity()

func affinity() (set unix.CPUSet, err error) {
	err = unix.SchedGetaffinity(0, &set)
	return set, err
}

// CPUs lists the CPUs that the process may use, in ascending order, by their numbers in the system: its affinity mask when it
// started, see sched_getaffinity(2), which is also what runtime.NumCPU counts. PinThread does not change it.
func CPUs() ([]int, error) {
	if startMaskError != nil {
		return nil, fmt.Errorf("cannot read the CPUs of this process: %w", startMaskError)
	}
	cpus := make([]int, 0, startMask.Count())
	for cpu := 0; cpu < int(unsafe.Sizeof(startMask))*8; cpu++ {
		if startMask.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// ThreadCPUNanoseconds is the CPU time that the calling thread has used, user and system, in nanoseconds; see
// clock_gettime(2), CLOCK_THREAD_CPUTIME_ID. It means something only on a goroutine that holds its thread.
func ThreadCPUNanoseconds() int64 { return cpuClock(unix.CLOCK_THREAD_CPUTIME_ID) }

// ProcessCPUNanoseconds is the CPU time that all threads of this process have used, user and system, in nanoseconds; see
// clock_gettime(2), CLOCK_PROCESS_CPUTIME_ID.
func ProcessCPUNanoseconds() int64 { return cpuClock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// cpuClock cannot fail: both clocks exist since Linux 2.6.12.
func cpuClock(clock uintptr) int64 {
	var now unix.Timespec
	unix.RawSyscall(unix.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}
