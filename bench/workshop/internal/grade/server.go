package grade

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/witness"
)

const (
	readyLimit  = 10 * time.Second // until the ready line
	stopLimit   = 8 * time.Second  // for the graceful stop, whose own limit is five
	answerLimit = 10 * time.Second // for anything that a client waits for
)

// errNotReady is what a server that hangs at its start is told.
var errNotReady = fmt.Errorf("the server did not say that it is ready within %v, and was ended", readyLimit)

// process is a server's process, watched or not.
type process interface {
	Signal(syscall.Signal) error
	// Wait kills it after that time and answers the exit code, -1 if a signal ended it.
	Wait(time.Duration) int
	Ended() <-chan struct{}
}

// Server is a running server. Its methods may be called from several goroutines.
type Server struct {
	Addr string // where it serves

	process process
	pid     int
	admin   string
	stderr  *tail
	client  *http.Client
	mark    string  // in its environment
	record  *record // nil unless it is watched
	traced  *witness.Process
}

// tail keeps the end of what a process writes.
type tail struct {
	mutex sync.Mutex
	text  []byte
}

const tailSize = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.text = append(t.text, p...)
	if n := len(t.text) - tailSize; n > 0 {
		t.text = append(t.text[:0], t.text[n:]...)
	}
	return len(p), nil
}

func (t *tail) all() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return string(t.text)
}

// firstLine is the beginning of what is kept: where a Go program that crashes says why.
func (t *tail) firstLine() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(string(t.text)), "\n")
	if len(line) > 160 {
		line = line[:160] + "…"
	}
	return line
}

// Start starts a server on a free port with an admin listener and waits until it says that it is ready.
// The error is one line for the learner.
func Start(binary string, args ...string) (*Server, error) {
	return start(binary, false, nil, args)
}

// startIn is Start with more in the environment.
func startIn(binary string, environment []string, args ...string) (*Server, error) {
	return start(binary, false, environment, args)
}

// StartWatched is Start with the server's system calls watched, which makes it slow. It answers
// witness.ErrUnsupported or another error that is not the server's fault where that is not possible.
func StartWatched(binary string, args ...string) (*Server, error) {
	return start(binary, true, nil, args)
}

func start(binary string, watched bool, environment, args []string) (*Server, error) {
	command := exec.Command(binary, append([]string{"-addr", "127.0.0.1:0", "-admin", "127.0.0.1:0"}, args...)...)
	s := &Server{stderr: &tail{}, mark: NewMark()}
	command.Env = append(append(os.Environ(), environment...), s.mark)
	s.client = &http.Client{Timeout: answerLimit, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	command.Stderr = s.stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.launch(command, watched); err != nil {
		return nil, err
	}
	live.Lock()
	live.servers[s] = true
	live.Unlock()
	ready := make(chan string, 1)
	go func() {
		reader := bufio.NewReader(output)
		line, _ := reader.ReadString('\n')
		ready <- line
		io.Copy(io.Discard, reader)
	}()
	timer := time.NewTimer(readyLimit)
	defer timer.Stop()
	var line string
	select {
	case line = <-ready:
	case <-s.process.Ended():
		s.Kill()
		return nil, fmt.Errorf("the server ended before it was ready: %s", s.lastWords())
	case <-timer.C:
		s.Kill()
		return nil, errNotReady
	}
	if err := s.readReady(line); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

func (s *Server) launch(command *exec.Cmd, watched bool) error {
	if watched {
		s.record = newRecord()
		traced, err := witness.Start(command, s.record.observe)
		if err != nil {
			return err
		}
		s.process, s.pid, s.traced = traced, traced.PID, traced
		return nil
	}
	child, err := startChild(command)
	if err != nil {
		return fmt.Errorf("cannot start the server: %w", err)
	}
	s.process, s.pid = child, command.Process.Pid
	return nil
}

func (s *Server) readReady(line string) error {
	words := map[string]string{}
	for _, word := range strings.Fields(line) {
		name, value, _ := strings.Cut(word, "=")
		words[name] = value
	}
	s.Addr, s.admin = words["addr"], words["admin"]
	if pid, _ := strconv.Atoi(words["pid"]); !strings.HasPrefix(line, "ready ") || pid != s.pid || s.Addr == "" || s.admin == "" {
		if line == "" {
			s.process.Wait(time.Second) // it is about to end; its last words may come after the end of its output
		}
		return fmt.Errorf("the server printed %q instead of its ready line; %s", strings.TrimSpace(line), s.lastWords())
	}
	return nil
}

func (s *Server) lastWords() string {
	if line := s.stderr.firstLine(); line != "" {
		return "it said: " + line
	}
	return "it said nothing on standard error"
}

// live are the servers that have been started and not yet been killed.
var live = struct {
	sync.Mutex
	servers map[*Server]bool
}{servers: map[*Server]bool{}}

// EndAll kills every server that runs, so that whoever waits for one need not any longer. It may be called
// from any goroutine.
func EndAll() {
	live.Lock()
	defer live.Unlock()
	for s := range live.servers {
		s.process.Signal(syscall.SIGKILL)
	}
}

// Kill ends the server and all that it started, at once. It must be called for each, also after Stop.
func (s *Server) Kill() {
	live.Lock()
	delete(live.servers, s)
	live.Unlock()
	s.process.Signal(syscall.SIGKILL)
	s.process.Wait(time.Second)
	EndMarked(s.mark)
	s.client.CloseIdleConnections()
}

// Stop asks the server to stop and says what is wrong with how it does.
func (s *Server) Stop() error {
	s.client.CloseIdleConnections()
	if err := s.process.Signal(syscall.SIGTERM); err != nil {
		s.process.Wait(0)
		return fmt.Errorf("the server ended by itself; %s", s.lastWords())
	}
	if code := s.process.Wait(stopLimit); code == -1 {
		return fmt.Errorf("the server did not stop when it was told to (SIGTERM), and was killed after %v", stopLimit)
	} else if code != 0 {
		return fmt.Errorf("the server ended with exit code %d; %s", code, s.lastWords())
	}
	if n := EndMarked(s.mark); n > 0 {
		return fmt.Errorf("the server left %d %s of its own behind, which were ended", n, plural(n, "process"))
	}
	return nil
}

// reading is what the admin listener says at one moment.
type reading struct {
	Loops   []map[string]int64 `json:"loops"`
	Total   map[string]int64   `json:"total"`
	Runtime map[string]int64   `json:"runtime"`
}

func (s *Server) read() (r reading, err error) {
	body, err := s.adminGet("/debug/counters")
	if err == nil {
		err = json.Unmarshal(body, &r)
	}
	if err != nil {
		return r, fmt.Errorf("cannot read the server's counters: %w", err)
	}
	return r, nil
}

func (s *Server) adminGet(path string) ([]byte, error) {
	answer, err := s.client.Get("http://" + s.admin + path)
	if err != nil {
		select {
		case <-s.process.Ended():
			return nil, fmt.Errorf("the server ended; %s", s.lastWords())
		default:
			return nil, err
		}
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// await reads the counters until they are as wanted, or for as long as a client would wait.
func (s *Server) await(wanted func(reading) bool) (reading, bool) {
	for end := time.Now().Add(answerLimit); ; {
		r, err := s.read()
		if err == nil && wanted(r) {
			return r, true
		}
		if err != nil || time.Now().After(end) {
			return r, false
		}
		time.Sleep(2 * time.Millisecond)
	}
}
