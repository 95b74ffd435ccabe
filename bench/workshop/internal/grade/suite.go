package grade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/qps-ladder/qps-ladder/shared/suite"
)

func init() {
	suiteCheck("head-deadline", "a head that does not come to its end is answered 408", "head timeout")
	suiteCheck("busy-stays", "a connection in use outlives the idle timeout", "idle timeout of a connection in use")
	suiteCheck("port-taken", "a port that somebody else has is refused, with exit code 1", "port taken")
	suiteCheck("date", "the Date is right to the second, and stays so", "date")
}

// suiteCheck registers a check of the common suite as a behaviour.
func suiteCheck(name, description, check string) {
	all := suite.CommonChecks()
	i := slices.IndexFunc(all, func(c suite.Check) bool { return c.Name == check })
	if i < 0 {
		panic("the suite has no check " + check)
	}
	behaviour(name, description, func(s *Subject) error {
		_, _, err := s.check(s.Binary, all[i:i+1])
		return err
	})
}

// racy are those checks of the common suite that have several clients and loops meet, and do not go
// by the clock: the race detector makes a server slow.
var racy = []string{"flags that must not matter", "pipelining", "resets", "dropped connections", "stop with requests under way"}

// noRaces runs them once against a build with the race detector. Where there is no C compiler it
// says so.
func noRaces(s *Subject) error {
	if compiler, err := exec.CommandContext(s.Context, "go", "env", "CC").Output(); err == nil {
		if words := strings.Fields(string(compiler)); len(words) > 0 {
			if _, err := exec.LookPath(words[0]); err != nil {
				s.note("the race detector was not asked: it needs a C compiler, as gcc")
				return nil
			}
		}
	}
	binary, err := s.Build("-race")
	if err != nil {
		return fmt.Errorf("cannot build it with the race detector: %w", err)
	}
	checks := slices.DeleteFunc(suite.CommonChecks(), func(c suite.Check) bool { return !slices.Contains(racy, c.Name) })
	if len(checks) != len(racy) {
		panic("the suite has other checks")
	}
	folder, err := os.MkdirTemp("", "ladder-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	_, _, err = s.check(binary, checks, "GORACE=log_path="+filepath.Join(folder, "race"))
	if places := racesIn(folder); len(places) > 0 {
		return fmt.Errorf("two threads use the same memory, and nothing keeps them apart: %s", strings.Join(places, " and "))
	}
	return err
}

// racesIn are the places of the first report of the race detector in a folder, the first of the
// server's own for each side: "head.go:47".
func racesIn(folder string) (places []string) {
	reports, _ := filepath.Glob(filepath.Join(folder, "race.*"))
	for _, report := range reports {
		text, _ := os.ReadFile(report)
		wanted := false
		for line := range strings.Lines(string(text)) {
			at, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case strings.Contains(line, " at 0x") && strings.Contains(line, " by "):
				wanted = true // a read or a write, with its stack
			case strings.TrimSpace(line) == "":
				wanted = false
			case wanted && strings.Contains(at, "/"+workFolder+"/"):
				places, wanted = append(places, filepath.Base(at)), false
			}
			if len(places) == 2 {
				return places
			}
		}
	}
	return places
}

// workFolder is the folder that learners' code is built in.
const workFolder = "work"

// CommonSuite runs the suite that every stage passes. It ends at the first check that fails: each further
// one might wait for an answer that does not come.
func (s *Subject) CommonSuite() Finding {
	f := Finding{Check: "common suite", Look: "shared/suite; its cases are in shared/suite/testdata"}
	passed, failed, err := s.check(s.Binary, suite.CommonChecks())
	switch {
	case s.Context.Err() != nil:
		f.Text = "the common suite: " + context.Cause(s.Context).Error()
	case err != nil:
		f.Text = fmt.Sprintf("the common suite: it ends at a test that fails, which is\n%s\n%s", failed, err)
	default:
		f.Holds = true
		f.Text = fmt.Sprintf("the common suite: %d tests, as every stage passes them", passed)
	}
	return f
}

