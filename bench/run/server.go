package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/child"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

const (
	startLimit = 15 * time.Second // until the ready line
	endLimit   = 15 * time.Second // for the graceful stop, whose own limit is five seconds
	adminLimit = 15 * time.Second // for one answer of the admin listener
)

// Server says how to start a server that is to be measured.
type Server struct {
	Name string   // as it stands in tables
	Path string   // of the binary
	Args []string // beside the address and the workers

	Workers int // 0 for those of the whole run

	// Can tells which workloads it can serve; nil is all.
	Can func(workload.Workload) bool

	// Admin is for servers that have the admin listener of the stages; without
	// it there are no counters.
	Admin bool
}

// Running is a server that has been started. Whoever started it has to Stop it,
// or at least to End it.
type Running struct {
	*child.Child
	Address string
	Admin   string // address of the admin listener; empty without one

	client *http.Client
}

// Start starts s on the given CPUs, with variables beside those of this process,
// and waits for its ready line.
func Start(ctx context.Context, s Server, cpus []int, workers int, env ...string) (*Running, error) {
	args := []string{"-addr", "127.0.0.1:0", "-workers", strconv.Itoa(workers)}
	if s.Admin {
		args = append(args, "-admin", "127.0.0.1:0")
	}
	p, err := child.Start(ctx, child.Command{Name: s.Name, Path: s.Path, Args: append(args, s.Args...), Env: env, CPUs: cpus})
	if err != nil {
		return nil, err
	}
	line, err := p.Line(ctx, startLimit)
	if err != nil {
		if ctx.Err() == nil && !p.Alive() {
			return nil, p.Obituary("instead of starting")
		}
		p.End()
		return nil, err
	}
	out := &Running{Child: p, client: &http.Client{Transport: &http.Transport{}, Timeout: adminLimit}}
	if err := out.readReady(line); err != nil {
		p.End()
		return nil, err
	}
	if s.Admin && out.Admin == "" {
		p.End()
		return nil, fmt.Errorf("%s has no admin listener although it was asked for one: %q", s.Name, line)
	}
	return out, nil
}

// readReady reads "ready stage=… pid=… addr=… workers=… gomaxprocs=… [admin=…]".
func (s *Running) readReady(line string) error {
	fields := strings.Fields(line)
	values := map[string]string{}
	for _, f := range fields {
		if name, value, ok := strings.Cut(f, "="); ok {
			values[name] = value
		}
	}
	pid, err := strconv.Atoi(values["pid"])
	s.Address, s.Admin = values["addr"], values["admin"]
	if len(fields) == 0 || fields[0] != "ready" || err != nil || s.Address == "" {
		return fmt.Errorf("%s did not print a ready line, but %q", s.Name, line)
	}
	if pid != s.PID() {
		return fmt.Errorf("%s says that its process is %d, but %d was started", s.Name, pid, s.PID())
	}
	return nil
}

// counters is one reading of /debug/counters. Gauges may be below zero in a single loop.
type counters struct {
	Loops   []map[string]int64 `json:"loops"`
	Total   map[string]int64   `json:"total"`
	Runtime map[string]int64   `json:"runtime"`
}

// read reads the counters; without an admin listener there are none, and no error.
func (s *Running) read(ctx context.Context) (c counters, err error) {
	if s.Admin == "" {
		return c, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Admin+"/debug/counters", nil)
	if err != nil {
		return c, err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		if !s.Alive() {
			return c, s.Obituary("")
		}
		return c, fmt.Errorf("cannot read the counters of %s: %w", s.Name, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", answer.Status)
	}
	if err == nil {
		err = json.Unmarshal(body, &c)
	}
	if err != nil {
		return c, fmt.Errorf("cannot read the counters of %s: %w", s.Name, err)
	}
	return c, nil
}

// collect makes the server collect its garbage, so that what its heap holds is
// what lives. A server without an admin listener is left alone.
func (s *Running) collect(ctx context.Context) error {
	if s.Admin == "" {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Admin+"/debug/pprof/heap?gc=1", nil)
	if err != nil {
		return err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return fmt.Errorf("cannot make %s collect its garbage: %w", s.Name, err)
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// Stop drains the server and checks that it ended as it should. A server that
// has already ended, or does not end in time, is an error.
func (s *Running) Stop() error {
	s.client.CloseIdleConnections()
	if !s.Alive() {
		return s.Obituary("before it was asked to")
	}
	if err := s.Child.Stop(syscall.SIGTERM, endLimit); err != nil {
		s.End()
		return fmt.Errorf("%w after SIGTERM", err)
	}
	if code := s.State().ExitCode(); code != 0 {
		return s.Obituary("badly when it was asked to")
	}
	return nil
}
