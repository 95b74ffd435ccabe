package suite

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Behaviour tests what a single exchange cannot show: many requests, large bodies, rude clients, deadlines,
// limits, and how a server starts and stops.
func Behaviour(t *testing.T) {
	t.Parallel()
	onTest, p := ofTest(t)
	runAll(onTest, p, behaviour)
}

var behaviour = []Check{
	{"ready line", readyLine},
	{"flags that must not matter", flagsThatMustNotMatter},
	{"keep-alive", keepAlive},
	{"pipelining", pipelining},
	{"pipelining without reading", pipeliningWithoutReading},
	{"expect", expectContinue},
	{"large bodies", largeBodies},
	{"large answers", largeAnswers},
	{"half-close", halfClose},
	{"many connections", manyConnections},
	{"date", date},
	{"panic", panicRoute},
	{"resets", resets},
	{"dropped connections", droppedConnections},

	{"close at once", closeAtOnce},
	{"lingering close", lingeringClose},
	{"lingering close, time", lingerTimeout},
	{"linger timeout after a timeout", lingerAfterTimeout},
	{"lingering close, size", lingerLimit},
	{"idle timeout", idleTimeout},
	{"idle timeout of a connection in use", idleTimeoutInUse},
	{"idle timeout after a longer wait", idleTimeoutAfterLongerWait},
	{"head timeout", headTimeout},
	{"body timeout", bodyTimeout},
	{"body timeout of a body that moves", bodyTimeoutOfMovingBody},
	{"body total timeout", bodyTotalTimeout},
	{"write timeout", writeTimeout},
	{"write timeout of a slow reader", writeTimeoutOfSlowReader},
	{"write total timeout", writeTotalTimeout},

	{"most connections", mostConnections},
	{"descriptors exhausted", descriptorsExhausted},

	{"stop", stopIdle},
	{"stop by interrupt", stopByInterrupt},
	{"stop with requests under way", stopWithRequests},
	{"stop behind a long answer", stopBehindLongAnswer},
	{"stop before the end of input", stopBeforeEndOfInput},
	{"stop within grace", stopWithinGrace},
	{"start again at once", startAgain},
	{"port taken", portTaken},
	{"bad flags", badFlags},
}

func readyLine(t T, p Program) {
	s := p.Start(t, "-workers", "3")
	require.Equal(t, p.Stage, s.Ready.Stage, "the stage is called after its folder")
	require.Equal(t, s.Process.PID(), s.Ready.PID)
	require.Equal(t, 3, s.Ready.Workers)
	require.Positive(t, s.Ready.GoMaxProcs)
	require.Equal(t, s.Ready.Stage, s.Counters(t).Stage)
	s.expectServed(t)
}

func flagsThatMustNotMatter(t T, p Program) {
	for _, flags := range []string{"-workers=1", "-workers=5", "-acceptor", "-acceptor -workers=3", "-pin", "-pin -workers=3"} {
		s := p.Start(t, strings.Fields(flags)...)
		var open []*client
		for range 20 {
			c := dial(t, s)
			c.hello(t)
			open = append(open, c)
		}
		for _, c := range open {
			c.hello(t)
		}
		s.stopWith(t, open)
	}
}

func keepAlive(t T, p Program) {
	s := p.Start(t)
	c := dial(t, s)
	for i := range 200 {
		c.hello(t)
		c.send(t, fmt.Sprintf("GET /users/%d HTTP/1.1\r\nHost: a\r\n\r\n", i))
		c.expect(t, user(i))
		c.send(t, fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n%06d", i))
		c.expect(t, echoed(fmt.Sprintf("%06d", i)))
	}
	reading := s.AwaitRequests(t, 600)
	require.EqualValues(t, 600, reading.Total.Requests)
	require.EqualValues(t, 1, reading.Total.Connections)
}

func user(i int) Expected {
	return Expected{Status: 200, Type: "application/json", Body: fmt.Sprintf(`{"id":"%d"}`, i)}
}

func echoed(body string) Expected {
	return Expected{Status: 200, Type: "application/octet-stream", Body: body}
}

func someBytes(n int) Expected {
	return Expected{Status: 200, Type: "application/octet-stream", Length: n}
}

func pipelining(t T, p Program) {
	s := p.Start(t)
	for _, n := range []int{16, 1000} {
		e := exchange{}
		var all strings.Builder
		for i := range n {
			switch i % 3 {
			case 0:
				fmt.Fprintf(&all, "GET /users/%d HTTP/1.1\r\nHost: a\r\n\r\n", i)
				e.answers = append(e.answers, user(i))
			case 1:
				fmt.Fprintf(&all, "POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n%04d", i)
				e.answers = append(e.answers, echoed(fmt.Sprintf("%04d", i)))
			case 2:
				fmt.Fprintf(&all, "POST /api/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n%04d\r\n0\r\n\r\n", i)
				e.answers = append(e.answers, echoed(fmt.Sprintf("%04d", i)))
			}
		}
		e.pieces = [][]byte{[]byte(all.String())}
		require.NoError(t, e.run(s.Ready.Address), "%d requests in one piece", n)
		e.pieces = randomPieces(e.pieces[0], uint64(n))
		require.NoError(t, e.run(s.Ready.Address), "%d requests cut at random", n)
	}
}

// A client that sends everything before it reads anything: far more answers than the sockets hold.
func pipeliningWithoutReading(t T, p Program) {
	s := p.Start(t, "-write-timeout", "1h")
	c := dial(t, s)
	const requests = 1000
	c.send(t, strings.Repeat("GET /bytes/10000 HTTP/1.1\r\nHost: a\r\n\r\n", requests))
	for range requests {
		c.expect(t, someBytes(10000))
	}
	c.hello(t)
}

func expectContinue(t T, p Program) {
	s := p.Start(t)
	c := dial(t, s)
	body := strings.Repeat("0123456789abcdef", 1<<16)
	for range 3 {
		c.send(t, fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body)))
		c.expect(t, Expected{Status: 100})
		require.NoError(t, exchangeOn(c, []byte(body), echoed(body)))
	}
	c.hello(t)
}

