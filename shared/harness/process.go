package harness

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Patience is how long anything is waited for that must happen at last, unless it is said otherwise.
const Patience = 20 * time.Second

// Command is a program to start.
type Command struct {
	Name string // as it stands in errors; "" is the path's last element
	Path string
	Args []string
	Dir  string // where it runs; "" is where this process does

	Env      []string // variables beside those of this process
	CleanEnv bool     // without those of this process

	CPUs  []int      // where it may run; none is where this process may
	Files []*os.File // its descriptors from 3 on; Start closes them here, also when it fails
	Input bool       // Say writes to its standard input, which is empty otherwise

	// Launch, if it is not nil, starts the command in a way of its own, under ptrace(2) for instance:
	// with a process group of its own. wait waits for its end.
	Launch func(*exec.Cmd) (wait func() Exit, err error)
}

// Exit is how a process ended. *os.ProcessState is one.
type Exit interface {
	ExitCode() int  // -1 if a signal ended it
	String() string // "exit status 3", "signal: killed"
}

// Process is a process of its own, in a process group of its own, so that Ctrl-C reaches it through
// this process only. When it ends, the rest of its group is killed. The kernel kills it when this
// process dies, however that happens; the end of its context kills it too. Whoever has started it has
// to Close it, or wait for its end. Its methods may be called from any goroutine.
type Process struct {
	Name string // as it stands in errors

	pid    int
	input  io.WriteCloser // nil without
	stdout lines
	stderr tail
	reaped atomic.Bool
	ended  chan struct{}
	exit   Exit // once ended is closed
}

// lingering is how long what a process has started may go on writing to its output after its end.
const lingering = time.Second

