package profile

import "strings"

// category is what time is spent on. Every stack belongs to exactly one.
type category uint8

const (
	kernelSend category = iota
	kernelSoftirq
	kernelReceive
	kernelWake
	kernelEpollWait
	kernelEpollControl
	kernelTimer
	kernelConnection
	kernelOther
	goScheduler
	goCollector
	goMemory
	judging
	parsing
	headMaking
	handling
	bodyCopying
	looping
	rest
	categories int = iota
)

var categoryNames = [categories]string{
	kernelSend:         "kernel: TCP send",
	kernelSoftirq:      "kernel: softirq",
	kernelReceive:      "kernel: TCP receive",
	kernelWake:         "kernel: wake, schedule",
	kernelEpollWait:    "kernel: epoll_wait",
	kernelEpollControl: "kernel: epoll_ctl",
	kernelTimer:        "kernel: timers",
	kernelConnection:   "kernel: accept, close",
	kernelOther:        "kernel: other",
	goScheduler:        "Go: scheduler",
	goCollector:        "Go: garbage collector",
	goMemory:           "Go: allocating memory",
	judging:            "judge",
	parsing:            "parsing",
	headMaking:         "head making",
	handling:           "handler",
	bodyCopying:        "copying bodies",
	looping:            "loop and connection",
	rest:               "rest",
}

// categoryNotes say what a name cannot.
var categoryNotes = [categories]string{
	kernelSend:         "sendto and sendmsg, down to the network device",
	kernelSoftirq:      "the receiving side of what is sent: over loopback it runs within the send",
	kernelReceive:      "recvfrom",
	kernelWake:         "waking the thread that waits, eventfd, futex, switching threads",
	kernelEpollWait:    "looking for events; not the waiting, which costs nothing",
	kernelEpollControl: "changing what is waited for",
	kernelTimer:        "timerfd_settime, and timers that fire",
	kernelConnection:   "accept4, close, shutdown, timerfd_create",
	kernelOther:        "page faults, interrupts, other system calls",
	goScheduler:        "goroutines, threads and locks of the Go runtime",
	goCollector:        "marking and sweeping, helpers of the allocator included",
	goMemory:           "handing out heap memory, growing stacks",
	judging:            "shared/http1: is the request whole and valid; bodies",
	parsing:            "request.go: from a judged head to a Request",
	headMaking:         "head.go: status and fields to bytes",
	handling:           "shared/app: routes and handlers",
	bodyCopying:        "copies of bodies in the server itself",
	looping:            "the stage's own code beside these, and the wrappers of system calls",
	rest:               "the admin listener, and what fits nowhere else",
}

func (c category) String() string { return categoryNames[c] }

// isKernel tells whether it is time in the kernel.
func (c category) isKernel() bool { return c <= kernelOther }

// isRuntime tells whether it is time that Go's runtime takes for itself.
func (c category) isRuntime() bool { return c == goScheduler || c == goCollector || c == goMemory }

func (c category) kind() kind {
	switch {
	case c.isKernel():
		return kernelCode
	case c.isRuntime():
		return runtimeCode
	}
	return projectCode
}

// categorise finds a stack's category: going from the leaf outwards, the first
// function that says what it is for decides. So what a library function costs
// counts for whoever called it, and a wake-up inside the receiving side of a
// send is a wake-up.
func categorise(frames []frame) category {
	c, _ := decide(frames)
	return c
}

// decide is categorise, and says how many frames from the leaf on belong to it:
// to the outermost function that says the same.
func decide(frames []frame) (found category, inside int) {
	if isAdmin(frames) {
		return rest, len(frames)
	}
	if len(frames) > 1 && frames[0].name == "runtime.memmove" && frames[1].name == "main.(*conn).respond" {
		// CopyBody is inlined there; perf cannot tell where in a function the caller of memmove is.
		return bodyCopying, 2
	}
	inKernel := frames[0].kind == kernelCode
	for i, f := range frames {
		if inside > 0 && inKernel && f.kind != kernelCode {
			break // who made the call is not part of it
		}
		c, ok := says(f, inKernel)
		switch {
		case !ok:
		case inside == 0:
			found, inside = c, i+1
		case c == found && c != looping:
			inside = i + 1
		default:
			return found, inside
		}
	}
	switch {
	case inside > 0:
		return found, inside
	case inKernel:
		return kernelOther, len(frames)
	}
	return rest, len(frames)
}

// says is what one frame of a stack says about what is being done.
func says(f frame, inKernel bool) (category, bool) {
	switch {
	case f.kind == kernelCode:
		if call, ok := strings.CutPrefix(f.name, kernelPrefix); ok {
			return categoryOfCall(call), true
		}
		return kernelFunction(f.name)
	case inKernel:
		// The kernel's frames did not tell: they stand for entering and leaving it.
		call, ok := wrapperCalls[f.name]
		if !ok {
			call, ok = runtimeCalls[f.name]
		}
		return categoryOfCall(call), ok
	}
	return programFunction(f)
}

