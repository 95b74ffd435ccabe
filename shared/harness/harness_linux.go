package harness

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// starter starts all processes from one thread that never ends: the kernel sends a child its death
// signal when the thread that started it ends, and a child inherits that thread's CPUs. See prctl(2),
// PR_SET_PDEATHSIG, and sched_setaffinity(2).
var starter = sync.OnceValue(func() chan<- func() {
	orders := make(chan func())
	go startAll(orders)
	return orders
})

func startAll(orders <-chan func()) {
	runtime.LockOSThread()
	for order := range orders {
		order()
	}
}

// startOn starts cmd with the given CPUs, or those of this process when there are none.
func startOn(cmd *exec.Cmd, cpus []int) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	starter() <- func() { started <- withAffinity(cpus, cmd.Start) }
	return <-started
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

func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

// DieWithParent lets the kernel kill this process when the thread that started it ends, whoever that
// is: strace, say.
func DieWithParent() {
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// Pause stops all threads of the server and returns when they stand still, see proc_pid_stat(5).
func (s *Server) Pause() error {
	if err := s.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(s.patience); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Ready.PID))
		if err != nil {
			return err
		}
		// The name, which may have anything in it, is in parentheses; the state is behind it.
		state := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
		if strings.HasPrefix(state, " T") || strings.HasPrefix(state, " t") {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s does not stand still: %s", s.Name, stat)
		}
	}
}

// Resume lets them go on.
func (s *Server) Resume() error { return s.Signal(syscall.SIGCONT) }

func setReceiveBuffer(fd uintptr, size int) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, size)
}

// SendUrgent sends one byte as urgent data, see tcp(7) and MSG_OOB in send(2).
func (c *Conn) SendUrgent(b byte) error {
	raw, err := c.TCP.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	err = raw.Write(func(fd uintptr) bool {
		sendErr = unix.Sendto(int(fd), []byte{b}, unix.MSG_OOB|unix.MSG_NOSIGNAL, nil)
		return sendErr != unix.EAGAIN
	})
	if err == nil {
		err = sendErr
	}
	return c.failed("cannot send an urgent byte", err)
}
