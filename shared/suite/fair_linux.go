package suite

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// What a connection may have done for it in one turn, if others wait: one of these ends it.
const (
	requestsPerTurn = 64
	bytesPerTurn    = 256 << 10
	readsPerTurn    = 16
)

// greed is what a client sends without a pause.
type greed struct {
	name    string
	request string
	answers int // requests in a turn, at most
	batch   int // how many answers go in one write from stage 4 on
}

// A client that sends request after request without waiting does not make another wait for more than a bounded number of them.
// What is counted is what the server does, by its system calls, from when the other's request lies in its socket to the answer.
func greedyClient(t T, p Program) {
	for _, g := range []greed{
		// The answer is no constant, and long: each is sent on its own at every stage.
		{"cheap requests", "GET /test/kept HTTP/1.1\r\nHost: a\r\n\r\n", requestsPerTurn, 1},
		{"requests that take long", "GET /async-middleware/10 HTTP/1.1\r\nHost: a\r\n\r\n", requestsPerTurn, 64},
		{"large answers", "GET /bytes/16384 HTTP/1.1\r\nHost: a\r\n\r\n", bytesPerTurn / 16384, 4},
		{"large requests", fmt.Sprintf("POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n%s", strings.Repeat("b", 1_000_000)), requestsPerTurn, 64},
	} {
		t.Run(g.name, func(t T) { g.test(t, p) })
	}
}

func (g greed) test(t T, p Program) {
	f := startFaulty(t, p, "-workers", "1", "-test-routes", "-idle-timeout", "1h", "-body-total-timeout", "1h", "-write-total-timeout", "1h")
	greedy, other := dial(t, f.Server), dial(t, f.Server)
	greedyFD, otherFD := f.descriptor(t, greedy), f.descriptor(t, other)

	greedy.send(t, fmt.Sprintf("GET /test/keep HTTP/1.1\r\nHost: a\r\nX-Keep: %s\r\n\r\n", strings.Repeat("k", 600)))
	require.NoError(t, greedy.read(Expected{Status: 200, Type: PlainText, Body: "kept\n"}))

	// It reads all answers, so that nothing but its turn's end can stop it.
	var greedyEnds sync.WaitGroup
	text := strings.Repeat(g.request, max(64<<10/len(g.request), 1))
	greedy.TCP.SetReadDeadline(time.Time{})
	greedyEnds.Go(func() { io.Copy(io.Discard, greedy.TCP) })
	greedyEnds.Go(func() {
		for greedy.Send(text) == nil {
		}
	})
	f.Await(t, "the greedy client to be served", func(r harness.Reading) bool { return r.Total.Requests > 2 || r.Total.Reads > 20 })

	// At most what is left of a turn, and another one; at stage 5, where an event may come for a connection that waits for a turn
	// already, a third. A turn has a write more than it has full batches when its requests come from two reads.
	turns, writes := 2, g.answers
	if p.number(t) >= 5 {
		turns = 3
	}
	if p.number(t) >= 4 && g.batch > 1 {
		writes = g.answers/g.batch + 1
	}
	var reads, written []int
	for round := range 5 {
		require.Equal(t, "ok", f.tell(t, "record"))
		f.Pause(t)
		other.send(t, helloRequest)
		// The greedy client sends meanwhile what the sockets hold.
		time.Sleep(10 * time.Millisecond)
		resumed := monotonic()
		f.Resume(t)
		other.expect(t, Hello())
		did := map[bool]int{} // by whether it sent
		answered := false
		for _, m := range f.recorded(t) {
			if m.fd == otherFD && m.send {
				answered = true
				break
			}
			if m.fd == greedyFD && m.at >= resumed {
				did[m.send]++
			}
		}
		require.True(t, answered, "the answer was not recorded")
		t.Logf("round %d: %d reads and %d writes for the greedy client before the other's answer", round, did[false], did[true])
		reads, written = append(reads, did[false]), append(written, did[true])
	}
	// The median: a server that is not fair is so in each round, one whose thread had to wait for a CPU is so in one. At stage 0
	// the other's request waits for the base loop's thread first, while the loop goes on serving.
	slices.Sort(reads)
	slices.Sort(written)
	// One more in each turn: what the socket did not take before, or the first request of another read.
	require.LessOrEqual(t, written[len(written)/2], turns*(writes+1), "writes for the greedy client while another waited")
	require.LessOrEqual(t, reads[len(reads)/2], turns*readsPerTurn, "reads for the greedy client while another waited")
	greedy.Reset() // with all that it has sent and nobody has read
	greedyEnds.Wait()
}

// descriptor is the number that the client's connection has in the server.
func (f *faulty) descriptor(t T, c *client) int {
	t.Helper()
	require.Equal(t, "ok", f.tell(t, "record"))
	c.hello(t)
	calls := f.recorded(t)
	require.NotEmpty(t, calls)
	return calls[0].fd
}
