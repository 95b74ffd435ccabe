package run

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

// child is a process of its own, in a process group of its own, so that Ctrl-C
// reaches it through this process only. The kernel kills it when this process
// dies, however that happens; the end of its context kills it too.
type child struct {
	name  string
	cmd   *exec.Cmd
	input io.WriteCloser
	lines chan string   // its standard output; closed at its end
	ended chan struct{} // closed when it is gone

	mutex sync.Mutex
	last  []string // the last lines of its standard error
	state *os.ProcessState
}

// command is what to start, and on which CPUs.
type command struct {
	name string
	path string
	args []string
	cpus []int
}

// keptLines is how much of a child's standard error is kept for its obituary.
const keptLines = 3

// maxLine bounds a line of a child's output: a result with its histogram has a few ten thousand bytes.
const maxLine = 16 << 20

func start(ctx context.Context, c command) (*child, error) {
	p := &child{name: c.name, cmd: exec.CommandContext(ctx, c.path, c.args...), lines: make(chan string, 16), ended: make(chan struct{})}
	p.cmd.Cancel = p.kill
	var err error
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.name, err)
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.name, err)
	}
	complaints, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.name, err)
	}
	if err := startOn(p.cmd, c.cpus); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.name, err)
	}
	var readers sync.WaitGroup
	readers.Go(func() {
		defer close(p.lines)
		scan(output, func(line string) { p.lines <- line })
	})
	readers.Go(func() {
		scan(complaints, func(line string) {
			p.mutex.Lock()
			defer p.mutex.Unlock()
			p.last = append(p.last, line)
			if len(p.last) > keptLines {
				p.last = p.last[1:]
			}
		})
	})
	go func() {
		readers.Wait()
		_ = p.cmd.Wait() // the state says it all
		p.mutex.Lock()
		p.state = p.cmd.ProcessState
		p.mutex.Unlock()
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

// Output runs a command on the given CPUs until it ends, and returns the lines
// that it printed. One that ends badly is an error with the last that it said.
func Output(ctx context.Context, cpus []int, path string, args ...string) ([]string, error) {
	p, err := start(ctx, command{name: filepath.Base(path), path: path, args: args, cpus: cpus})
	if err != nil {
		return nil, err
	}
	defer p.end()
	var lines []string
	for line := range p.lines {
		lines = append(lines, line)
	}
	<-p.ended
	if ctx.Err() != nil {
		return lines, ctx.Err()
	}
	if p.exitCode() != 0 {
		if len(lines) > 0 {
			return lines, fmt.Errorf("%w: %s", p.obituary(""), lines[len(lines)-1])
		}
		return lines, p.obituary("")
	}
	return lines, nil
}

// say writes a line to the child's standard input.
func (p *child) say(line string) error {
	if _, err := io.WriteString(p.input, line+"\n"); err != nil {
		return p.obituary("")
	}
	return nil
}

// line awaits the next line of its output.
func (p *child) line(ctx context.Context, within time.Duration) (string, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case line, ok := <-p.lines:
		if !ok {
			<-p.ended
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return "", p.obituary("")
		}
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	case <-timer.C:
		return "", fmt.Errorf("%s says nothing for %s", p.name, within)
	}
}

func (p *child) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// await waits for the end of the process.
func (p *child) await(within time.Duration) error {
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

// obituary is the error of a child that ended when it should not have. when says
// when that was, "while …" for instance, or is empty.
func (p *child) obituary(when string) error {
	<-p.ended
	p.mutex.Lock()
	defer p.mutex.Unlock()
	text := fmt.Sprintf("%s (%s)", strings.TrimSpace(p.name+" ended "+when), p.state)
	if len(p.last) > 0 {
		text += ": " + strings.Join(p.last, " / ")
	}
	return errors.New(text)
}

// exitCode is -1 when a signal ended it.
func (p *child) exitCode() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.state.ExitCode()
}

// end kills it if it is still there, and waits until it is gone.
func (p *child) end() {
	if p.alive() {
		_ = p.kill()
	}
	_ = p.await(time.Minute)
}