// check runs checks of the suite against a build of the server, at most some at a time, and says
// how many parts of them have passed, or which has failed first, and how.
func (s *Subject) check(binary string, checks []suite.Check, env ...string) (passed int, failed string, err error) {
	life, end := context.WithCancel(s.Context)
	defer end()
	mark := NewMark()
	defer EndMarked(mark)
	r := &run{slots: make(chan struct{}, 8), end: end}
	root := &part{run: r, over: make(chan struct{})}
	p := suite.Program{Path: binary, Stage: filepath.Base(binary), Env: append(env, mark), Life: life}
	for _, c := range checks {
		root.Run(c.Name, func(t suite.T) {
			t.Parallel()
			c.Run(t, p)
		})
	}
	close(root.over)
	root.parts.Wait()
	if r.err == nil && s.Context.Err() != nil {
		r.err = context.Cause(s.Context)
	}
	return r.passed, r.failed, r.err
}

// run is what all parts of one run have in common.
type run struct {
	slots chan struct{} // one for each part that may run beside others
	end   func()        // ends all servers

	mutex  sync.Mutex
	passed int    // parts that have no parts themselves
	failed string // the first that failed
	err    error  // and how
}

func (r *run) over() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.err != nil
}

// part is a check of the suite, or a part of one: a [suite.T] that behaves as a *testing.T does.
type part struct {
	*run
	name     string
	above    *part
	over     chan struct{} // closed when its function has returned: then its parallel parts begin
	detached chan struct{} // closed when whoever has called Run may go on
	parallel bool
	parts    sync.WaitGroup

	mutex    sync.Mutex
	failed   bool
	cleanUps []func()
	inner    bool // it has parts
}

// Run implements [suite.T].
func (p *part) Run(name string, f func(suite.T)) bool {
	p.inner = true
	if p.run.over() {
		return false
	}
	c := &part{run: p.run, name: strings.TrimPrefix(p.name+"/"+name, "/"), above: p, over: make(chan struct{}), detached: make(chan struct{})}
	p.parts.Add(1)
	go c.do(f)
	<-c.detached
	return !c.hasFailed()
}

func (p *part) do(f func(suite.T)) {
	defer p.above.parts.Done()
	defer func() {
		if p.parallel {
			<-p.slots
		} else {
			defer close(p.detached)
		}
		close(p.over)
		p.parts.Wait()
		for _, f := range slices.Backward(p.cleanUps) {
			f()
		}
		if !p.inner && !p.hasFailed() {
			p.run.mutex.Lock()
			p.passed++
			p.run.mutex.Unlock()
		}
	}()
	defer func() {
		if r := recover(); r != nil {
			p.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	f(p)
}

// Parallel implements [suite.T].
func (p *part) Parallel() {
	p.parallel = true
	close(p.detached)
	<-p.above.over
	p.slots <- struct{}{}
	if p.run.over() {
		runtime.Goexit()
	}
}

// Errorf implements [suite.T]. What comes behind the first failure comes of it: the servers are ended.
func (p *part) Errorf(format string, arguments ...any) {
	p.mutex.Lock()
	p.failed = true
	p.mutex.Unlock()
	p.run.mutex.Lock()
	defer p.run.mutex.Unlock()
	if p.run.err == nil {
		p.run.failed, p.run.err = p.name, errors.New(inPlainWords(fmt.Sprintf(format, arguments...)))
		p.end()
	}
}

func (p *part) hasFailed() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.failed
}

// FailNow implements [suite.T].
func (p *part) FailNow() { runtime.Goexit() }

// Cleanup implements [suite.T].
func (p *part) Cleanup(f func()) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.cleanUps = append(p.cleanUps, f)
}

// TempDir implements [suite.T].
func (p *part) TempDir() string {
	folder, err := os.MkdirTemp("", "ladder-")
	if err != nil {
		p.Errorf("%v", err)
		p.FailNow()
	}
	p.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// Skipf implements [suite.T].
func (p *part) Skipf(string, ...any) { runtime.Goexit() }

// Helper implements [suite.T].
func (p *part) Helper() {}

// Logf implements [suite.T].
func (p *part) Logf(string, ...any) {}

// inPlainWords keeps of what testify says, which is paragraphs with a heading each, what is about the
// server: what was wrong, and the message of the check.
func inPlainWords(text string) string {
	const most = 5
	var kept []string
	heading := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for _, h := range []string{"Error Trace:", "Error:", "Test:", "Messages:"} {
			if rest, ok := strings.CutPrefix(line, h); ok {
				heading, line = h, strings.TrimSpace(rest)
			}
		}
		if line == "" || line == "Received unexpected error:" || heading == "Error Trace:" || heading == "Test:" || len(kept) == most {
			continue
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}
