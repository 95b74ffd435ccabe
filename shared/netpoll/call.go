package netpoll

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
	callCount
)

var callNames = [callCount]string{
	"recvfrom", "sendto", "sendmsg", "accept4", "shutdown", "close",
	"socket", "setsockopt", "getsockopt", "ioctl", "bind", "listen", "getsockname", "connect",
	"epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "write",
	"timerfd_create", "timerfd_settime", "sched_setaffinity", "prlimit64",
}

// String is the system call's name as strace shows it: "recvfrom", "epoll_pwait".
func (c Call) String() string {
	if c < callCount {
		return callNames[c]
	}
	return "unknown"
}
