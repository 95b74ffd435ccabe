package grade

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listening are the ports that a process listens on, one for each socket: proc(5), /proc/PID/net/tcp.
func listening(pid int) ([]string, error) {
	folder := "/proc/" + strconv.Itoa(pid)
	own, err := sockets(pid)
	if err != nil {
		return nil, err
	}
	var ports []string
	for _, table := range []struct{ name, state string }{
		{"tcp", "0A"}, {"tcp6", "0A"}, {"udp", "07"}, {"udp6", "07"},
	} {
		text, err := os.ReadFile(folder + "/net/" + table.name)
		if err != nil {
			continue // no such protocol here
		}
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if len(words) < 10 || words[3] != table.state || own[words[9]] == 0 {
				continue
			}
			_, port, _ := strings.Cut(words[1], ":")
			if n, err := strconv.ParseUint(port, 16, 16); err == nil {
				ports = append(ports, strconv.FormatUint(n, 10))
			}
		}
	}
	return ports, nil
}

// sockets are those that a process has open, by inode, and how many of its threads have each: a thread may have a table of
// descriptors of its own.
func sockets(pid int) (map[string]int, error) {
	tables, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/fd")
	if err != nil || len(tables) == 0 {
		return nil, fmt.Errorf("the server is gone")
	}
	threads := map[string]int{}
	for _, table := range tables {
		descriptors, _ := filepath.Glob(table + "/*")
		here := map[string]bool{} // a table may have a socket twice
		for _, descriptor := range descriptors {
			if link, err := os.Readlink(descriptor); err == nil {
				if inode, ok := strings.CutPrefix(link, "socket:["); ok {
					here[strings.TrimSuffix(inode, "]")] = true
				}
			}
		}
		for inode := range here {
			threads[inode]++
		}
	}
	return threads, nil
}

// threadsOf is how many threads of a process have its end of a connection open, which has this other end, by port.
func threadsOf(pid int, port string) (int, error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, err
	}
	threads, err := sockets(pid)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/net/tcp")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 10 || !strings.HasSuffix(words[2], fmt.Sprintf(":%04X", n)) {
			continue
		}
		if found := threads[words[9]]; found > 0 {
			return found, nil
		}
	}
	return 0, fmt.Errorf("no thread of the server has the connection from port %s open", port)
}
