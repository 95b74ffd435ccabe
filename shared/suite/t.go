package suite

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// T is what a check needs of a test. [OnTest] makes one of a *testing.T; the workshop's grader is another.
// Its methods are those of *testing.T.
type T interface {
	require.TestingT
	Helper()
	Cleanup(func())
	Logf(format string, arguments ...any)
	Skipf(format string, arguments ...any)
	TempDir() string
	Parallel()
	Run(name string, f func(T)) bool
}

// OnTest is t as a T.
func OnTest(t *testing.T) T { return onTest{t} }

type onTest struct{ *testing.T }

func (t onTest) Run(name string, f func(T)) bool {
	return t.T.Run(name, func(t *testing.T) { f(onTest{t}) })
}

// Program is a server's program: a stage's binary, or a test binary with [Main].
type Program struct {
	Path string
	// Stage is what its servers call themselves: the name of the folder that it was built from.
	Stage string
	// Env are variables for its servers beside those of this process.
	Env []string
	// Life kills its servers when it ends; nil does not.
	Life context.Context
}

// ofTest is the test binary itself, and its test as a T.
func ofTest(t *testing.T) (T, Program) {
	t.Helper()
	requireLinux(t)
	testenv.SlowToo() // the go command sees that the result depends on it: what main.go has asked it did not see
	self, err := os.Executable()
	require.NoError(t, err)
	folder, err := os.Getwd()
	require.NoError(t, err)
	return OnTest(t), Program{Path: self, Stage: filepath.Base(folder)}
}

// number is that of the stage that it is.
func (p Program) number(t T) int {
	t.Helper()
	require.Regexp(t, `^stage\d`, p.Stage, "no stage's folder")
	return int(p.Stage[5] - '0')
}

// Command is the program as a server.
func (p Program) Command(args ...string) harness.Command {
	return harness.Command{Path: p.Path, Args: args, Env: append([]string{serveVariable + "=1"}, p.Env...)}
}

// Check is one part of the suite: what a server must do, held to by starting servers of a program.
type Check struct {
	Name string
	Run  func(t T, p Program)
}

// runAll runs checks as parallel parts of t, most against a server of their own.
func runAll(t T, p Program, checks []Check) {
	for _, c := range checks {
		t.Run(c.Name, func(t T) {
			t.Parallel()
			c.Run(t, p)
		})
	}
}

// CommonChecks are those that a variant of any stage must pass as well: conformance, which is many, and
// behaviour, each by its name.
func CommonChecks() []Check {
	return append([]Check{{"conformance", conformance}}, behaviour...)
}
