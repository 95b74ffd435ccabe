package hostile

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

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
	mutex   sync.Mutex
	present atomic.Pointer[[]*rule]
}

func init() {
	name := os.Args[0]
	if !strings.HasPrefix(filepath.Base(name), faultyName) {
		return
	}
	var all rules
	if err := all.start(name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	netpoll.Fault = all.fault
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
func (all *rules) fault(call netpoll.Call, _ int) (n int, err error, injected bool) {
	for _, r := range *all.present.Load() {
		if n, err, injected = r.fault(call); injected {
			return n, err, true
		}
	}
	return 0, nil, false
}

// obey carries out "add" with a rule, "clear", or "made", which asks how many faults there were since the last "clear".
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
	default:
		return "unknown command " + command
	}
	return "ok"
}
