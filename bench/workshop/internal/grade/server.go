package grade

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/witness"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// answerLimit is for anything that a client waits for, and for a server's start and stop.
const answerLimit = 10 * time.Second

// Server is a running server. Its methods may be called from several goroutines.
type Server struct {
	*harness.Server
	mark   string           // in its environment
	record *record          // nil unless it is watched
	traced *witness.Process // the same

	mutex   sync.Mutex
	clients []*connection // which go when the server does
}

// errBlind is that a server's system calls cannot be watched here, which is not its fault.
type errBlind struct{ error }

// serve starts a server on a free port with an admin listener and waits until it says that it is ready.
// The error is one line for the learner. The server ends with the subject's context.
func (s *Subject) serve(args ...string) (*Server, error) { return s.start(s.Binary, nil, nil, args) }

// serveWatched is serve with the server's system calls watched, which makes it slow. It answers
// an errBlind where that is not possible.
func (s *Subject) serveWatched(args ...string) (*Server, error) {
	return s.start(s.Binary, nil, newRecord(), args)
}

// start starts a server of a binary with more in the environment, watched if there is a record.
func (s *Subject) start(binary string, environment []string, r *record, args []string) (*Server, error) {
	server := &Server{mark: NewMark(), record: r}
	command := harness.ServerCommand{Patience: answerLimit, Command: harness.Command{
		Name: "the server", Path: binary, Args: args, Env: append(environment, server.mark),
	}}
	var blind error
	if r != nil {
		server.traced = witness.New(r.observe)
		command.Launch = func(c *exec.Cmd) (func() harness.Exit, error) {
			wait, err := server.traced.Launch(c)
			blind = err
			return wait, err
		}
	}
	var err error
	if server.Server, err = harness.StartServer(s.Context, command); err == nil {
		return server, nil
	}
	EndMarked(server.mark)
	if blind != nil {
		return nil, errBlind{blind}
	}
	return nil, err
}

// lend is for a server that has just been started, or has not. It lets f use it, and wants it to stop
// well, with those clients still there that f leaves.
func lend(server *Server, err error, f func(*Server) error) error {
	if err != nil {
		return err
	}
	defer server.Kill()
	if err := f(server); err != nil {
		return err
	}
	return server.Stop()
}

// with lends f a server with one worker. A flag that is given twice counts as the last one says.
func (s *Subject) with(f func(*Server) error, flags ...string) error {
	server, err := s.serve(append([]string{"-workers", "1"}, flags...)...)
	return lend(server, err, f)
}

// withWatched is with, under watch.
func (s *Subject) withWatched(f func(*Server) error, flags ...string) error {
	server, err := s.serveWatched(append([]string{"-workers", "1"}, flags...)...)
	return lend(server, err, f)
}

// serving makes a behaviour of what can be seen of one server.
func serving(f func(*Server) error, flags ...string) func(*Subject) error {
	return func(s *Subject) error { return s.with(f, flags...) }
}

// talking makes a behaviour of what can be seen over one connection.
func talking(f func(*connection) error) func(*Subject) error {
	return serving(func(server *Server) error {
		c, err := server.dial()
		if err != nil {
			return err
		}
		return f(c)
	})
}

// watching makes a behaviour of what can be seen of one server under watch. Where that is not possible
// nothing is wrong: it has been said once already.
func watching(f func(*Server) error, flags ...string) func(*Subject) error {
	return func(s *Subject) error {
		err := s.withWatched(f, flags...)
		if isBlind(err) && s.Blind() != nil {
			return nil
		}
		return err
	}
}

// dial connects a client that stays until the server is killed, unless it is closed before.
func (s *Server) dial() (*connection, error) {
	c, err := dial(s.Ready.Address)
	if err == nil {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.clients = append(s.clients, c)
	}
	return c, err
}

// Kill ends the server and all that it started, at once. It must be called for each, also after Stop.
func (s *Server) Kill() {
	s.mutex.Lock()
	closeAll(s.clients)
	s.mutex.Unlock()
	s.Close()
	EndMarked(s.mark)
}

// Stop asks the server to stop and says what is wrong with how it does.
func (s *Server) Stop() error {
	if err := s.Server.Stop(); err != nil {
		return err
	}
	if n := EndMarked(s.mark); n > 0 {
		return fmt.Errorf("the server left %d %s of its own behind, which were ended", n, plural(n, "process"))
	}
	return nil
}

// read reads the server's counters. A server ends with its subject's context, and so does who reads.
func (s *Server) read() (harness.Reading, error) { return s.Counters(context.Background()) }

// await reads the counters until they are as wanted, or for as long as a client would wait.
func (s *Server) await(wanted func(harness.Reading) bool) (harness.Reading, bool) {
	r, err := s.Await(context.Background(), "what was to come", wanted)
	return r, err == nil
}

// isBlind says whether err is an errBlind.
func isBlind(err error) bool {
	var blind errBlind
	return errors.As(err, &blind)
}
