package netpoll

import (
	"fmt"
	"math"
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

// UnshareDescriptors gives the calling thread a table of descriptors of its own, a copy of the one that it has shared with the
// other threads: unshare(2) with CLONE_FILES. From now on a descriptor that either side opens or closes is so on that side
// alone, and a socket lives as long as it is open in any of the tables. No right is needed; it fails with ENOMEM, with EMFILE
// where more are open than may be, and with EPERM in a container that forbids the call.
//
// The goroutine must hold the thread with runtime.LockOSThread, and end without unlocking it: the table goes with the thread.
// The runtime starts no thread from one that is locked, so that none inherits it. What the runtime has opened itself (its own
// epoll instance) must stay open in the copy: it may be asked by any thread.
func UnshareDescriptors() error {
	_, errno, injected := consult(CallUnshare, -1)
	err := failure(errno)
	if !injected {
		err = unix.Unshare(unix.CLONE_FILES)
	}
	if err != nil {
		return fmt.Errorf("cannot give a thread descriptors of its own: %w", err)
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

// ProcessCPUNanoseconds is the CPU time that all threads of this process have used, user and system, in nanoseconds; see
// clock_gettime(2), CLOCK_PROCESS_CPUTIME_ID.
func ProcessCPUNanoseconds() int64 { return cpuClock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// cpuClock cannot fail: the clock exists since Linux 2.6.12.
func cpuClock(clock uintptr) int64 {
	var now unix.Timespec
	unix.RawSyscall(unix.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

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
