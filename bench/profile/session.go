package profile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// lab is where servers are started and driven.
type lab struct {
	root    string // of the repository
	bin     string // folder of the servers
	out     string // folder of what is written
	command string // this project's command: its subcommand load is the generator
	place   run.Place
	workers int
	warmup  time.Duration
}

// A session is a server that runs. One goroutine uses it.
type session struct {
	lab     *lab
	name    string
	path    string
	process *process
	address string
	admin   *admin
}

const (
	readyLimit = 15 * time.Second
	loadSlack  = time.Minute // beyond the time that the generator is told to take
)

// begin starts a server, with variables beside those of this process.
func (l *lab) begin(ctx context.Context, server run.Server, env ...string) (*session, error) {
	args := append([]string{"-addr", "127.0.0.1:0", "-admin", "127.0.0.1:0", "-workers", strconv.Itoa(l.workers)}, server.Args...)
	p, err := start(ctx, command{name: server.Name, path: server.Path, args: args, env: env, cpus: l.place.Server})
	if err != nil {
		return nil, err
	}
	line, err := p.line(ctx, readyLimit)
	if err != nil {
		p.end()
		return nil, err
	}
	values := map[string]string{}
	for _, field := range strings.Fields(line) {
		if name, value, ok := strings.Cut(field, "="); ok {
			values[name] = value
		}
	}
	if !strings.HasPrefix(line, "ready ") || values["addr"] == "" || values["admin"] == "" {
		p.end()
		return nil, fmt.Errorf("%s did not print a ready line with an admin listener, but %q", server.Name, line)
	}
	return &session{lab: l, name: server.Name, path: server.Path, process: p, address: values["addr"], admin: newAdmin(values["admin"])}, nil
}

func (s *session) pid() int { return s.process.cmd.Process.Pid }

// close ends the server, and says so if it had already ended or fails to.
func (s *session) close() error {
	s.admin.close()
	if !s.process.alive() {
		return s.process.obituary()
	}
	defer s.process.end()
	if err := s.process.stop(syscall.SIGTERM); err != nil {
		return err
	}
	if code := s.process.cmd.ProcessState.ExitCode(); code != 0 {
		return s.process.obituary()
	}
	return nil
}

// A recorder records a server between start and finish. Neither is called while
// a request is on its way. abandon ends it, whether or not it was started.
type recorder interface {
	start(ctx context.Context, s *session) error
	finish(ctx context.Context) error
	abandon()
}

// outcome is what a drive came to. Everything in it is between start and finish
// of the recorders.
type outcome struct {
	requests int64
	seconds  float64
	counters counters // differences
	result   load.Result
}

// add adds what came of another drive of the same kind.
func (o *outcome) add(more outcome) {
	o.requests += more.requests
	o.seconds += more.seconds
	for name, value := range more.counters.Total {
		o.counters.Total[name] += value
	}
	for name, value := range more.counters.Runtime {
		o.counters.Runtime[name] += value
	}
}

// cpu is the server's CPU time per request in nanoseconds, as the kernel counted it.
func (o outcome) cpu() float64 { return float64(o.counters.Runtime["cpu_ns"]) / float64(o.requests) }

// perRequest is one of the server's counters.
func (o outcome) perRequest(name string) float64 {
	return float64(o.counters.Total[name]) / float64(o.requests)
}

// errIdle is wrapped by the error of a server that was asked for nothing.
var errIdle = errors.New("the server was idle: nothing to see in a profile of it")

// drive sends the workload for some time. The recorders see no connection being
// opened or closed, unless that is what the workload is.
func (s *session) drive(ctx context.Context, w workload.Workload, duration time.Duration, recorders ...recorder) (o outcome, err error) {
	defer func() {
		for _, r := range recorders {
			r.abandon()
		}
		if err != nil {
			err = s.blame(ctx, err)
		}
	}()
	threads := min(len(s.lab.place.Load), w.Connections)
	g, err := start(ctx, command{name: "the load generator", path: s.lab.command, cpus: s.lab.place.Load, args: []string{
		"load", "--json", "--hold", "--target", s.address, "--workload", w.Name,
		"--connections", strconv.Itoa(w.Connections), "--pipeline", strconv.Itoa(w.Pipeline), "--idle", strconv.Itoa(w.Idle),
		"--threads", strconv.Itoa(threads), "--warmup", s.lab.warmup.String(), "--duration", duration.String(),
	}})
	if err != nil {
		return o, err
	}
	defer g.end()
	limit := s.lab.warmup + duration + loadSlack
	expect := func(word string) error {
		line, err := g.line(ctx, limit)
		if err == nil && line != word {
			err = fmt.Errorf("the load generator said %.80q instead of %q", line, word)
		}
		return err
	}
	if err = expect("ready"); err != nil {
		return o, err
	}
	for _, r := range recorders {
		if err = r.start(ctx, s); err != nil {
			return o, recorderError{err}
		}
	}
	before, err := s.settled(ctx)
	if err != nil {
		return o, err
	}
	if err = g.say("go"); err != nil {
		return o, err
	}
	if err = expect("done"); err != nil {
		return o, err
	}
	after, err := s.settled(ctx)
	if err != nil {
		return o, err
	}
	for _, r := range recorders {
		if err = r.finish(ctx); err != nil {
			return o, recorderError{err}
		}
	}
	if err = g.say("end"); err != nil {
		return o, err
	}
	line, err := g.line(ctx, limit)
	if err != nil {
		return o, err
	}
	if err = json.Unmarshal([]byte(line), &o.result); err != nil {
		return o, fmt.Errorf("the load generator's result is not understood: %w", err)
	}
	if err = g.await(endLimit); err != nil {
		return o, err
	}
	o.counters = after.less(before)
	o.requests = o.counters.Total["requests"]
	o.seconds = o.result.Elapsed
	if n := o.result.Failures(); n > 0 {
		return o, fmt.Errorf("%s gave %d wrong answers or lost connections on %s", s.name, n, w.Name)
	}
	if o.requests == 0 {
		return o, errIdle
	}
	return o, nil
}

// settled reads the counters once the loops are at rest. All answers are there,
// but a loop publishes its counters at the end of a turn, which may be a little
// later: they are as they will stay when several readings are alike.
func (s *session) settled(ctx context.Context) (now counters, err error) {
	const alike, pause, most = 3, 5 * time.Millisecond, 200
	same := 0
	for range most {
		last := now
		if now, err = s.admin.counters(ctx); err != nil {
			return now, err
		}
		if !maps.Equal(now.Total, last.Total) {
			same = 0
		} else if same++; same == alike {
			return now, nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return now, ctx.Err()
		}
	}
	return now, fmt.Errorf("%s does not come to rest: does somebody else use it?", s.name)
}

// recorderError is one for which the server is not to blame, if it still runs.
type recorderError struct{ error }

func (e recorderError) Unwrap() error { return e.error }

// blame finds the better error: whoever loses a server can only say that it did.
func (s *session) blame(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var recorder recorderError
	if !errors.As(err, &recorder) && !errors.Is(err, errIdle) {
		_ = s.process.await(time.Second)
	}
	if !s.process.alive() {
		return s.process.obituary()
	}
	return err
}