// isAdmin tells whether a stack is that of the admin listener, or of a profiler:
// there only because somebody looks.
func isAdmin(frames []frame) bool {
	for _, f := range frames {
		for _, prefix := range []string{"net/http.(*conn)", "net/http.(*Server)", "net/http.(*connReader)", "net/http/pprof.", "runtime/pprof.", "runtime.sigprof"} {
			if strings.HasPrefix(f.name, prefix) {
				return true
			}
		}
	}
	return false
}

func categoryOfCall(call string) category {
	switch call {
	case "sendto", "sendmsg":
		return kernelSend
	case "recvfrom":
		return kernelReceive
	case "epoll_pwait", "io_uring_enter": // what an enter sends and receives is told by the kernel's functions below it
		return kernelEpollWait
	case "epoll_ctl":
		return kernelEpollControl
	case "timerfd_settime":
		return kernelTimer
	case "write", "futex", "nanosleep", "sched_yield", "tgkill":
		return kernelWake
	case "accept4", "close", "shutdown", "timerfd_create", "ioctl":
		return kernelConnection
	}
	return kernelOther
}

// kernelFunctions are those that tell what the kernel is at. Names are of Linux
// 5 and 6; the ends that a compiler adds, such as .isra.0, are cut off.
var kernelFunctions = map[string]category{
	"__sys_sendto": kernelSend, "__sys_sendmsg": kernelSend, "___sys_sendmsg": kernelSend, "tcp_sendmsg": kernelSend,

	"do_softirq": kernelSoftirq, "__do_softirq": kernelSoftirq, "handle_softirqs": kernelSoftirq, "net_rx_action": kernelSoftirq,
	"run_ksoftirqd": kernelSoftirq,

	"__sys_recvfrom": kernelReceive, "tcp_recvmsg": kernelReceive,

	"schedule": kernelWake, "__schedule": kernelWake, "finish_task_switch": kernelWake, "schedule_hrtimeout_range": kernelWake,
	"schedule_hrtimeout_range_clock": kernelWake, "try_to_wake_up": kernelWake, "sock_def_readable": kernelWake,
	"sock_def_write_space": kernelWake, "ep_poll_callback": kernelWake, "do_futex": kernelWake, "eventfd_write": kernelWake,
	"eventfd_signal_mask": kernelWake, "do_nanosleep": kernelWake, "hrtimer_nanosleep": kernelWake, "do_sched_yield": kernelWake,
	"__do_sys_sched_yield": kernelWake, "do_tkill": kernelWake, "do_send_specific": kernelWake, "sched_ttwu_pending": kernelWake,
	"__sysvec_call_function_single": kernelWake, "hrtimer_wakeup": kernelWake, "scheduler_ipi": kernelWake, "arch_do_signal_or_restart": kernelWake,

	"do_epoll_wait": kernelEpollWait, "do_epoll_pwait": kernelEpollWait, "ep_poll": kernelEpollWait, "ep_send_events": kernelEpollWait,
	"do_epoll_ctl": kernelEpollControl,

	"do_timerfd_settime": kernelTimer, "timerfd_tmrproc": kernelTimer, "timerfd_read": kernelTimer, "timerfd_poll": kernelTimer,

	"__sys_accept4": kernelConnection, "do_accept": kernelConnection, "__fput": kernelConnection, "task_work_run": kernelConnection,
	"__sys_shutdown": kernelConnection, "filp_close": kernelConnection, "close_fd": kernelConnection,
	"__do_sys_timerfd_create": kernelConnection,

	"exc_page_fault": kernelOther, "asm_exc_page_fault": kernelOther, "do_mem_abort": kernelOther, "hrtimer_interrupt": kernelOther,
	"__sysvec_apic_timer_interrupt": kernelOther, "tick_nohz_handler": kernelOther, "do_madvise": kernelOther, "ksys_mmap_pgoff": kernelOther,
}

// kernelPrefixes are families of such functions.
var kernelPrefixes = []struct {
	prefix string
	of     category
}{
	{"__wake_up", kernelWake}, {"wake_up_", kernelWake}, {"ttwu_", kernelWake}, {"futex_", kernelWake}, {"pick_next_task", kernelWake},
	{"__x64_sys_epoll_ctl", kernelEpollControl}, {"__arm64_sys_epoll_ctl", kernelEpollControl},
	{"__x64_sys_epoll_", kernelEpollWait}, {"__arm64_sys_epoll_", kernelEpollWait},
	{"__x64_sys_sendto", kernelSend}, {"__arm64_sys_sendto", kernelSend}, {"__x64_sys_sendmsg", kernelSend}, {"__arm64_sys_sendmsg", kernelSend},
	{"__x64_sys_recvfrom", kernelReceive}, {"__arm64_sys_recvfrom", kernelReceive},
	{"__x64_sys_timerfd_create", kernelConnection}, {"__arm64_sys_timerfd_create", kernelConnection},
	{"__x64_sys_timerfd_", kernelTimer}, {"__arm64_sys_timerfd_", kernelTimer}, {"__se_sys_timerfd_", kernelTimer},
	{"__x64_sys_close", kernelConnection}, {"__arm64_sys_close", kernelConnection}, {"__x64_sys_accept4", kernelConnection},
	{"__x64_sys_futex", kernelWake}, {"__arm64_sys_futex", kernelWake},
}

