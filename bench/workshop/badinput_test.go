package workshop

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// Bad code is told apart from wrong code: a clear line in good time, and no process left.
func TestBadServers(t *testing.T) {
	testenv.Slow(t)
	requireLinux(t)
	root := testRoot(t)
	const plainMain = "package main\n\nimport \"github.com/qps-ladder/qps-ladder/shared/serve\"\n\nfunc main() {\n\tserve.Main(serve.StageName(), newServer)\n}\n"
	for name, c := range map[string]struct{ file, text, says string }{
		"does not build":      {"server.go", "package main\n\nfunc newServer() { nothing() }\n", "undefined: nothing"},
		"hangs at its start":  {"main.go", "package main\n\nfunc main() { select {} }\n\nvar _ = newServer\n", "ready"},
		"ends at once":        {"main.go", "package main\n\nimport \"os\"\n\nfunc main() {\n\tos.Stderr.WriteString(\"no, thanks\\n\")\n\tos.Exit(3)\n}\n\nvar _ = newServer\n", "no, thanks"},
		"panics":              {"zz.go", "package main\n\nfunc init() { panic(\"not today\") }\n", "not today"},
		"opens another port":  {"zz.go", "package main\n\nimport \"net/http\"\n\nfunc init() { go http.ListenAndServe(\"127.0.0.1:0\", nil) }\n", "listens on port"},
		"forks":               {"zz.go", "package main\n\nimport \"os/exec\"\n\nfunc init() { exec.Command(\"sleep\", \"250\").Start() }\n", "started another process"},
		"forks and goes away": {"zz.go", "package main\n\nimport (\n\t\"os/exec\"\n\t\"syscall\"\n)\n\nfunc init() {\n\tc := exec.Command(\"sleep\", \"251\")\n\tc.SysProcAttr = &syscall.SysProcAttr{Setsid: true}\n\tc.Start()\n}\n", "started another process"},
		"never answers":       {"conn.go", "", "nothing came for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := readFiles(filepath.Join(root, "stage1-reuseport"))
			require.NoError(t, err)
			f[c.file] = []byte(c.text)
			if name == "never answers" {
				f["main.go"] = []byte(plainMain)
				own, err := readFiles(filepath.Join(root, "stage1-reuseport"))
				require.NoError(t, err)
				text := strings.Replace(string(own["conn.go"]), "func (c *conn) ready() {\n", "func (c *conn) ready() {\n\tfor {\n\t}\n", 1)
				require.NotEqual(t, string(own["conn.go"]), text)
				f["conn.go"] = []byte(text)
			}
			binary, err := f.buildIn(t.Context(), root, t.TempDir(), "bad-server")
			var wontBuild *harness.BuildError
			if errors.As(err, &wontBuild) {
				require.Contains(t, err.Error(), c.says)
				return
			}
			require.NoError(t, err)
			began := time.Now()
			subject := &grade.Subject{Binary: binary, Context: t.Context()}
			err = subject.Inspect()
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "\n")
			require.Less(t, time.Since(began), 30*time.Second, "a learner waits for it")
			require.Empty(t, processesOf(t, binary), "no process is left")
			require.Empty(t, processesOf(t, "sleep\x00250"))
			require.Empty(t, processesOf(t, "sleep\x00251"))
		})
	}
}

// processesOf are the processes whose command line begins with that.
func processesOf(t *testing.T, line string) (found []string) {
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil && bytes.HasPrefix(text, []byte(line)) {
			found = append(found, path)
		}
	}
	return found
}

