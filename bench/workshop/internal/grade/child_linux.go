package grade

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// spawner starts all children from one thread that never ends: the kernel kills a child when the thread
// that started it ends, see prctl(2), PR_SET_PDEATHSIG.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// child is a process in a group of its own, which ends with this process.
type child struct {
	command *exec.Cmd
	ended   chan struct{}
}

func startChild(command *exec.Cmd) (*child, error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.WaitDelay = time.Second // if something else holds its pipes
	started := make(chan error)
	spawner() <- func() { started <- command.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	c := &child{command: command, ended: make(chan struct{})}
	go func() {
		command.Wait()
		syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // what it left of its group
		close(c.ended)
	}()
	return c, nil
}

func (c *child) Signal(signal syscall.Signal) error {
	select {
	case <-c.ended:
		return os.ErrProcessDone
	default:
		return c.command.Process.Signal(signal)
	}
}

func (c *child) Ended() <-chan struct{} { return c.ended }

func (c *child) Wait(within time.Duration) int {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		syscall.Kill(-c.command.Process.Pid, syscall.SIGKILL)
		<-c.ended
	}
	return c.command.ProcessState.ExitCode()
}

// pause stops all threads of a server, resume lets them go on.
func (s *Server) pause() error  { return s.process.Signal(syscall.SIGSTOP) }
func (s *Server) resume() error { return s.process.Signal(syscall.SIGCONT) }
