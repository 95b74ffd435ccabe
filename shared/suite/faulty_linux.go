package suite

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// A server whose system calls fail is the test binary again, started under a name (a symbolic link) from which [Main] sees that it has to
// set netpoll.Fault. Rules for it come over a Unix socket beside the link. So a running server's calls can be made to fail, and then
// work again, without anything in the stage being there for it. It can record its calls too: in which order it served whom is
// known from inside only.

// faultyName begins the name under which a process makes its system calls fail as it is told. Its rules are in a file beside it
// that ends in .rules when it starts, and then come over the socket that ends in .socket.
const faultyName = "faulty-"

// rule makes some calls of one kind fail. As text, "recvfrom 104 2 1 0" are its fields in their order.
type rule struct {
	call  string
	errno syscall.Errno // 0: the call is cut to cut bytes, or events
	cut   int
	skip  int64 // so many calls are made as ever, before
	times int64 // so many fail, then none; below zero: every so many-th, for ever
	asked atomic.Int64
	made  atomic.Int64 // faults
}

func (r *rule) String() string {
	return fmt.Sprintf("%s %d %d %d %d", r.call, int(r.errno), r.cut, r.skip, r.times)
}

func parseRule(text string) (*rule, error) {
	r := &rule{}
	_, err := fmt.Sscanf(text, "%s %d %d %d %d", &r.call, &r.errno, &r.cut, &r.skip, &r.times)
	return r, err
}

// fault answers for one call, if it is of the rule's kind and its turn has come.
func (r *rule) fault(call netpoll.Call) (n int, err error, injected bool) {
	if call.String() != r.call {
		return 0, nil, false
	}
	number := r.asked.Add(1) - 1 - r.skip
	if number < 0 || r.times >= 0 && number >= r.times || r.times < 0 && number%-r.times != 0 {
		return 0, nil, false
	}
	r.made.Add(1)
	if r.errno != 0 {
		return 0, r.errno, true
	}
	return r.cut, nil, true
}

// rules are those of this process, if it is faulty.
type rules struct {
	mutex     sync.Mutex
	present   atomic.Pointer[[]*rule]
	recording atomic.Pointer[recording] // nil: none
	hold      atomic.Pointer[hold]      // nil: none
}

// made is a call that was made of a socket.
type made struct {
	send bool // or else it received
	fd   int
	at   int64 // nanoseconds, see monotonic
}

// recording has the calls that read or write, in their order.
type recording struct {
	mutex sync.Mutex
	calls []made
}

func (r *recording) add(call netpoll.Call, fd int) {
	switch call {
	case netpoll.CallRecvfrom, netpoll.CallSendto, netpoll.CallSendmsg:
		r.mutex.Lock()
		r.calls = append(r.calls, made{call != netpoll.CallRecvfrom, fd, monotonic()})
		r.mutex.Unlock()
	}
}

func (r *recording) String() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var b strings.Builder
	for _, m := range r.calls {
		fmt.Fprintf(&b, "%t %d %d,", m.send, m.fd, m.at)
	}
	return b.String()
}

// hold lets the next read of one socket wait until other threads have woken a loop so many times:
// what they want of it is there when the thread that reads goes on.
type hold struct {
	fd      int
	wakes   atomic.Int64 // still to come
	reached atomic.Bool
	held    chan struct{} // closed when the read has come
	over    chan struct{} // closed with the last wake-up
}

// fault is netpoll.Fault's part of it. made says that the call has been made here.
func (h *hold) fault(call netpoll.Call, fd int) (made bool) {
	switch {
	case call == netpoll.CallRecvfrom && fd == h.fd && h.reached.CompareAndSwap(false, true):
		close(h.held)
		<-h.over
	case call == netpoll.CallWrite && h.reached.Load():
		// Here, so that it has been made before the other thread goes on.
		unix.Write(fd, binary.NativeEndian.AppendUint64(nil, 1))
		if h.wakes.Add(-1) == 0 {
			close(h.over)
		}
		return true
	}
	return false
}

// monotonic is a clock that all processes of a machine share, see clock_gettime(2).
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}

// actAsFaulty lets this process's system calls fail as it is told, if its name says so.
func actAsFaulty() error {
	name := os.Args[0]
	if !strings.HasPrefix(filepath.Base(name), faultyName) {
		return nil
	}
	var all rules
	netpoll.Fault = all.fault
	return all.start(name)
}

func (all *rules) start(name string) error {
	all.present.Store(&[]*rule{})
	first, err := os.ReadFile(name + ".rules")
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for line := range strings.Lines(string(first)) {
		if answer := all.obey("add " + strings.TrimSpace(line)); answer != "ok" {
			return fmt.Errorf("%s", answer)
		}
	}
	listener, err := net.Listen("unix", name+".socket")
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			for lines := bufio.NewScanner(c); lines.Scan(); {
				fmt.Fprintln(c, all.obey(lines.Text()))
			}
			c.Close()
		}
	}()
	return nil
}

// fault is netpoll.Fault.
func (all *rules) fault(call netpoll.Call, fd int) (n int, err error, injected bool) {
	if r := all.recording.Load(); r != nil {
		r.add(call, fd)
	}
	if h := all.hold.Load(); h != nil && h.fault(call, fd) {
		return 8, nil, true
	}
	for _, r := range *all.present.Load() {
		if n, err, injected = r.fault(call); injected {
			return n, err, true
		}
	}
	return 0, nil, false
}

// obey carries out "add" with a rule, "clear", "made", which asks how many faults there were since
// the last "clear", "record", which begins to record calls, "recorded", which ends that and gives
// them, "hold" with a descriptor and a number of wake-ups (see hold), or "held", which waits for
// the read that is held.
func (all *rules) obey(line string) string {
	all.mutex.Lock()
	defer all.mutex.Unlock()
	present := *all.present.Load()
	switch command, text, _ := strings.Cut(line, " "); command {
	case "add":
		r, err := parseRule(text)
		if err != nil {
			return err.Error()
		}
		more := append(present[:len(present):len(present)], r)
		all.present.Store(&more)
	case "clear":
		all.present.Store(&[]*rule{})
	case "made":
		var made int64
		for _, r := range present {
			made += r.made.Load()
		}
		return strconv.FormatInt(made, 10)
	case "record":
		all.recording.Store(&recording{})
	case "recorded":
		if r := all.recording.Swap(nil); r != nil {
			return r.String()
		}
	case "hold":
		h := &hold{held: make(chan struct{}), over: make(chan struct{})}
		var wakes int64
		if _, err := fmt.Sscan(text, &h.fd, &wakes); err != nil {
			return err.Error()
		}
		h.wakes.Store(wakes)
		all.hold.Store(h)
	case "held":
		<-all.hold.Load().held
	default:
		return "unknown command " + command
	}
	return "ok"
}
