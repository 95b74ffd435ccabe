package grade

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// habit is what a thread has done so far, as the kernel counts it without being asked to watch.
type habit struct {
	waits int64 // how often it slept: voluntary_ctxt_switches of proc_pid_status(5)
	cpu   time.Duration
}

// habits are those of a process's threads, by their numbers.
func habits(pid int) map[string]habit {
	all := map[string]habit{}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, task := range tasks {
		var h habit
		status, _ := os.ReadFile(filepath.Join(task, "status"))
		for line := range strings.Lines(string(status)) {
			if text, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				h.waits, _ = strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			}
		}
		// The first field is the time on a CPU, see "Scheduler Statistics" in the kernel's
		// documentation.
		times, _ := os.ReadFile(filepath.Join(task, "schedstat"))
		if fields := strings.Fields(string(times)); len(fields) > 0 {
			nanoseconds, _ := strconv.ParseInt(fields[0], 10, 64)
			h.cpu = time.Duration(nanoseconds)
		}
		all[filepath.Base(task)] = h
	}
	return all
}

// waiting says which threads of a process wait for events now: its loops do, when they have nothing
// to do (proc_pid_syscall(5)). None may be because this process may not know.
func waiting(pid int) map[string]bool {
	all := map[string]bool{}
	calls, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	for _, path := range calls {
		text, _ := os.ReadFile(path)
		number, _, _ := strings.Cut(string(text), " ")
		if number == strconv.Itoa(unix.SYS_EPOLL_PWAIT) {
			all[filepath.Base(filepath.Dir(path))] = true
		}
	}
	return all
}

// wroteSoFar is what a process has written by write(2) and sendfile(2), in bytes; what goes into a
// socket by other calls is not in it (proc_pid_io(5), wchar). Below zero: the kernel does not tell.
func wroteSoFar(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	for line := range strings.Lines(string(text)) {
		if text, ok := strings.CutPrefix(line, "wchar:"); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}
