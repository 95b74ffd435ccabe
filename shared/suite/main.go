package suite

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/serve"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// serveVariable, when set in the environment, makes a test binary the server that it tests.
const serveVariable = "QPS_LADDER_SUITE_SERVE"

// parallelTests is how many tests run at a time unless -parallel says otherwise. They wait for
// another process most of the time, so the number of CPUs, go test's default, is too few.
const parallelTests = "8"

// How much the tests do that could go on for ever; flags of the test binary, see [Main].
var (
	soakTime    = thorough(time.Second, time.Second/4)
	churnTime   = thorough(2*time.Second, time.Second/4)
	seed        uint64
	connections = 500
)

// thorough is how much a check does where what is slow by nature is wanted (see testenv.SlowToo), or else a small part of it that
// tells of the same faults, though not of each as surely.
func thorough[N any](all, part N) N {
	if testenv.SlowToo() {
		return all
	}
	return part
}

// Main is for a stage's TestMain, and does not return. In the test binary that go test started it runs
// the tests; in one that [Start] started again it serves, with the arguments that Start gave it.
func Main(m *testing.M, stage string, f serve.Factory) {
	if os.Getenv(serveVariable) != "" {
		os.Unsetenv(serveVariable)
		harness.DieWithParent()
		if err := actAsFaulty(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		serve.Main(stage, f)
	}
	flag.DurationVar(&soakTime, "soak", soakTime, "how long the soak test lasts")
	flag.DurationVar(&churnTime, "churn", churnTime, "how long connections come and go at random")
	flag.Uint64Var(&seed, "seed", seed, "what is drawn at random follows from it; 0 draws one for each test, whose log tells it")
	flag.IntVar(&connections, "connections", connections, "how many connections are open at a time, at most, in the test of many")
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", parallelTests)
	}
	os.Exit(m.Run())
}

// requireLinux skips the test where no stage can run.
func requireLinux(t interface {
	Helper()
	Skipf(string, ...any)
}) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skipf("the servers need Linux: there is no epoll here")
	}
}

// drawSeed is what all that a test draws at random follows from: the order in which calls are made to fail, and what its clients
// do. How they interleave is up to the kernel.
func drawSeed(t T) uint64 {
	t.Helper()
	drawn := seed
	for drawn == 0 {
		drawn = rand.Uint64()
	}
	t.Logf("-seed=%d draws the same again", drawn)
	return drawn
}
