package witness

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Process is a program under watch.
type Process struct {
	pid int

	observe func(*Call)
	pending map[int]*Call // by thread: the call that it is in
	known   map[int]bool  // threads that have made their first stop
	waiting []stop        // threads that have stopped

	mutex   sync.Mutex
	strange []string // what it did that a server does not do
	held    bool     // threads that stop are not let go on

	state syscall.WaitStatus
}

// stop is a thread that has stopped, and the signal that it is to get when it goes on.
type stop struct{ thread, signal int }

// syscallInfo is struct ptrace_syscall_info, see ptrace(2), PTRACE_GET_SYSCALL_INFO.
type syscallInfo struct {
	op      uint8
	_       [3]uint8
	_       uint32 // arch
	_       uint64 // instruction pointer
	_       uint64 // stack pointer
	payload [8]uint64
}

const (
	getSyscallInfo = 0x420e
	infoEntry      = 1
	infoExit       = 2

	options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK |
		unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL
)

// New is a process that is not started yet: that is done with its Launch. observe is called after each of
// its system calls, from one goroutine. All that it starts in its turn is watched too, and none of it outlives
// this process.
func New(observe func(*Call)) *Process {
	return &Process{observe: observe, pending: map[int]*Call{}, known: map[int]bool{}}
}

// Launch is for [harness.Command].
func (p *Process) Launch(command *exec.Cmd) (wait func() harness.Exit, err error) {
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// Only the thread that started a program may trace it; it ends with this goroutine.
		runtime.LockOSThread()
		err := p.start(command)
		started <- err
		if err == nil {
			p.loop()
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return func() harness.Exit {
		<-ended
		return exit(p.state)
	}, nil
}

// exit is how it ended.
type exit syscall.WaitStatus

// ExitCode implements [harness.Exit].
func (e exit) ExitCode() int { return syscall.WaitStatus(e).ExitStatus() }

func (e exit) String() string {
	if status := syscall.WaitStatus(e); status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", e.ExitCode())
}

func (p *Process) start(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("cannot watch the server from outside: %w", err)
	}
	p.pid = command.Process.Pid
	var status unix.WaitStatus
	if _, err := unix.Wait4(p.pid, &status, unix.WALL, nil); err != nil || !status.Stopped() {
		unix.Kill(p.pid, unix.SIGKILL)
		return fmt.Errorf("cannot watch the server from outside: it did not stop at its start (%v)", err)
	}
	p.known[p.pid] = true
	if err := unix.PtraceSetOptions(p.pid, options); err != nil {
		unix.Kill(p.pid, unix.SIGKILL)
		return fmt.Errorf("cannot watch the server from outside: %w", err)
	}
	return unix.PtraceSyscall(p.pid, 0)
}

// loop handles the stops of all threads until none is left.
func (p *Process) loop() {
	for {
		// Its process group, and not all children: this thread may have started others before it was ours
		// alone. Nor are the children of other threads ours to reap: __WNOTHREAD.
		how := unix.WALL | unix.WNOTHREAD
		if p.letGo() {
			how |= unix.WNOHANG // or nobody would hear of Release
		}
		var status unix.WaitStatus
		thread, err := unix.Wait4(-p.pid, &status, how, nil)
		if err == unix.EINTR {
			continue
		}
		if err == nil && thread == 0 {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			return // ECHILD: all have ended
		}
		if !status.Stopped() {
			delete(p.pending, thread)
			if thread == p.pid {
				p.state = syscall.WaitStatus(status)
			}
			continue
		}
		p.waiting = append(p.waiting, stop{thread, p.stopped(thread, status)})
	}
}

// letGo lets the threads that have stopped go on, unless they are held, and says whether they are.
func (p *Process) letGo() (held bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.held {
		for _, s := range p.waiting {
			unix.PtraceSyscall(s.thread, s.signal) // fails if it has been killed meanwhile
		}
		p.waiting = p.waiting[:0]
	}
	return p.held
}

// Hold keeps each thread at its next system call, or in the one that it waits in, until Release: what
// happens to its sockets meanwhile it will find all at once.
func (p *Process) Hold() { p.hold(true) }

// Release ends Hold.
func (p *Process) Release() { p.hold(false) }

func (p *Process) hold(on bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.held = on
}

// stopped handles one stop and returns the signal that the thread is to get.
func (p *Process) stopped(thread int, status unix.WaitStatus) int {
	signal := status.StopSignal()
	switch {
	case signal == unix.SIGTRAP|0x80:
		p.call(thread)
		return 0
	case signal == unix.SIGTRAP && status.TrapCause() > 0:
		p.event(thread, status.TrapCause())
		return 0
	case signal == unix.SIGSTOP && !p.known[thread]:
		// How a new thread begins under watch.
		p.known[thread] = true
		return 0
	case signal == unix.SIGTRAP:
		return 0
	}
	return int(signal)
}

func (p *Process) call(thread int) {
	var info syscallInfo
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(thread),
		unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return
	}
	switch info.op {
	case infoEntry:
		call := &Call{Number: uintptr(info.payload[0]), Thread: thread, process: p}
		for i := range call.Args {
			call.Args[i] = uintptr(info.payload[1+i])
		}
		p.pending[thread] = call
	case infoExit:
		if call := p.pending[thread]; call != nil {
			call.Result = int64(info.payload[0])
			delete(p.pending, thread)
			p.observe(call)
		}
	}
}

// event notes what makes a server more than one program.
func (p *Process) event(thread, cause int) {
	switch cause {
	case unix.PTRACE_EVENT_EXEC:
		p.note("it started another program in its place (execve)")
	case unix.PTRACE_EVENT_CLONE, unix.PTRACE_EVENT_FORK, unix.PTRACE_EVENT_VFORK:
		child, err := unix.PtraceGetEventMsg(thread)
		if err != nil {
			return
		}
		if _, err := os.Stat("/proc/" + strconv.Itoa(p.pid) + "/task/" + strconv.Itoa(int(child))); err != nil {
			p.note("it started another process (fork)")
			unix.Kill(int(child), unix.SIGKILL)
		}
	}
}

func (p *Process) note(what string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.strange = append(p.strange, what)
}

// Strange is what the program has done so far that a server here does not do: start other processes.
func (p *Process) Strange() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return append([]string(nil), p.strange...)
}

func (p *Process) read(b []byte, address uintptr) bool {
	local := []unix.Iovec{{Base: unsafe.SliceData(b)}}
	local[0].SetLen(len(b))
	n, err := unix.ProcessVMReadv(p.pid, local, []unix.RemoteIovec{{Base: address, Len: len(b)}}, 0)
	return err == nil && n == len(b)
}