func TestSourceRules(t *testing.T) {
	for name, c := range map[string]struct{ code, says string }{
		"fine":            {"import \"strings\"\n\nvar _ = strings.Clone", ""},
		"own counters":    {"func f(l *loop) { l.counters.Requests++; l.counters.Handoffs += 2 }", ""},
		"unsafe":          {"import \"unsafe\"\n\nvar _ unsafe.Pointer", "package unsafe is out of bounds"},
		"sockets":         {"import \"net\"\n\nvar _ net.Conn", "package net is out of bounds"},
		"x/sys":           {"import \"golang.org/x/sys/unix\"\n\nvar _ = unix.Read", "is out of bounds"},
		"cgo":             {"import \"C\"", "package C is out of bounds"},
		"the suite":       {"import \"github.com/qps-ladder/qps-ladder/shared/suite\"\n\nvar _ = suite.Cases", "is out of bounds"},
		"linkname":        {"//go:linkname now time.now\nfunc now() int", "//go:linkname is out of bounds"},
		"a counter down":  {"func f(l *loop) { l.counters.TimerfdSettimes-- }", "TimerfdSettimes counts what shared/netpoll does"},
		"a counter set":   {"func f(l *loop) { l.counters.Reads = 1 }", "Reads counts"},
		"counters anew":   {"func f(l *loop) { l.counters = netpoll.Counters{} }", "counters counts"},
		"in parentheses":  {"func f(l *loop) { (l.counters.Reads)-- }", "Reads counts"},
		"through atomic":  {"import \"sync/atomic\"\n\nfunc f(l *loop) { atomic.StoreUint64(&l.counters.Reads, 0) }", "Reads counts"},
		"by a pointer":    {"func f(l *loop) { p := &l.counters.Writes; *p-- }", "Writes counts"},
		"a copy":          {"func f(l *loop) { before := l.counters; _ = before }", "counters are not copied"},
		"a range over it": {"func f(l *loop) { for l.counters.Reads = range 3 {\n\t}\n}", "Reads counts"},
		"a line of lies":  {"//line head.go:1\nfunc f() {}", "//line is out of bounds"},
		"lines":           {"//lines of text", ""},
		"no races":        {"//go:norace\nfunc f() {}", "//go:norace is out of bounds"},
		"a tag":           {"//go:build\trace\n\nfunc f() {}", "//go:build is out of bounds"},
		"for speed":       {"//go:noinline\nfunc f() {}", ""},
		"a status":        {"import \"net/http\"\n\nvar _ = http.StatusOK", ""},
		"files by http":   {"import \"net/http\"\n\nvar _ = http.Dir(\"/proc/self\")", "http.Dir is out of bounds"},
		"the caller":      {"import \"runtime\"\n\nfunc f() { runtime.Caller(1) }", "runtime.Caller is out of bounds"},
		"who counts":      {"func f(l *loop) bool { return l.config.Admin != \"\" }", "Admin: whether somebody looks"},
		"another name":    {"import t \"time\"\n\nvar _ t.Time", "by its own name"},
		"a sleep":         {"import \"time\"\n\nfunc f() { time.Sleep(1) }", "lets all its clients wait"},
		"a wait":          {"import \"time\"\n\nfunc f() { <-time.After(1) }", "lets all its clients wait"},
		"a println":       {"func f() { println(1) }", "println writes into what the server says"},
		"no poison":       {"func f(c *config) { c.Poison = false }", "Poison is for the graders"},
		"counters preset": {"var _ = netpoll.Counters{Reads: 7}", "counters begin at zero"},
	} {
		problems := sourceRules("own.go", []byte("package main\n\n"+c.code+"\n"), nil)
		if c.says == "" {
			require.Empty(t, problems, name)
			continue
		}
		require.NotEmpty(t, problems, name)
		require.Contains(t, problems[0], c.says, name)
		require.Contains(t, problems[0], "own.go:", name)
	}
}

func TestCountersOfItsOwn(t *testing.T) {
	start := files{"loop.go": []byte("package main\n\ntype loop struct{ counters netpoll.Counters }\n\nfunc f(*netpoll.Counters) { f(new(netpoll.Counters)) }\n")}
	require.Equal(t, 2, countersMade(start))
	more := files{"loop.go": start["loop.go"], "new.go": []byte("package main\n\nvar other (netpoll.Counters)\n")}
	require.Equal(t, 3, countersMade(more))
	e := &Exercise{Files: []string{"loop.go"}}
	require.Empty(t, e.rules(t.TempDir(), start, start))
	require.Contains(t, e.rules(t.TempDir(), more, start)[0].Text, "a set of counters of its own")
}