// exchangeOn sends b while it reads the answer, as b or the answer may be more than the sockets hold.
func exchangeOn(c *client, b []byte, want Expected) error {
	sent := make(chan error, 1)
	go func() { sent <- c.Write(b) }()
	if err := c.read(want); err != nil {
		c.Close()
		<-sent
		return err
	}
	return <-sent
}

func largeBodies(t T, p Program) {
	s := p.Start(t)
	random := rand.New(rand.NewPCG(1, 2))
	body := make([]byte, 1<<20)
	for i := range body {
		body[i] = byte(random.Uint32())
	}
	declared := append([]byte("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n"), body...)
	chunked := []byte("POST /api/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	for rest := body; len(rest) > 0; {
		n := min(1+random.IntN(20_000), len(rest))
		chunked = fmt.Appendf(chunked, "%x;n=%d\r\n%s\r\n", n, n, rest[:n])
		rest = rest[n:]
	}
	chunked = append(chunked, "0\r\nX: y\r\n\r\n"...)
	for name, request := range map[string][]byte{"declared": declared, "chunked": chunked} {
		for seed := range thorough[uint64](3, 1) {
			e := exchange{pieces: randomPieces(request, seed), answers: []Expected{echoed(string(body))}}
			require.NoError(t, e.run(s.Ready.Address), "%s, seed %d", name, seed)
		}
	}
	// Another limit, and a body on a path that does not exist.
	c := dial(t, s)
	require.NoError(t, exchangeOn(c, bytes.Replace(declared, []byte("/api/echo"), []byte("/nowhere"), 1), standardError(404)))
	c.hello(t)

	small := p.Start(t, "-max-body", "10")
	c = dial(t, small)
	c.send(t, "POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789")
	c.expect(t, echoed("0123456789"))
	c.send(t, "POST /api/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n012345678\r\n2\r\n")
	c.expect(t, Refusal(413))
	c.expectEnd(t)
}

func largeAnswers(t T, p Program) {
	s := p.Start(t, "-write-timeout", "1h")
	c := dial(t, s)
	get := func(n int) []byte {
		c.send(t, fmt.Sprintf("GET /bytes/%d HTTP/1.1\r\nHost: a\r\n\r\n", n))
		answer, err := c.answer(false)
		require.NoError(t, err)
		require.NoError(t, someBytes(n).Check(answer))
		return answer.Body
	}
	all := get(maxAnswerBody)
	for _, n := range []int{1, 100, 65536, 1 << 20} {
		require.True(t, bytes.Equal(all[:n], get(n)), "the answer of %d bytes is not the beginning of the largest one", n)
	}
	// Two of them and a small one, asked for at once.
	c.send(t, strings.Repeat("GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n", 2)+helloRequest)
	for range 2 {
		answer, err := c.answer(false)
		require.NoError(t, err)
		require.True(t, bytes.Equal(all, answer.Body))
	}
	c.expect(t, Hello())
}

func halfClose(t T, p Program) {
	s := p.Start(t, "-write-timeout", "1h")
	c := dial(t, s)
	c.send(t, "GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n"+helloRequest)
	require.NoError(t, c.CloseWrite())
	c.expect(t, someBytes(maxAnswerBody))
	c.expect(t, Hello())
	c.expectEnd(t)

	// More requests, and more bytes of answers, than one turn has: no event tells of the rest.
	for request, want := range map[string]Expected{
		helloRequest: Hello(),
		"GET /bytes/16384 HTTP/1.1\r\nHost: a\r\n\r\n": someBytes(16384),
	} {
		c = dial(t, s)
		c.hello(t)
		c.send(t, strings.Repeat(request, 300))
		require.NoError(t, c.CloseWrite())
		for range 300 {
			c.expect(t, want)
		}
		c.expectEnd(t)
	}

	// The end comes on its own, after the answer.
	c = dial(t, s)
	c.hello(t)
	require.NoError(t, c.CloseWrite())
	c.expectEnd(t)
	s.AwaitConnections(t, 0)
}

