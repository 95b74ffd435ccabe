package netpoll

// Fault lets a test make system calls fail. It is nil in production and costs one comparison then. When set, each wrapper
// asks it before each system call, again before each retry; fd is the descriptor that the call is about, or -1 for
// calls that open one. Calls run on many threads: it must be safe for that. Set it before the first loop starts and clear it
// after the last has ended.
//
// If injected is false, the call is made as ever. If it is true,
//
//   - a non-nil err, which must be a [syscall.Errno], stands for the kernel's answer: the call is not made, and EINTR is
//     retried as if it were real. Only close(2) is made nevertheless, as the kernel frees the descriptor whatever it answers;
//   - otherwise, for recvfrom, sendto and sendmsg, n cuts the call: it is made with at most n bytes. 0 answers end of
//     input, or no byte sent;
//   - for epoll_pwait, the call is made with room for at most n events; 0 answers at once that there are none;
//   - for other calls n is the answer, and the call is not made.
var Fault func(call Call, fd int) (n int, err error, injected bool)

// Call names a system call that this package makes, for [Fault].
type Call uint8

const (
	CallRecvfrom Call = iota
	CallSendto
	CallSendmsg
	CallAccept4
	CallShutdown
	CallClose
	CallSocket
	CallSetsockopt
	CallGetsockopt
	CallIoctl
	CallBind
	CallListen
	CallGetsockname
	CallConnect
	CallEpollCreate1
	CallEpollCtl
	CallEpollPwait
	CallEventfd2
	CallWrite // to an eventfd
	CallTimerfdCreate
	CallTimerfdSettime
	CallSchedSetaffinity
	CallPrlimit64
	CallUnshare
	CallIoUringSetup
	CallIoUringEnter
	CallIoUringRegister
	callCount
)

var callNames = [callCount]string{
	"recvfrom", "sendto", "sendmsg", "accept4", "shutdown", "close",
	"socket", "setsockopt", "getsockopt", "ioctl", "bind", "listen", "getsockname", "connect",
	"epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "write",
	"timerfd_create", "timerfd_settime", "sched_setaffinity", "prlimit64", "unshare",
	"io_uring_setup", "io_uring_enter", "io_uring_register",
}

// String is the system call's name as strace shows it: "recvfrom", "epoll_pwait".
func (c Call) String() string {
	if c < callCount {
		return callNames[c]
	}
	return "unknown"
}
