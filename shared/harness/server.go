package harness

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// ServerCommand says how to start a server.
type ServerCommand struct {
	// Command is its binary, and its flags: they come behind those for a free port on the loopback,
	// and the last one of a name counts.
	Command
	// NoAdmin is for a server without the stages' admin listener: it has no counters.
	NoAdmin bool
	// Wrapper is a tool with its flags that is to run the server: "strace", "-f", …
	Wrapper []string
	// Patience is how long is waited for the ready line, for an answer of the admin listener, for rest
	// and for the end; 0 is the constant of that name.
	Patience time.Duration
}

// Ready is what a server says of itself when it serves, see package serve.
type Ready struct {
	Stage      string // its name: "stage0-naive"
	PID        int
	Address    string // where it serves, "127.0.0.1:8080"
	Workers    int
	GoMaxProcs int
	Admin      string // the admin listener's address; "" without one
}

// ParseReady reads a ready line:
//
//	ready stage=stage0-naive pid=123 addr=127.0.0.1:8080 workers=2 gomaxprocs=3 admin=127.0.0.1:9090
//
// Words that it does not know are passed over. Stage, pid and addr must be there.
func ParseReady(line string) (r Ready, err error) {
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != "ready" {
		return r, fmt.Errorf("no ready line: %s", Clip([]byte(line)))
	}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		var numberErr error
		switch name {
		case "stage":
			r.Stage = value
		case "addr":
			r.Address = value
		case "admin":
			r.Admin = value
		case "pid":
			r.PID, numberErr = strconv.Atoi(value)
		case "workers":
			r.Workers, numberErr = strconv.Atoi(value)
		case "gomaxprocs":
			r.GoMaxProcs, numberErr = strconv.Atoi(value)
		}
		if numberErr != nil {
			return r, fmt.Errorf("%s is no number in the ready line %q", name, line)
		}
	}
	if r.Stage == "" || r.Address == "" || r.PID <= 0 {
		return r, fmt.Errorf("stage, pid or addr is missing in the ready line %q", line)
	}
	return r, nil
}

// Server is a server that runs. Its methods may be called from any goroutine.
type Server struct {
	*Process
	Ready Ready

	patience time.Duration
	client   *http.Client
	readings atomic.Int64
}

// StartServer starts a server and returns when it is ready. Whoever has started it has to Stop or
// Close it. One that ends instead is an [EndedError]; see [Start] for ctx.
func StartServer(ctx context.Context, c ServerCommand) (*Server, error) {
	args := []string{"-addr", "127.0.0.1:0"}
	if !c.NoAdmin {
		args = append(args, "-admin", "127.0.0.1:0")
	}
	c.Args = append(args, c.Args...)
	if len(c.Wrapper) > 0 {
		c.Args = slices.Concat(c.Wrapper[1:], []string{c.Path}, c.Args)
		c.Path = c.Wrapper[0]
	}
	p, err := Start(ctx, c.Command)
	if err != nil {
		return nil, err
	}
	s := &Server{Process: p, patience: cmp.Or(c.Patience, Patience)}
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	if err := s.awaitReady(ctx, c); err != nil {
		s.Close()
		return nil, err
	}
	p.stdout.drop()
	return s, nil
}

func (s *Server) awaitReady(ctx context.Context, c ServerCommand) error {
	line, err := s.Line(ctx, s.patience)
	var ended *EndedError
	switch {
	case errors.As(err, &ended):
		return s.EndedError("instead of starting")
	case err != nil && ctx.Err() == nil:
		return fmt.Errorf("%s did not say within %v that it is ready%s", s.Name, s.patience, s.complaint())
	case err != nil:
		return err
	}
	if s.Ready, err = ParseReady(line); err != nil {
		return fmt.Errorf("%s is not understood: %w%s", s.Name, err, s.complaint())
	}
	if s.Ready.PID != s.PID() && len(c.Wrapper) == 0 {
		return fmt.Errorf("%s says that its process is %d, but %d was started", s.Name, s.Ready.PID, s.PID())
	}
	if s.Ready.Admin == "" && !c.NoAdmin {
		return fmt.Errorf("%s has no admin listener although it was asked for one: %q", s.Name, line)
	}
	return nil
}

// complaint is what it has last written to standard error, for the end of a message.
func (s *Server) complaint() string {
	if last := lastWords(s.Stderr()); last != "" {
		return "; standard error: " + last
	}
	return ""
}

// Signal sends a signal to the server itself, also if a tool runs it.
func (s *Server) Signal(signal os.Signal) error { return s.signal(s.Ready.PID, signal) }

// Stop asks it to stop (SIGTERM) and waits for its end. It is an error if it has ended before, ends
// with another exit code than 0, or does not end: then its goroutines are on its standard error, and
// it is killed.
func (s *Server) Stop() error {
	defer s.Close()
	s.client.CloseIdleConnections()
	if !s.Alive() {
		return s.EndedError("before it was asked to")
	}
	if err := s.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := s.Wait(s.patience); err != nil {
		_ = s.Signal(syscall.SIGQUIT) // a Go program prints its goroutines and ends
		_ = s.Wait(Patience)
		return fmt.Errorf("%w after SIGTERM%s", err, s.complaint())
	}
	if s.ExitCode() != 0 {
		return s.EndedError("badly when it was asked to")
	}
	return nil
}

// Close kills it if it is still there, and waits until it is gone.
func (s *Server) Close() {
	s.client.CloseIdleConnections()
	s.Process.Close()
}

// Admin asks the admin listener for a path, "/debug/pprof/heap?gc=1". takes is how long the answer
// takes beside the usual, that of a CPU profile for instance.
func (s *Server) Admin(ctx context.Context, path string, takes time.Duration) ([]byte, error) {
	if s.Ready.Admin == "" {
		return nil, fmt.Errorf("%s has no admin listener", s.Name)
	}
	within := takes + s.patience
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %v", within))
	defer cancel()
	body, err := s.get(ctx, path)
	if err == nil {
		return body, nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if !s.Alive() {
		return nil, s.EndedError("")
	}
	return nil, fmt.Errorf("cannot get %s of %s: %w", path, s.Name, err)
}

func (s *Server) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Ready.Admin+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(request)
	if Gone(err) {
		// A connection can be dialled and then not needed. When the server ends it, because no head came, just as
		// it is used for the first time, net/http does not send again, as it does over one used before.
		s.client.CloseIdleConnections()
		answer, err = s.client.Do(request)
	}
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("it was cut short after %d bytes: %w", len(body), err)
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: %s", answer.Status, Clip(bytes.TrimSpace(body)))
	}
	return body, nil
}

// Collect makes the server collect its garbage, so that what its heap holds is what lives.
func (s *Server) Collect(ctx context.Context) error {
	_, err := s.Admin(ctx, "/debug/pprof/heap?gc=1", 0)
	return err
}
