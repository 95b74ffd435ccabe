package profile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// endLimit is how long a process may take to end by itself.
const endLimit = 20 * time.Second

// A process runs beside this one, in a group of its own, so that Ctrl-C reaches
// it through this one only. It dies with this one, and with its context.
type process struct {
	name  string
	cmd   *exec.Cmd
	input io.WriteCloser
	lines chan string   // its standard output; closed at its end
	ended chan struct{} // closed when it is gone

	mutex      sync.Mutex
	complaints []string      // the last lines of its standard error
	heard      chan struct{} // has a value when there is a new complaint
}

// command is what to start, with which variables beside those of this process,
// and on which CPUs (none: those of this process).
type command struct {
	name  string
	path  string
	args  []string
	env   []string
	cpus  []int
	files []*os.File // its descriptors from 3 on; closed here once it has them
}

const (
	keptComplaints = 40
	maxLine        = 16 << 20 // a result with its histogram has some ten thousand bytes
)

func start(ctx context.Context, c command) (*process, error) {
	p := &process{name: c.name, cmd: exec.CommandContext(ctx, c.path, c.args...), lines: make(chan string, 16), ended: make(chan struct{}), heard: make(chan struct{}, 1)}
	p.cmd.Cancel = p.kill
	p.cmd.ExtraFiles = c.files
	if len(c.env) > 0 {
		p.cmd.Env = append(os.Environ(), c.env...)
	}
	defer func() {
		for _, f := range c.files {
			f.Close()
		}
	}()
	failed := func(err error) error { return fmt.Errorf("cannot start %s: %w", c.name, err) }
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
	if err := startOn(p.cmd, c.cpus); err != nil {
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
		_ = p.cmd.Wait() // its state says it all
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
	// Behind a line that is too long the rest is dropped, so that nobody waits for ever.
	_, _ = io.Copy(io.Discard, r)
}

func (p *process) complain(line string) {
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

// text is what it has written to standard error, the last lines at most.
func (p *process) text() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return strings.Join(p.complaints, "\n")
}

// awaitText waits until text has word in it.
func (p *process) awaitText(ctx context.Context, word string, within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for !strings.Contains(p.text(), word) {
		select {
		case <-p.heard:
		case <-p.ended:
			if strings.Contains(p.text(), word) {
				return nil
			}
			return p.obituary()
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return fmt.Errorf("%s does not say %q within %s", p.name, word, within)
		}
	}
	return nil
}

// line awaits the next line of its standard output.
func (p *process) line(ctx context.Context, within time.Duration) (string, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case line, ok := <-p.lines:
		if ok {
			return line, nil
		}
		<-p.ended
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", p.obituary()
	case <-ctx.Done():
		return "", ctx.Err()
	case <-timer.C:
		return "", fmt.Errorf("%s says nothing for %s", p.name, within)
	}
}

// say writes a line to its standard input.
func (p *process) say(line string) error {
	_, err := io.WriteString(p.input, line+"\n")
	return err
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// stop sends it a signal and waits until it has ended; its exit code is not
// looked at.
func (p *process) stop(signal syscall.Signal) error {
	_ = p.cmd.Process.Signal(signal) // it fails for one that has ended
	return p.await(endLimit)
}

func (p *process) await(within time.Duration) error {
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
		return fmt.Errorf("%s did not end within %s", p.name, within)
	}
}

// end kills it if it is still there, and waits until it is gone.
func (p *process) end() {
	if p.alive() {
		_ = p.kill()
	}
	_ = p.await(time.Minute)
}

// obituary is the error of one that ended when it should not have.
func (p *process) obituary() error {
	<-p.ended
	text := fmt.Sprintf("%s ended (%s)", p.name, p.cmd.ProcessState)
	if lines := strings.Fields(p.text()); len(lines) > 0 {
		text += ": " + strings.Join(lines, " ")
	}
	return errors.New(text)
}
