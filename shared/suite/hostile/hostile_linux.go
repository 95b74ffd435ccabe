package hostile

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	soakTime    = flag.Duration("soak", time.Second, "how long the soak test lasts")
	churnTime   = flag.Duration("churn", 2*time.Second, "how long connections come and go at random")
	seed        = flag.Uint64("seed", 0, "what is drawn at random follows from it; 0 draws one for each test, whose log tells it")
	connections = flag.Int("connections", 0, "how many connections are open at a time, at most; 0 leaves this test out")
)

// patience is how long a test waits for what must happen at last. Only a server that hangs takes so long.
const patience = 20 * time.Second

// Run runs all tests of the package, in parallel, against the test binary as a server.
func Run(t *testing.T) {
	for _, one := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"dribblers", dribblers},
		{"clients that never read", neverRead},
		{"many clients that never read", manyNeverRead},
		{"what is held for clients that do not read", heldForStuckClients},
		{"readers that stall", stalledReaders},
		{"slow readers", slowReaders},
		{"slow readers, default deadlines", slowReadersByDefault},
		{"slow readers, lingering close", lingerOfSlowReader},
		{"urgent bytes", urgentBytes},
		{"a greedy client", greedyClient},
		{"churn", churn},
		{"refused uploads", refusedUploads},
		{"uploads that curl sees refused", refusedUploadsOfCurl},
		{"descriptors exhausted, with a queue", exhausted},
		{"descriptors exhausted, one acceptor", exhaustedWithAcceptor},
		{"a crowd", crowded},
		{"refused in silence", refusedInSilence},
		{"refused in a crowd", refusedInACrowd},
		{"soak", soak},
		{"many connections", manyConnections},
		{"stop under load", stopUnderLoad},
		{"stop with input unread", stopWithInputUnread},
		{"restart under load", restartUnderLoad},
		{"overlap", overlap},
		{"overlap under load", overlapUnderLoad},
		{"faults", faults},
		{"faults at the start", faultsAtStart},
		{"faults under load", faultsUnderLoad},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			one.run(t)
		})
	}
}

// seedOf is what all that a test draws at random follows from: the order in which calls are made to fail, and what its clients
// do. How they interleave is up to the kernel.
func seedOf(t testing.TB) uint64 {
	t.Helper()
	drawn := *seed
	for drawn == 0 {
		drawn = rand.Uint64()
	}
	t.Logf("-seed=%d draws the same again", drawn)
	return drawn
}

// stage is the number of the stage under test, which is called after the folder that its test runs in.
func stage(t testing.TB) int {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(folder)
	if !strings.HasPrefix(name, "stage") || len(name) < 6 {
		t.Fatalf("%s is no stage's folder", name)
	}
	return int(name[5] - '0')
}
