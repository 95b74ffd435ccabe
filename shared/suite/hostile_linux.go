package suite

import "testing"

// Hostile tests a stage against what the network, its clients and its kernel do to a server that is left
// running: clients that dribble, stall, vanish or never read; stops and restarts under load; system calls
// that fail in each way that their manual pages list. What a test brings about ends with the same
// question: is the server as it was before? Descriptors, goroutines, connections, bytes held for
// connections and the heap after a collection must be back at their level at rest.
func Hostile(t *testing.T) {
	t.Parallel()
	onTest, p := ofTest(t)
	runAll(onTest, p, []Check{
		{"dribblers", dribblers},
		{"clients that never read", neverRead},
		{"many clients that never read", manyNeverRead},
		{"what is held for clients that do not read", heldForStuckClients},
		{"a large upload is let go", largeUploadLetGo},
		{"readers that stall", stalledReaders},
		{"slow readers", slowReaders},
		{"slow readers, default deadlines", slowReadersByDefault},
		{"slow readers, lingering close", lingerOfSlowReader},
		{"slow readers, idle timeout", idleOfSlowReader},
		{"urgent bytes", urgentBytes},
		{"an urgent byte behind the last request", urgentBehindLast},
		{"a greedy client", greedyClient},
		{"churn", churn},
		{"a crowd", crowded},
		{"refused in silence", refusedInSilence},
		{"refused in a crowd", refusedInACrowd},
		{"soak", soak},
		{"stop under load", stopUnderLoad},
		{"stop with input unread", stopWithInputUnread},
		{"stop with requests read", stopWithRequestsRead},
		{"restart under load", restartUnderLoad},
		{"overlap", overlap},
		{"overlap under load", overlapUnderLoad},
		{"faults", faults},
		{"faults at the start", faultsAtStart},
		{"faults under load", faultsUnderLoad},
	})
}
