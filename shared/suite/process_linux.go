package suite

import (
	"context"
	"net"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	signalPause  = syscall.SIGSTOP
	signalResume = syscall.SIGCONT
	signalDump   = syscall.SIGQUIT
)

// starter is the goroutine that starts every server. The kernel ends a server with its parent
// thread (prctl(2), PR_SET_PDEATHSIG), so that thread has to live as long as this process.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// startProcess starts a command that does not outlive this process.
func startProcess(c *exec.Cmd) error {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	starter() <- func() { started <- c.Start() }
	return <-started
}

// dieWithParent does the same for this process, whoever started it: strace, say.
func dieWithParent() {
	unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// listenShared listens as another program with SO_REUSEPORT would.
func listenShared(address string) (net.Listener, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		if controlErr := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}); controlErr != nil {
			return controlErr
		}
		return err
	}}
	return c.Listen(context.Background(), "tcp", address)
}

// fileLimit is how many descriptors a process may open at most.
func fileLimit() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Max
}
