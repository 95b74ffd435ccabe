package suite

import (
	"flag"
	"os"
	"runtime"
	"testing"

	"github.com/qps-ladder/qps-ladder/shared/serve"
)

// serveVariable, when set in the environment, makes a test binary the server that it tests.
const serveVariable = "QPS_LADDER_SUITE_SERVE"

// parallelTests is how many tests run at a time unless -parallel says otherwise. They wait for
// another process most of the time, so the number of CPUs, go test's default, is too few.
const parallelTests = "8"

// Main is for a stage's TestMain, and does not return. In the test binary that go test started it runs
// the tests; in one that [Start] started again it serves, with the arguments that Start gave it.
func Main(m *testing.M, stage string, f serve.Factory) {
	if os.Getenv(serveVariable) != "" {
		os.Unsetenv(serveVariable)
		dieWithParent()
		serve.Main(stage, f)
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", parallelTests)
	}
	os.Exit(m.Run())
}

// requireLinux skips the test where no stage can run.
func requireLinux(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the servers need Linux: there is no epoll here")
	}
}