// knows is code by which a server knows that its system calls are watched, proc_pid_status(5). No
// solution may read it; one that goes by the time that a call takes knows it as well.
const knows = `package main

import (
	"os"
	"strings"
)

var watched = func() bool {
	text, _ := os.ReadFile("/proc/self/status")
	return !strings.Contains(string(text), "TracerPid:\t0\n")
}()
`

// A server that does its work in another way while nobody looks, and one that lets time pass: what
// the exercise counts is in order, and the checks beside it find them.
func TestOtherwiseUnwatched(t *testing.T) {
	requireLinux(t)
	testenv.Slow(t)
	root := testRoot(t)
	for name, c := range map[string]struct {
		exercise, against  string
		file, before, then string
		holds              grade.Check // of what is watched, if any
		check              grade.Check
		finds, says        string
	}{
		"hops": {
			exercise: "13", against: onStart,
			file: "layers.go", before: "	// The layer may have to wait", then: `	if watched {
		if !l.enter(number, request, response) {
			l.through(number+1, request, response)
			l.leave(number, request, response)
		}
		return
	}
	// The layer may have to wait`,
			holds: grade.Check{Figure: "futex calls", Of: "hello", AtMost: new(1.0)},
			check: grade.Check{Behaviour: "never-waits"}, finds: "never-waits", says: "a loop's thread sleeps",
		},
		"large reads": {
			exercise: "19", file: "conn.go", before: "if c.start == c.end {\n		// Most", then: "if watched && c.start == c.end {\n		// Most",
			holds: grade.Check{Behaviour: "small-first"},
			check: grade.Check{Figure: "reads", Of: "browser", AtMost: new(2.05)}, finds: "the same unwatched", says: "reads of browser are 1.00 per request, and 2.0",
		},
		"files in memory": {
			exercise: "15", file: "response.go", before: "f.open {\n		c.respondFile(f, response, bodiless)\n		return\n	}", then: `f.open && watched {
		c.respondFile(f, response, bodiless)
		return
	} else if f.open {
		body := make([]byte, f.left)
		if readFile(new(netpoll.Counters), f.descriptor, body, f.offset) != nil {
			panic("no file")
		}
		f.close(&c.loop.counters)
		response.Body, response.Stable = body, true
	}`,
			check: grade.Check{Figure: "bytes sent from memory", Of: "small files", AtMost: new(512.0)}, finds: "the same unwatched", says: "writes of small files are 1.00 per request, and 2.0",
		},
		"a circle": {
			exercise: "8", file: "conn.go", before: "	c.takeTurn()\n}", then: "	for began := time.Now(); time.Since(began) < 3*time.Millisecond; {\n	}\n	c.takeTurn()\n}",
			check: grade.Check{Behaviour: "never-waits"}, finds: "never-waits", says: "of a CPU",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := exercise(root, c.exercise)
			require.NoError(t, err)
			if c.against == "" {
				c.against = "reference"
			}
			f, err := filesOf(root, e.variant(c.against))
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(f[c.file]), c.before))
			f[c.file] = []byte(strings.Replace(string(f[c.file]), c.before, c.then, 1))
			f["knows.go"] = []byte(knows)
			binary, err := f.buildIn(t.Context(), root, t.TempDir(), "otherwise")
			require.NoError(t, err)
			subject := &grade.Subject{Binary: binary, Context: t.Context(), Seed: 1}
			if c.holds.Name() != "" {
				require.True(t, subject.Run(c.holds)[0].Holds, "what is watched is in order")
			}
			found := subject.Run(c.check)
			i := slices.IndexFunc(found, func(f grade.Finding) bool { return f.Check == c.finds })
			require.NotEqual(t, -1, i, "%v", found)
			require.False(t, found[i].Holds)
			require.Contains(t, found[i].Text, c.says)
		})
	}
}
