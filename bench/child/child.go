// Package child starts programs beside this one: servers, load generators, perf
// and strace. None of them outlives this process, however it ends.
package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Child is a process of its own, in a process group of its own, so that Ctrl-C
// reaches it through this process only. The kernel kills it when this process
// dies, however that happens; the end of its context kills it too.
type Child struct {
	Name string // as it stands in errors

	cmd   *exec.Cmd
	input io.WriteCloser
	lines chan string   // its standard output; closed at its end
	ended chan struct{} // closed when it is gone

	mutex      sync.Mutex
	complaints []string      // the last lines of its standard error
	heard      chan struct{} // has a value when there is a new complaint
}

// Command is what to start.
type Command struct {
	Name  string // as it stands in errors
	Path  string
	Args  []string
	Env   []string   // variables beside those of this process
	CPUs  []int      // where it may run; none is where this process may
	Files []*os.File // its descriptors from 3 on; Start closes them here, also when it fails
}

const (
	// keptComplaints is how many lines of standard error are kept: perf stat prints its table there.
	keptComplaints = 40
	// lastWords is how many of them an obituary quotes.
	lastWords = 3
	// maxLine bounds a line of output: a result with its histogram has a few ten thousand bytes.
	maxLine = 16 << 20
)

// Start starts a child, which the caller has to End.
func Start(ctx context.Context, c Command) (*Child, error) {
	defer func() {
		for _, f := range c.Files {
			f.Close()
		}
	}()
	p := &Child{
		Name: c.Name, cmd: exec.CommandContext(ctx, c.Path, c.Args...),
		lines: make(chan string, 16), ended: make(chan struct{}), heard: make(chan struct{}, 1),
	}
	p.cmd.Cancel = p.Kill
	p.cmd.ExtraFiles = c.Files
	if len(c.Env) > 0 {
		p.cmd.Env = append(os.Environ(), c.Env...)
	}
	failed := func(err error) error { return fmt.Errorf("cannot start %s: %w", c.Name, err) }
	var err error
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, failed(err)
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, failed(err)
	}
	complaints, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, failed(err)
	}
	if err := startOn(p.cmd, c.CPUs); err != nil {
		return nil, failed(err)
	}
	var readers sync.WaitGroup
	readers.Go(func() {
		defer close(p.lines)
		scan(output, func(line string) { p.lines <- line })
	})
	readers.Go(func() { scan(complaints, p.complain) })
	go func() {
		readers.Wait()
		_ = p.cmd.Wait() // the state says it all
		close(p.ended)
	}()
	return p, nil
}

func scan(r io.Reader, take func(string)) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		take(s.Text())
	}
	// After a line that is too long the rest is dropped, so that the child never waits.
	_, _ = io.Copy(io.Discard, r)
}

func (p *Child) complain(line string) {
	p.mutex.Lock()
	p.complaints = append(p.complaints, line)
	if len(p.complaints) > keptComplaints {
		p.complaints = p.complaints[1:]
	}
	p.mutex.Unlock()
	select {
	case p.heard <- struct{}{}:
	default:
	}
}

// Output runs a command on the given CPUs until it ends, and returns the lines
// that it printed. One that ends badly is an error with the last that it said.
func Output(ctx context.Context, cpus []int, path string, args ...string) ([]string, error) {
	p, err := Start(ctx, Command{Name: filepath.Base(path), Path: path, Args: args, CPUs: cpus})
	if err != nil {
		return nil, err
	}
	defer p.End()
	lines := p.Rest()
	if ctx.Err() != nil {
		return lines, ctx.Err()
	}
	if p.State().ExitCode() != 0 {
		if len(lines) > 0 {
			return lines, fmt.Errorf("%w: %s", p.Obituary(""), lines[len(lines)-1])
		}
		return lines, p.Obituary("")
	}
	return lines, nil
}

// PID is its process id.
func (p *Child) PID() int { return p.cmd.Process.Pid }

// State is how it ended; it waits until it has. An exit code of -1 is that of
// one that a signal ended.
func (p *Child) State() *os.ProcessState {
	<-p.ended
	return p.cmd.ProcessState
}

// Say writes a line to its standard input.
func (p *Child) Say(line string) error {
	if _, err := io.WriteString(p.input, line+"\n"); err != nil {
		return p.Obituary("")
	}
	return nil
}

// Line awaits the next line of its standard output.
func (p *Child) Line(ctx context.Context, within time.Duration) (string, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case line, ok := <-p.lines:
		if !ok {
			<-p.ended
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return "", p.Obituary("")
		}
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	case <-timer.C:
		return "", fmt.Errorf("%s says nothing for %s", p.Name, within)
	}
}

// Rest is what it prints until it ends, by line.
func (p *Child) Rest() (lines []string) {
	for line := range p.lines {
		lines = append(lines, line)
	}
	<-p.ended
	return lines
}

// Complaints is what it has written to standard error, the last lines at most.
func (p *Child) Complaints() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return strings.Join(p.complaints, "\n")
}

// AwaitComplaint waits until Complaints has word in it.
func (p *Child) AwaitComplaint(ctx context.Context, word string, within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for !strings.Contains(p.Complaints(), word) {
		select {
		case <-p.heard:
		case <-p.ended:
			if strings.Contains(p.Complaints(), word) {
				return nil
			}
			return p.Obituary("")
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return fmt.Errorf("%s does not say %q within %s", p.Name, word, within)
		}
	}
	return nil
}

// Alive tells whether it still runs.
func (p *Child) Alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Await waits for its end. What it prints from now on is lost.
func (p *Child) Await(within time.Duration) error {
	// Nobody reads its output any more; a full pipe would keep it from ending.
	go func() {
		for range p.lines { //nolint:revive // drained on purpose
		}
	}()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("%s did not end within %s", p.Name, within)
	}
}

// Stop asks it with a signal to end, and waits until it has. How it ended is not
// looked at: see State.
func (p *Child) Stop(signal os.Signal, within time.Duration) error {
	_ = p.cmd.Process.Signal(signal) // it fails for one that has ended
	return p.Await(within)
}

// Obituary is the error of a child that ended when it should not have; it waits
// until it has. when says when that was, "while …" for instance, or is empty.
func (p *Child) Obituary(when string) error {
	<-p.ended
	text := fmt.Sprintf("%s (%s)", strings.TrimSpace(p.Name+" ended "+when), p.cmd.ProcessState)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if last := p.complaints[max(0, len(p.complaints)-lastWords):]; len(last) > 0 {
		text += ": " + strings.Join(last, " / ")
	}
	return errors.New(text)
}

// End kills it if it is still there, and waits until it is gone.
func (p *Child) End() {
	if p.Alive() {
		_ = p.Kill()
	}
	_ = p.Await(time.Minute)
}
