package profile

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// endLimit is how long perf or strace may take to end, and to write what they have.
const endLimit = 20 * time.Second

// A session is a server that runs, and its admin listener. One goroutine uses it.
type session struct {
	*run.Running
	lab   *lab
	path  string // of the binary
	admin *admin
}

// begin starts a server, with variables beside those of this process.
func (l *lab) begin(ctx context.Context, server run.Server, env ...string) (*session, error) {
	server.Admin = true
	r, err := run.Start(ctx, server, l.place.Server, l.workers, env...)
	if err != nil {
		return nil, err
	}
	return &session{Running: r, lab: l, path: server.Path, admin: newAdmin(r.Admin)}, nil
}

// close ends the server, and says so if it had already ended or fails to.
func (s *session) close() error {
	s.admin.close()
	return s.Stop()
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
	g, err := run.OpenGenerator(ctx, run.Drive{
		Command: s.lab.command, CPUs: s.lab.place.Load, Address: s.Address, Workload: w,
		Threads: min(len(s.lab.place.Load), w.Connections), Warmup: s.lab.warmup, Duration: duration,
	})
	if err != nil {
		return o, err
	}
	defer g.End()
	// What the warm-up left is no part of a record: a connection that is yet to be accepted.
	if _, err = s.settled(ctx); err != nil {
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
	if err = g.Send(ctx); err != nil {
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
	if o.result, err = g.Result(ctx); o.result.Failures() > 0 {
		return o, fmt.Errorf("%s gave %d wrong answers or lost connections on %s", s.Name, o.result.Failures(), w.Name)
	} else if err != nil {
		return o, err
	}
	o.counters = after.less(before)
	o.requests = o.counters.Total["requests"]
	o.seconds = o.result.Elapsed
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
	return now, fmt.Errorf("%s does not come to rest: does somebody else use it?", s.Name)
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
		_ = s.Await(time.Second)
	}
	if !s.Alive() {
		return s.Obituary("while it was being looked at")
	}
	return err
}
