package child

import (
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// spawner starts all children from one thread that never ends: the kernel sends
// a child its death signal when the thread that started it ends, and a child
// inherits the affinity of that thread. See prctl(2), PR_SET_PDEATHSIG, and
// sched_setaffinity(2).
var spawner = sync.OnceValue(func() chan<- func() {
	orders := make(chan func())
	go func() {
		runtime.LockOSThread()
		for order := range orders {
			order()
		}
	}()
	return orders
})

// startOn starts cmd with the given CPUs, or those of this process when there are none.
func startOn(cmd *exec.Cmd, cpus []int) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	spawner() <- func() { result <- withAffinity(cpus, cmd.Start) }
	return <-result
}

func withAffinity(cpus []int, do func() error) error {
	if len(cpus) == 0 {
		return do()
	}
	var before, wanted unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("cannot read the CPUs of this thread: %w", err)
	}
	for _, cpu := range cpus {
		wanted.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &wanted); err != nil {
		return fmt.Errorf("cannot use the CPUs %v: %w", cpus, err)
	}
	err := do()
	if back := unix.SchedSetaffinity(0, &before); err == nil && back != nil {
		return fmt.Errorf("cannot go back to all CPUs: %w", back)
	}
	return err
}

// Kill ends its whole process group.
func (p *Child) Kill() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
