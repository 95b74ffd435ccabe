package workshop

import (
	"os/exec"
	"syscall"
	"time"
)

// ownGroup makes a command the first of a process group, which ends with it or with its context.
func ownGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second
}
