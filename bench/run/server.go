package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

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

// server is a running one.
type server struct {
	*child
	pid     int
	address string
	admin   string // empty without an admin listener
	workers int
	threads int // GOMAXPROCS as it says
	client  *http.Client
}

// startServer starts s on the given CPUs and waits for its ready line.
func startServer(ctx context.Context, s Server, cpus []int, workers int) (*server, error) {
	args := []string{"-addr", "127.0.0.1:0", "-workers", strconv.Itoa(workers)}
	if s.Admin {
		args = append(args, "-admin", "127.0.0.1:0")
	}
	p, err := start(ctx, command{name: s.Name, path: s.Path, args: append(args, s.Args...), cpus: cpus})
	if err != nil {
		return nil, err
	}
	line, err := p.line(ctx, startLimit)
	if err != nil {
		if ctx.Err() == nil && !p.alive() {
			return nil, p.obituary("instead of starting")
		}
		p.end()
		return nil, err
	}
	out := &server{child: p, client: &http.Client{Transport: &http.Transport{}, Timeout: adminLimit}}
	if err := out.readReady(line); err != nil {
		p.end()
		return nil, err
	}
	if s.Admin && out.admin == "" {
		p.end()
		return nil, fmt.Errorf("%s has no admin listener although it was asked for one: %q", s.Name, line)
	}
	return out, nil
}

// readReady reads "ready stage=… pid=… addr=… workers=… gomaxprocs=… [admin=…]".
func (s *server) readReady(line string) error {
	fields := strings.Fields(line)
	values := map[string]string{}
	for _, f := range fields {
		if name, value, ok := strings.Cut(f, "="); ok {
			values[name] = value
		}
	}
	var err error
	s.pid, err = strconv.Atoi(values["pid"])
	s.address, s.admin = values["addr"], values["admin"]
	s.workers, _ = strconv.Atoi(values["workers"])
	s.threads, _ = strconv.Atoi(values["gomaxprocs"])
	if len(fields) == 0 || fields[0] != "ready" || err != nil || s.address == "" {
		return fmt.Errorf("%s did not print a ready line, but %q", s.name, line)
	}
	if s.pid != s.cmd.Process.Pid {
		return fmt.Errorf("%s says that its process is %d, but %d was started", s.name, s.pid, s.cmd.Process.Pid)
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
func (s *server) read(ctx context.Context) (c counters, err error) {
	if s.admin == "" {
		return c, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/debug/counters", nil)
	if err != nil {
		return c, err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		if !s.alive() {
			return c, s.obituary("")
		}
		return c, fmt.Errorf("cannot read the counters of %s: %w", s.name, err)
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
		return c, fmt.Errorf("cannot read the counters of %s: %w", s.name, err)
	}
	return c, nil
}

// collect makes the server collect its garbage, so that what its heap holds is
// what lives. A server without an admin listener is left alone.
func (s *server) collect(ctx context.Context) error {
	if s.admin == "" {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/debug/pprof/heap?gc=1", nil)
	if err != nil {
		return err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return fmt.Errorf("cannot make %s collect its garbage: %w", s.name, err)
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// stop drains the server and checks that it ended as it should. A server that
// has already ended, or does not end in time, is an error.
func (s *server) stop() error {
	s.client.CloseIdleConnections()
	if !s.alive() {
		return s.obituary("before it was asked to")
	}
	if err := s.drain(); err != nil {
		s.end()
		return fmt.Errorf("cannot end %s: %w", s.name, err)
	}
	if err := s.await(endLimit); err != nil {
		s.end()
		return fmt.Errorf("%w after SIGTERM", err)
	}
	if code := s.exitCode(); code != 0 {
		return s.obituary("badly when it was asked to")
	}
	return nil
}