// Start starts a process. The end of ctx kills it, so ctx is that of its whole life: not that of a
// test (t.Context), which ends before the test's cleanup.
func Start(ctx context.Context, c Command) (*Process, error) {
	defer closeAll(c.Files)
	p := &Process{Name: cmp.Or(c.Name, filepath.Base(c.Path)), ended: make(chan struct{})}
	p.stdout.changed, p.stderr.changed = make(chan struct{}), make(chan struct{})
	failed := func(err error) (*Process, error) { return nil, fmt.Errorf("cannot start %s: %w", p.Name, err) }
	if err := ctx.Err(); err != nil {
		return failed(err)
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.ExtraFiles, cmd.Env = c.Dir, c.Files, c.Env
	if c.CleanEnv && cmd.Env == nil {
		cmd.Env = []string{}
	} else if !c.CleanEnv {
		cmd.Env = append(os.Environ(), c.Env...)
	}
	// Pipes of our own and not exec's, whose Wait waits until nobody has them open any more.
	var theirs, ours []*os.File
	pipe := func() (reader, writer *os.File, err error) {
		if reader, writer, err = os.Pipe(); err == nil {
			theirs, ours = append(theirs, writer), append(ours, reader)
		}
		return reader, writer, err
	}
	defer func() { closeAll(theirs) }()
	output, writer, err := pipe()
	if err == nil {
		cmd.Stdout = writer
		_, writer, err = pipe()
		cmd.Stderr = writer
	}
	if err == nil && c.Input {
		var reader, writer *os.File
		if reader, writer, err = os.Pipe(); err == nil {
			cmd.Stdin, p.input = reader, writer
			theirs, ours = append(theirs, reader), append(ours, writer)
		}
	}
	if err != nil {
		closeAll(ours)
		return failed(err)
	}
	wait, err := launch(cmd, c)
	if err != nil {
		closeAll(ours)
		return failed(err)
	}
	p.pid = cmd.Process.Pid
	var readers sync.WaitGroup
	readers.Go(func() { _, _ = io.Copy(&p.stdout, output) })
	readers.Go(func() { _, _ = io.Copy(&p.stderr, ours[1]) })
	stop := context.AfterFunc(ctx, func() { _ = p.Kill() })
	go func() {
		p.exit = wait()
		p.reaped.Store(true)
		stop()
		_ = killGroup(p.pid) // what it has left behind of its group
		timer := time.AfterFunc(lingering, func() { closeAll(ours) })
		readers.Wait()
		timer.Stop()
		closeAll(ours)
		p.stdout.close()
		close(p.ended)
	}()
	return p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// launch starts cmd on its CPUs, in the command's own way if it has one.
func launch(cmd *exec.Cmd, c Command) (wait func() Exit, err error) {
	if c.Launch != nil {
		return c.Launch(cmd)
	}
	if err := startOn(cmd, c.CPUs); err != nil {
		return nil, err
	}
	return func() Exit {
		_ = cmd.Wait() // the state says it all
		return cmd.ProcessState
	}, nil
}

// Output is what a process that has ended has written, and how it ended.
type Output struct {
	Name           string
	Stdout, Stderr string
	Exit           Exit
}

// Run runs a command until it ends. How it ended is no error here: see [Output.Err].
func Run(ctx context.Context, c Command) (Output, error) {
	p, err := Start(ctx, c)
	if err != nil {
		return Output{}, err
	}
	<-p.ended
	return Output{Name: p.Name, Stdout: p.stdout.rest(), Stderr: p.Stderr(), Exit: p.exit}, ctx.Err()
}

// Err is nil if the exit code was 0. Else it says how it ended, with its last words.
func (o Output) Err() error {
	if o.Exit.ExitCode() == 0 {
		return nil
	}
	return endedError(o.Name, "", o.Exit, cmp.Or(strings.TrimSpace(o.Stderr), strings.TrimSpace(o.Stdout)))
}

// PID is the id of the process that was started.
func (p *Process) PID() int { return p.pid }

// Ended is closed when it is gone and its output has been read.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Alive says whether Ended is not closed yet.
func (p *Process) Alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Exit waits for its end and says how it ended.
func (p *Process) Exit() Exit {
	<-p.ended
	return p.exit
}

// ExitCode waits for its end; -1 if a signal ended it.
func (p *Process) ExitCode() int { return p.Exit().ExitCode() }

// CPUNanos waits for its end, and is the CPU time that it used, user and system, in nanoseconds; 0
// if Launch started it.
func (p *Process) CPUNanos() int64 {
	if state, ok := p.Exit().(*os.ProcessState); ok {
		return (state.UserTime() + state.SystemTime()).Nanoseconds()
	}
	return 0
}

// Signal sends it a signal; os.ErrProcessDone if it has ended.
func (p *Process) Signal(signal os.Signal) error { return p.signal(p.pid, signal) }

func (p *Process) signal(pid int, signal os.Signal) error {
	if p.reaped.Load() {
		return os.ErrProcessDone
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer process.Release()
	return process.Signal(signal)
}

// Kill ends it with its whole process group; it does not wait.
func (p *Process) Kill() error {
	if p.reaped.Load() {
		return os.ErrProcessDone
	}
	return killGroup(p.pid)
}

// Wait waits for its end.
func (p *Process) Wait(within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("%s did not end within %v", p.Name, within)
	}
}

// Stop asks it with a signal to end and waits until it has. How it ended is not looked at.
func (p *Process) Stop(signal os.Signal, within time.Duration) error {
	if err := p.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return p.Wait(within)
}

// Close kills it if it is still there, and waits until it is gone.
func (p *Process) Close() {
	_ = p.Kill()
	<-p.ended
}

// Say writes a line to its standard input, for which its command needs Input.
func (p *Process) Say(line string) error {
	if p.input == nil {
		return fmt.Errorf("%s has no standard input", p.Name)
	}
	if _, err := io.WriteString(p.input, line+"\n"); err != nil {
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
			return p.EndedError("")
		}
		return err
	}
	return nil
}

// Line waits for the next line of its standard output. One that ends instead is an [EndedError].
func (p *Process) Line(ctx context.Context, within time.Duration) (string, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		line, ok, changed := p.stdout.next()
		if ok {
			return line, nil
		}
		if changed == nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return "", p.EndedError("")
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", ctx.Err()
		case <-timer.C:
			return "", fmt.Errorf("%s says nothing for %v", p.Name, within)
		}
	}
}

