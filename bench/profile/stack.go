package profile

import (
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// kind says whose code a frame is. It decides the colour.
type kind uint8

const (
	kernelCode  kind = iota
	runtimeCode      // Go's runtime, and what it has in assembly
	libraryCode      // Go's standard library and modules
	projectCode
)

// A frame is one function of a stack.
type frame struct {
	name string // shortened, see shorten
	kind kind
}

// A stack is what was on the CPU, leaf first, and for how long.
type stack struct {
	frames []frame
	weight int64 // in units that mean nothing by themselves
}

// record is a profile together with what the server did meanwhile.
type record struct {
	server   string
	workload string
	source   string // what took it, for people
	outcome  outcome
	profile  *profile.Profile
	stacks   []stack
	samples  int64
	weight   int64 // of all stacks
}

// newRecord prepares a profile whose first two values are samples and time, as
// those of Go and of perf here have.
func newRecord(p *profile.Profile, server, workload, source string, o outcome) (*record, error) {
	r := &record{server: server, workload: workload, source: source, outcome: o, profile: p}
	for _, s := range p.Sample {
		if len(s.Value) < 2 || s.Value[1] <= 0 || len(s.Location) == 0 {
			continue
		}
		r.samples += s.Value[0]
		r.weight += s.Value[1]
		r.stacks = append(r.stacks, stack{frames: frames(s), weight: s.Value[1]})
	}
	if r.samples == 0 {
		return nil, errNoSamples
	}
	return r, nil
}

// kernelIsNameless tells whether the kernel keeps the names of its functions to
// itself: most of its frames have none.
func (r *record) kernelIsNameless() bool {
	named, nameless := 0, 0
	for _, s := range r.stacks {
		if leaf := s.frames[0]; leaf.kind != kernelCode {
			continue
		} else if leaf.name == unknown {
			nameless++
		} else {
			named++
		}
	}
	return nameless > named
}

// perRequest is what a weight comes to, in nanoseconds of the server's CPU time
// per request. The kernel's clock gives the whole, the samples each part of it.
func (r *record) perRequest(weight int64) float64 {
	return float64(weight) / float64(r.weight) * r.outcome.cpuNanos()
}

// frames spells out a sample: an entry for each inlined function too.
func frames(s *profile.Sample) []frame {
	var out []frame
	for _, l := range s.Location {
		kernel := l.Mapping != nil && isKernelImage(l.Mapping.File)
		if len(l.Line) == 0 {
			out = append(out, frame{name: unknown, kind: kindOf("", kernel)})
		}
		for _, line := range l.Line {
			name := unknown
			if line.Function != nil && line.Function.Name != "" {
				name = line.Function.Name
			}
			out = append(out, frame{name: shorten(name), kind: kindOf(name, kernel)})
		}
	}
	// The Go profiler cannot look into the kernel: there the stack ends in the
	// function that enters it. The time is the kernel's all the same.
	if call := enteredFrom(out); call != "" {
		out = append([]frame{{name: kernelPrefix + call, kind: kernelCode}}, out...)
	}
	return out
}

// kernelPrefix begins the name of a frame that stands for all that the kernel does in a system
// call.
const kernelPrefix = "kernel: "

// enteredFrom is the system call that a stack ends in, "" if it does not.
func enteredFrom(frames []frame) string {
	leaf := frames[0]
	if leaf.kind == kernelCode {
		return ""
	}
	if call, ok := runtimeCalls[leaf.name]; ok {
		return call
	}
	if !strings.HasSuffix(leaf.name, ".Syscall6") || leaf.kind != runtimeCode {
		return ""
	}
	for _, f := range frames {
		if call, ok := wrapperCalls[f.name]; ok {
			return call
		}
	}
	return anyCall
}

// anyCall stands for a system call whose name is not known.
const anyCall = "system call"

// wrapperCalls are the functions of shared/netpoll that make a system call, and
// those that they may be inlined into. A test holds them to that package.
var wrapperCalls = map[string]string{
	"netpoll.recvfrom": "recvfrom", "netpoll.Receive": "recvfrom",
	"netpoll.sendto": "sendto", "netpoll.Send": "sendto",
	"netpoll.(*Vector).sendmsg": "sendmsg", "netpoll.(*Vector).Send": "sendmsg",
	"netpoll.(*Poller).raw": "epoll_pwait", "netpoll.(*Poller).block": "epoll_pwait", "netpoll.(*Poller).Wait": "epoll_pwait",
	"netpoll.(*Ring).Enter": "io_uring_enter", "netpoll.(*Ring).submit": "io_uring_enter",
	"netpoll.epollControl": "epoll_ctl", "netpoll.(*Poller).control": "epoll_ctl", "netpoll.(*Poller).Modify": "epoll_ctl",
	"netpoll.(*Poller).Add": "epoll_ctl", "netpoll.(*Poller).Remove": "epoll_ctl",
	"netpoll.writeOne": "write", "netpoll.(*Poller).Wake": "write",
	"netpoll.timerfdSettime": "timerfd_settime", "netpoll.SetTimer": "timerfd_settime",
	"netpoll.timerfdCreate": "timerfd_create", "netpoll.NewTimer": "timerfd_create",
	"netpoll.accept4": "accept4", "netpoll.Accept": "accept4",
	"netpoll.Unacknowledged": "ioctl", "netpoll.Unread": "ioctl", "netpoll.queued": "ioctl",
	"netpoll.Close": "close", "netpoll.shutdown": "shutdown", "netpoll.ShutdownWrite": "shutdown",
}

// runtimeCalls are the functions of the Go runtime that make one themselves.
var runtimeCalls = map[string]string{
	"runtime.futex": "futex", "runtime.usleep": "nanosleep", "runtime.osyield": "sched_yield", "runtime.tgkill": "tgkill",
	"runtime.madvise": "madvise", "runtime.sysMmap": "mmap", "runtime.write1": "write", "runtime.read": "read",
	"runtime.timer_settime": "timer_settime", "runtime.setitimer": "setitimer",
}

const modulePath = "github.com/qps-ladder/qps-ladder/"

// projectPackages are the project's, as shorten leaves their names.
var projectPackages = []string{"main.", "netpoll.", "http1.", "app.", "serve."}

// kindOf says whose code a function is, by its name in full or as shorten leaves it.
func kindOf(name string, kernel bool) kind {
	switch {
	case kernel:
		return kernelCode
	case strings.HasPrefix(name, modulePath), slices.ContainsFunc(projectPackages, func(p string) bool { return strings.HasPrefix(name, p) }):
		return projectCode
	case strings.HasPrefix(name, "runtime."), strings.HasPrefix(name, "internal/runtime/"), strings.HasPrefix(name, "internal/bytealg."),
		strings.HasPrefix(name, "internal/abi."), strings.HasPrefix(name, "internal/chacha8rand."),
		!strings.ContainsAny(name, "./"): // a name of assembly, such as memeqbody, or of the vDSO
		return runtimeCode
	}
	return libraryCode
}

// shorten leaves away what tells nothing in this project.
func shorten(name string) string {
	name = strings.ReplaceAll(name, modulePath+"shared/", "")
	name = strings.ReplaceAll(name, modulePath, "")
	return strings.ReplaceAll(name, "github.com/", "")
}
