package grade

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// EndMarked kills every process that has the mark in its environment, wherever it went (another process
// group, another parent), and answers how many there were. See proc(5), /proc/PID/environ.
func EndMarked(mark string) (n int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(mark)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && pid != os.Getpid() && syscall.Kill(pid, syscall.SIGKILL) == nil {
			n++
		}
	}
	return n
}