func kernelFunction(name string) (category, bool) {
	name, _, _ = strings.Cut(name, ".")
	if c, ok := kernelFunctions[name]; ok {
		return c, true
	}
	for _, p := range kernelPrefixes {
		if strings.HasPrefix(name, p.prefix) {
			return p.of, true
		}
	}
	return 0, false
}

// programFunctions are those of the stages and of Go that tell what is being
// done. The rows of a package end in a dot.
var programFunctions = map[string]category{
	"main.(*conn).parse": parsing, "main.(*headerViews).Get": parsing, "main.(*headReader).Read": parsing,
	"main.(*conn).appendHead": headMaking, "main.(*headWriter).renewDate": headMaking,
	"netpoll.(*Counters).CopyBody": bodyCopying,

	"runtime.newobject": goMemory, "runtime.makeslice": goMemory, "runtime.newarray": goMemory, "runtime.growslice": goMemory,
	"runtime.newstack": goMemory, "runtime.copystack": goMemory, "runtime.persistentalloc": goMemory, "runtime.stackalloc": goMemory,
	"runtime.heapSetTypeNoHeader": goMemory, "runtime.deductAssistCredit": goMemory,

	"runtime.bgsweep": goCollector, "runtime.bgscavenge": goCollector, "runtime.sweepone": goCollector, "runtime.wbBufFlush": goCollector,
	"runtime.scanobject": goCollector, "runtime.scanblock": goCollector, "runtime.greyobject": goCollector, "runtime.markroot": goCollector,
	"runtime.bulkBarrierPreWrite": goCollector, "runtime.forEachPInternal": goCollector, "gcWriteBarrier": goCollector,

	"runtime.schedule": goScheduler, "runtime.findRunnable": goScheduler, "runtime.park_m": goScheduler, "runtime.mstart1": goScheduler,
	"runtime.sysmon": goScheduler, "runtime.startm": goScheduler, "runtime.wakep": goScheduler, "runtime.ready": goScheduler,
	"runtime.gopark": goScheduler, "runtime.goschedImpl": goScheduler, "runtime.entersyscall": goScheduler, "runtime.reentersyscall": goScheduler,
	"runtime.exitsyscall": goScheduler, "runtime.lock2": goScheduler, "runtime.unlock2": goScheduler, "runtime.retake": goScheduler,
	"runtime.handoffp": goScheduler, "runtime.notesleep": goScheduler, "runtime.notewakeup": goScheduler, "runtime.futexsleep": goScheduler,
	"runtime.futexwakeup": goScheduler, "runtime.netpoll": goScheduler, "runtime.asyncPreempt": goScheduler, "runtime.asyncPreempt2": goScheduler,
	"runtime.sighandler": goScheduler, "runtime.sigtramp": goScheduler, "runtime.sigtrampgo": goScheduler, "runtime.semacquire1": goScheduler,
	"runtime.semrelease1": goScheduler, "runtime.casgstatus": goScheduler, "runtime.mcall": goScheduler, "runtime.goexit0": goScheduler,
	"runtime.newproc": goScheduler, "runtime.stealWork": goScheduler, "runtime.selectgo": goScheduler, "runtime.chansend": goScheduler,
	"runtime.chanrecv": goScheduler, "sync.(*Mutex).Lock": goScheduler, "internal/sync.(*Mutex).lockSlow": goScheduler,
}

var programPrefixes = []struct {
	prefix string
	of     category
}{
	{"http1.", judging},
	{"app.", handling},
	{"runtime.mallocgc", goMemory}, {"runtime.(*mcache)", goMemory}, {"runtime.(*mcentral)", goMemory}, {"runtime.(*mheap)", goMemory},
	{"runtime.gcStart", goCollector}, {"runtime.gc", goCollector}, {"runtime.(*gc", goCollector}, {"runtime.(*sweep", goCollector},
	{"runtime.stopTheWorld", goCollector}, {"runtime.startTheWorld", goCollector},
	{"main.", looping}, {"netpoll.", looping}, {"serve.", looping},
}

func programFunction(f frame) (category, bool) {
	if c, ok := programFunctions[f.name]; ok {
		return c, true
	}
	for _, p := range programPrefixes {
		if strings.HasPrefix(f.name, p.prefix) {
			return p.of, true
		}
	}
	return 0, false
}

// split gives each category its part of a record, in nanoseconds of the
// server's CPU time per request. The parts add up to all of it.
func (r *record) split() (parts [categories]float64) {
	for _, s := range r.stacks {
		parts[categorise(s.frames)] += r.perRequest(s.weight)
	}
	return parts
}

// ceiling is by how much a server would get faster if a share of its time cost
// nothing: Amdahl's law. 0.25 is a quarter more requests in the same time.
func ceiling(share float64) float64 { return 1/(1-share) - 1 }
