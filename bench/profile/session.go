package profile

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
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
	*harness.Server
	lab  *lab
	path string // of the binary
}

// session starts a server for use, and ends it. It is an error if the server had already ended, or
// fails to end. All have the admin listener of the stages but the C loop.
func (l *lab) session(ctx context.Context, server run.Server, use func(*session) error) error {
	server.Admin = server.Name != run.BareC
	s, err := run.Start(ctx, server, l.place.Server, l.workers)
	if err != nil {
		return err
	}
	err = use(&session{Server: s, lab: l, path: server.Path})
	if stopErr := s.Stop(); err == nil {
		err = stopErr
	}
	return err
}

// drive starts a server, drives it once, and ends it.
func (l *lab) drive(ctx context.Context, server run.Server, w workload.Workload, duration time.Duration, recorders ...recorder) (o outcome, err error) {
	server, remove, err := run.WithFile(server, w)
	defer remove()
	if err != nil {
		return o, err
	}
	err = l.session(ctx, server, func(s *session) (err error) {
		o, err = s.drive(ctx, w, duration, recorders...)
		return err
	})
	if err != nil {
		err = fmt.Errorf("%s on %s: %w", server.Name, w.Name, err)
	}
	return o, err
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
	counters harness.Reading // differences
	result   load.Result
}

// outcomeOf is without the result of a generator. It is an error if there was no request.
func outcomeOf(before, after harness.Reading, seconds float64) (outcome, error) {
	o := outcome{seconds: seconds, counters: after.Sub(before)}
	if o.requests = int64(o.counters.Total.Requests); o.requests == 0 {
		return o, errIdle
	}
	return o, nil
}

// add adds what came of another drive of the same kind.
func (o *outcome) add(more outcome) {
	o.requests += more.requests
	o.seconds += more.seconds
	o.counters.Total.Add(more.counters.Total)
	o.counters.Process.Add(more.counters.Process)
}

// cpuNanos is the server's CPU time per request, as the kernel counted it.
func (o outcome) cpuNanos() float64 {
	return float64(o.counters.Process.CPUNanos) / float64(o.requests)
}

// cpuMicros is cpuNanos for people.
func (o outcome) cpuMicros() float64 { return o.cpuNanos() / 1e3 }

// perRequest is one of the server's counters.
func (o outcome) perRequest(name string) float64 {
	return float64(o.counters.Counts()[name]) / float64(o.requests)
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
	settle, more := s.Settle, []string(nil)
	if s.Ready.Admin == "" { // the generator counts, and reads what the server has used
		settle = func(context.Context) (harness.Reading, error) { return harness.Reading{}, nil }
		more = []string{"--server-pid", strconv.Itoa(s.PID())}
	}
	g, err := run.OpenGenerator(ctx, run.Drive{
		Command: s.lab.command, CPUs: s.lab.place.Load, Address: s.Ready.Address, Workload: w,
		Threads: min(len(s.lab.place.Load), w.Connections), Warmup: s.lab.warmup, Duration: duration, More: more,
	})
	if err != nil {
		return o, err
	}
	defer g.Close()
	// What the warm-up left is no part of a record: a connection that is yet to be accepted.
	if _, err = settle(ctx); err != nil {
		return o, err
	}
	for _, r := range recorders {
		if err = r.start(ctx, s); err != nil {
			return o, recorderError{err}
		}
	}
	before, err := settle(ctx)
	if err != nil {
		return o, err
	}
	if err = g.Send(ctx); err != nil {
		return o, err
	}
	after, err := settle(ctx)
	if err != nil {
		return o, err
	}
	for _, r := range recorders {
		if err = r.finish(ctx); err != nil {
			return o, recorderError{err}
		}
	}
	result, err := g.Result(ctx)
	if result.Failures() > 0 {
		return o, fmt.Errorf("%s gave %d wrong answers or lost connections on %s", s.Name, result.Failures(), w.Name)
	} else if err != nil {
		return o, err
	}
	if s.Ready.Admin == "" {
		after.Total.Requests, after.Process.CPUNanos = result.Requests+result.Late, result.ServerCPUNanos
	}
	o, err = outcomeOf(before, after, result.Elapsed)
	o.result = result
	return o, err
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
		_ = s.Wait(time.Second)
	}
	if !s.Alive() {
		return s.EndedError("while it was being looked at")
	}
	return err
}
