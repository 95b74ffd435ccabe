package hostile

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	soakTime    = flag.Duration("soak", time.Second, "how long the soak test lasts")
	churnTime   = flag.Duration("churn", 2*time.Second, "how long connections come and go at random")
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
		{"readers that stall", stalledReaders},
		{"churn", churn},
		{"refused uploads", refusedUploads},
		{"uploads that curl sees refused", refusedUploadsOfCurl},
		{"descriptors exhausted, with a queue", exhausted},
		{"descriptors exhausted, one acceptor", exhaustedWithAcceptor},
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