// The Date is that of the answer, to the second, after a rest too.
func date(t T, p Program) {
	s := p.Start(t)
	c := dial(t, s)
	for range 2 {
		for range 50 {
			sent := time.Now()
			c.send(t, helloRequest)
			answer, err := c.answer(false)
			require.NoError(t, err)
			require.NoError(t, answer.CheckDate(sent, time.Now(), 0))
		}
		// Not for an event: for the next second, in which what was formatted before is wrong.
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 5*time.Millisecond)))
	}
}

func panicRoute(t T, p Program) {
	s := p.Start(t, "-test-routes")
	s.expectLogs = true
	before := dial(t, s)
	before.hello(t)
	head := Refusal(500)
	head.Bodiless = true
	for request, want := range map[string]Expected{
		"GET /test/panic HTTP/1.1\r\nHost: a\r\n\r\n":                Refusal(500),
		"GET /test/panic HTTP/1.1\r\nHost: b\r\n\r\n" + helloRequest: Refusal(500), // nothing after it is served
		"HEAD /test/panic HTTP/1.1\r\nHost: a\r\n\r\n":               head,
	} {
		c := dial(t, s)
		c.hello(t)
		c.send(t, request)
		c.expect(t, want)
		c.expectEnd(t)
	}
	before.hello(t)
	s.expectServed(t)
	before.Close()
	s.AwaitConnections(t, 0)
	s.Stop(t)
	lines := strings.Split(strings.TrimSuffix(s.Stderr(), "\n"), "\n")
	require.Len(t, lines, 3, "one line for each panic")
	for _, line := range lines {
		require.Contains(t, line, "panicked")
		require.Contains(t, line, "/test/panic")
		require.Contains(t, line, ".go:", "the stack is in the line")
	}
}

// settled waits until the server has no connection, and no more descriptors than when it had none before. It may have fewer: the
// one that asks for the counters comes back over a connection of its own now and then.
func (s *Server) settled(t T, files int) {
	t.Helper()
	s.expectServed(t)
	reading := s.AwaitConnections(t, 0)
	require.Zero(t, reading.Total.HeldBytes, "buffers are held, but there is no connection")
	s.Await(t, fmt.Sprintf("%d open descriptors at most", files), func(harness.Reading) bool { return s.files(t) <= files })
}

// settledFiles is the number of descriptors at rest, after everything that is opened once was opened.
func (s *Server) settledFiles(t T) int {
	t.Helper()
	s.expectServed(t)
	s.AwaitConnections(t, 0)
	return s.files(t)
}

// A reset in each state of a connection costs that connection and nothing else.
func resets(t T, p Program) {
	s := p.Start(t)
	files := s.settledFiles(t)
	echo := "POST /api/echo HTTP/1.1\r\nHost: a\r\n"
	states := []struct {
		send    string
		answers []Expected // to be read before the reset
	}{
		{"", nil},
		{"\r\n", nil},
		{"GET / HT", nil},
		{helloRequest, nil},
		{helloRequest, []Expected{Hello()}},
		{helloRequest + "GET", []Expected{Hello()}},
		{echo + "Content-Length: 100\r\n\r\nabc", nil},
		{echo + "Content-Length: 100000\r\n\r\n" + strings.Repeat("a", 50_000), nil},
		{echo + "Transfer-Encoding: chunked\r\n\r\n3\r\nab", nil},
		{echo + "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n", []Expected{{Status: 100}}},
		{"GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n", nil},
		{"GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n" + helloRequest, nil},
		{strings.Repeat(helloRequest, 100), nil},
		{"GET /% HTTP/1.1\r\n", []Expected{Refusal(400)}}, // lingering
	}
	for range 5 {
		for _, state := range states {
			c, err := connect(s.Ready.Address)
			require.NoError(t, err)
			c.send(t, state.send)
			for _, want := range state.answers {
				c.expect(t, want)
			}
			c.Reset()
		}
	}
	s.settled(t, files)
}

// Connections that end anywhere in an exchange, in order and in disorder, many at a time.
func droppedConnections(t T, p Program) {
	cases, err := Cases()
	require.NoError(t, err)
	s := p.Start(t)
	files := s.settledFiles(t)
	var group sync.WaitGroup
	for worker := range uint64(4) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(3, worker))
			for range 100 {
				c, err := connect(s.Ready.Address)
				if err != nil {
					continue // what is left behind counts, not what fails here
				}
				one := cases[random.IntN(len(cases))]
				c.Write(one.Bytes[:random.IntN(min(len(one.Bytes), 20_000)+1)])
				if random.IntN(2) == 0 {
					c.Reset()
				} else {
					c.Close()
				}
			}
		})
	}
	group.Wait()
	s.settled(t, files)
}
