package profile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// straceRecorder counts a server's system calls with strace. It slows the server
// down tenfold, and changes nothing of what it asks for per request.
type straceRecorder struct {
	tool
	folder string
	calls  map[string]straceCount
}

// straceCount is what strace says of one system call.
type straceCount struct {
	calls int64
	share float64 // of the time that strace saw in system calls: its own cost is most of it
}

// newStraceRecorder tells in its error why there is none, and what to do.
func newStraceRecorder(cpus []int) (*straceRecorder, error) {
	if _, err := exec.LookPath("strace"); err != nil {
		return nil, errors.New("strace is not installed: with it, its count would stand beside the server's own")
	}
	folder, err := os.MkdirTemp("", "ladder-strace-")
	if err != nil {
		return nil, err
	}
	return &straceRecorder{tool: tool{cpus: cpus}, folder: folder}, nil
}

func (r *straceRecorder) start(ctx context.Context, s *session) error {
	return r.startStrace(ctx, s, "-f", "-c", "-o", r.report())
}

func (r *straceRecorder) report() string { return filepath.Join(r.folder, "report") }

func (r *straceRecorder) finish(context.Context) error {
	if err := r.stop(); err != nil {
		return err
	}
	text, err := os.ReadFile(r.report())
	if err != nil {
		return fmt.Errorf("strace left no report: %w", err)
	}
	r.calls, err = parseStrace(string(text))
	return err
}

func (r *straceRecorder) remove() { os.RemoveAll(r.folder) }

// parseStrace reads the table that strace -c prints: % time, seconds, usecs/call,
// calls, errors (often empty), syscall.
func parseStrace(text string) (map[string]straceCount, error) {
	out := map[string]straceCount{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 || len(f) > 6 || f[len(f)-1] == "total" {
			continue
		}
		share, err := strconv.ParseFloat(f[0], 64)
		if err != nil {
			continue // a heading
		}
		c := straceCount{share: share / 100}
		if c.calls, err = strconv.ParseInt(f[3], 10, 64); err != nil {
			return nil, fmt.Errorf("what strace reports is not understood: %q", strings.TrimSpace(line))
		}
		out[f[len(f)-1]] = c
	}
	if len(out) == 0 {
		return nil, errors.New("strace reports no system call: the server was idle, or it was cut short")
	}
	return out, nil
}
