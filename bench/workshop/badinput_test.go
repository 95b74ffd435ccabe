package workshop

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Bad code is told apart from wrong code: a clear line in good time, and no process left.
func TestBadServers(t *testing.T) {
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