// Rest waits for its end and is what it has printed that no Line has returned.
func (p *Process) Rest() string {
	<-p.ended
	return p.stdout.rest()
}

// Stderr is what it has written to standard error so far. Of more than 128 KiB the middle is missing.
func (p *Process) Stderr() string {
	text, _ := p.stderr.text()
	return text
}

// AwaitStderr waits until it has written that to standard error.
func (p *Process) AwaitStderr(ctx context.Context, what string, within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		alive := p.Alive()
		text, changed := p.stderr.text()
		switch {
		case strings.Contains(text, what):
			return nil
		case !alive:
			return p.EndedError("")
		}
		select {
		case <-changed:
		case <-p.ended:
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return fmt.Errorf("%s does not say %q within %v", p.Name, what, within)
		}
	}
}

// EndedError is the error of a process that ended when it should not have.
type EndedError struct {
	Text string // in one line
	Exit Exit
}

func (e *EndedError) Error() string { return e.Text }

// EndedError waits for its end and says how it ended, with its last words. when is "while …", for
// instance, or "".
func (p *Process) EndedError(when string) error {
	<-p.ended
	return endedError(p.Name, when, p.exit, p.Stderr())
}

func endedError(name, when string, exit Exit, words string) error {
	text := fmt.Sprintf("%s (%s)", strings.TrimSpace(name+" ended "+when), exit)
	if last := lastWords(words); last != "" {
		text += ": " + last
	}
	return &EndedError{text, exit}
}

// lastWords are the last lines of a text in one. A Go program that crashes says why at the beginning
// of its last words.
func lastWords(text string) string {
	const most, longest = 3, 300
	kept := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range kept {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			kept = kept[i : i+1]
			break
		}
	}
	last := strings.Join(kept[max(0, len(kept)-most):], " / ")
	if len(last) > longest {
		last = last[:longest] + "…"
	}
	return last
}

// lines is standard output, a line at a time. It takes whatever comes: the process never waits for
// somebody to read.
type lines struct {
	mutex   sync.Mutex
	held    []byte
	ended   bool
	dropped bool          // nobody reads any more
	changed chan struct{} // closed and replaced at each change
}

func (l *lines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if !l.dropped {
		l.held = append(l.held, p...)
		l.wake()
	}
	return len(p), nil
}

func (l *lines) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *lines) close() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.ended = true
	l.wake()
}

// drop throws away what there is and what comes.
func (l *lines) drop() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.dropped, l.held = true, nil
}

// next is the next line. If there is none, changed tells when to look again; it is nil at the end.
func (l *lines) next() (line string, ok bool, changed <-chan struct{}) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	first, rest, ok := bytes.Cut(l.held, []byte("\n"))
	switch {
	case ok:
		l.held = rest
		return string(first), true, nil
	case !l.ended:
		return "", false, l.changed
	case len(first) == 0:
		return "", false, nil
	}
	l.held = nil
	return string(first), true, nil // the last one, without an end
}

func (l *lines) rest() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	rest := string(l.held)
	l.held = nil
	return rest
}

// tail is standard error: its beginning and its end.
type tail struct {
	mutex   sync.Mutex
	first   []byte
	last    []byte
	missing int           // bytes between them
	changed chan struct{} // closed and replaced at each change
}

// keptBytes is how much is kept of the beginning, and of the end.
const keptBytes = 64 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	n := min(len(p), keptBytes-len(t.first))
	t.first = append(t.first, p[:n]...)
	t.last = append(t.last, p[n:]...)
	if over := len(t.last) - keptBytes; over > 0 {
		t.missing += over
		t.last = append(t.last[:0], t.last[over:]...)
	}
	close(t.changed)
	t.changed = make(chan struct{})
	return len(p), nil
}

func (t *tail) text() (text string, changed <-chan struct{}) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	text = string(t.first)
	if t.missing > 0 {
		text += fmt.Sprintf("\n… %d bytes …\n", t.missing)
	}
	return text + string(t.last), t.changed
}
