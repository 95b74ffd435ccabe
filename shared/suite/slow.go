package suite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// slowReader is a client that takes its bytes slowly, and without a pause.
type slowReader struct {
	buffer int // SO_RCVBUF; 0: as large as the kernel makes it
	rate   int // bytes in a second
	echoes bool
}

func (r slowReader) String() string {
	return fmt.Sprintf("receive buffer %d, %d bytes in a second, echoes %t", r.buffer, r.rate, r.echoes)
}

// eachSlowReader has all of these with a body that the server may keep by reference, and with some that it has to copy.
func eachSlowReader(buffer int, rates ...int) (all []slowReader) {
	for _, rate := range rates {
		all = append(all, slowReader{buffer, rate, false}, slowReader{buffer, rate, true})
	}
	return all
}

// While bytes move, a deadline for a client that takes none does not pass. The kernel tells of room to send long after they have
// moved; and the client's kernel lets them come in steps, which must be more frequent than the deadline: on the loopback, of up
// to 6 KB where the receive buffer is the smallest, and of up to 128 KB where it is the usual one.
func slowReaders(t T, p Program) {
	if raceEnabled {
		// The readers are slowed down too, too much for a short deadline: here the detector alone is to see this code run.
		readSlowly(t, p, 10*time.Second, eachSlowReader(4096, 20_000), "-write-timeout", "6s")
		return
	}
	readSlowly(t, p, 3*time.Second, append(eachSlowReader(4096, 20_000, 100_000), eachSlowReader(0, 300_000, 1_000_000)...),
		"-write-timeout", "1500ms")
}

// The same with the deadlines that a server has by default, for longer than those.
func slowReadersByDefault(t T, p Program) {
	testenv.Slow(t)
	readSlowly(t, p, 25*time.Second, append(eachSlowReader(4096, 20_000, 100_000, 1_000_000), eachSlowReader(0, 20_000, 100_000, 1_000_000)...))
}

// readSlowly requires that a server cuts none of the readers off. A reader that this machine has kept from running for long has
// not read without a pause: then that attempt tells nothing, and there is another.
func readSlowly(t T, p Program, lasting time.Duration, readers []slowReader, flags ...string) {
	s := p.Start(t, flags...)
	before := levelAtRest(t, s)
	for attempt := 0; ; attempt++ {
		pause, err := readTogether(t, s, lasting, readers)
		if err == nil {
			break
		}
		require.True(t, pause > mostPause && attempt < mostAttempts, "attempt %d, longest pause of a reader %v: %v", attempt, pause, err)
		t.Logf("once more: a reader was kept waiting for %v: %v", pause, err)
	}
	nothingLeft(t, s, before)
}

const (
	// mostPause is for how long a reader may be late without that telling in a test.
	mostPause = 300 * time.Millisecond
	// mostAttempts is how often it may be later.
	mostAttempts = 8
)

// readTogether says what was wrong, and the longest time that a reader was late.
func readTogether(t T, s *Server, lasting time.Duration, readers []slowReader) (pause time.Duration, err error) {
	t.Helper()
	failures, pauses := make([]error, len(readers)), make([]time.Duration, len(readers))
	clients := make([]*client, len(readers))
	var reading, sending sync.WaitGroup
	for i, r := range readers {
		c, err := connectWith(s.Ready.Address, r.buffer)
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		c.Timeout = lasting + 2*patience
		c.TCP.SetReadDeadline(time.Now().Add(c.Timeout))
		clients[i] = c
		sending.Go(func() { c.sendAgain(r.request(), 32) }) // the server stops reading when it cannot send
		reading.Go(func() { pauses[i], failures[i] = c.takeSlowly(r, lasting) })
	}
	reading.Wait()
	// Whoever was cut off may not know yet: its end comes behind what the server's kernel still holds.
	if open := s.Counters(t).Total.Connections; open != uint64(len(readers)) {
		err = fmt.Errorf("of %d that took bytes all the time, %d are left; with more patience:\n%s", len(readers), open, remains(readers, clients))
	}
	for _, c := range clients {
		c.Reset()
	}
	sending.Wait()
	s.AwaitConnections(t, 0)
	return slices.Max(pauses), errors.Join(append(failures, err)...)
}

// request is one that, sent 32 times, is for more than the client takes in the time, and than the sockets hold.
func (r slowReader) request() string {
	if r.echoes {
		const size = 1 << 20
		return fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("e", size))
	}
	return largest
}

// takeSlowly reads for so long, at an even rate: what one read was late, the next one is early. pause is how late one was.
func (c *client) takeSlowly(r slowReader, lasting time.Duration) (pause time.Duration, err error) {
	part := make([]byte, max(r.rate/50, 1))
	taken := 0
	for start := time.Now(); time.Since(start) < lasting; {
		n, err := c.TCP.Read(part)
		if taken += n; err != nil {
			return pause, fmt.Errorf("%s: cut off after %d bytes, %v: %w", r, taken, time.Since(start).Round(time.Millisecond), err)
		}
		due := start.Add(time.Duration(taken) * time.Second / time.Duration(r.rate))
		time.Sleep(time.Until(due))
		pause = max(pause, time.Since(due))
	}
	return pause, nil
}

// remains tells what becomes of each client when it reads on as fast as it can.
func remains(readers []slowReader, clients []*client) string {
	lines := make([]string, len(clients))
	var group sync.WaitGroup
	for i, c := range clients {
		group.Go(func() {
			c.TCP.SetReadDeadline(time.Now().Add(2 * time.Second))
			n, err := io.Copy(io.Discard, c.TCP)
			what := "was served on"
			if !harness.TimedOut(err) {
				what = "was cut off"
			}
			lines[i] = fmt.Sprintf("%s: %d bytes more, %s", readers[i], n, what)
		})
	}
	group.Wait()
	return strings.Join(lines, "\n")
}

// slowAnswerLimit is a deadline for whoever takes no byte at all.
func slowAnswerLimit() time.Duration {
	if raceEnabled {
		return 6 * time.Second // the reader is slowed down too
	}
	return 700 * time.Millisecond
}

// A client that reads its last answer slowly, and sends something all the while, has all of it: the server lingers for as long as
// the answer moves. Had it closed, what still comes would reset the connection, and the rest of the answer be lost.
func lingerOfSlowReader(t T, p Program) {
	s := p.Start(t, "-linger-timeout", slowAnswerLimit().String())
	// Something behind the last request: the server cannot know that no more will come.
	s.takeSlowly(t, fmt.Sprintf("GET /bytes/%d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nx", slowBytes),
		[]Expected{closing(someBytes(slowBytes))}, func(int) string { return "x" })
}

// A client that takes its answer slowly does not rest, though the server has sent all of it and waits for the next request. Had it
// closed, that request would reset the connection, and the rest of the answer be lost.
func idleOfSlowReader(t T, p Program) {
	s := p.Start(t, "-idle-timeout", slowAnswerLimit().String())
	s.takeSlowly(t, fmt.Sprintf("GET /bytes/%d HTTP/1.1\r\nHost: a\r\n\r\n", slowBytes),
		[]Expected{someBytes(slowBytes), Hello()}, func(taken int) string {
			if taken/slowPart == 2*slowBytes/3/slowPart {
				return helloRequest
			}
			return ""
		})
}

const (
	// slowBytes are taken slowly: less than the sockets hold, so that the server has sent all of them long before. A client takes
	// slowRate of them in a second, by slowPart, which is more than two deadlines in all. Its receive buffer is small, or its
	// kernel would take most of them by itself: what that has room for is gone in a quarter of a second.
	slowBytes, slowRate, slowPart, slowBuffer = 1_800_000, 1_000_000, 50_000, 128 << 10
)

// takeSlowly takes the answer to a request slowly, and then what else is to come, until the end. says is what the client sends when
// it has taken so many bytes.
func (s *Server) takeSlowly(t T, request string, want []Expected, says func(taken int) string) {
	t.Helper()
	before := levelAtRest(t, s)
	for attempt := 0; ; attempt++ {
		pause, err := s.tryTakeSlowly(request, want, says)
		if err == nil {
			break
		}
		require.True(t, pause > mostPause && attempt < mostAttempts, "attempt %d, longest pause of the reader %v: %v", attempt, pause, err)
		t.Logf("once more: the reader was kept waiting for %v: %v", pause, err)
	}
	nothingLeft(t, s, before)
}

func (s *Server) tryTakeSlowly(request string, want []Expected, says func(taken int) string) (pause time.Duration, err error) {
	slow, err := harness.DialSlow(s.Ready.Address, slowBuffer)
	if err != nil {
		return 0, err
	}
	c := &client{slow}
	defer c.Close()
	if err := c.Send(request); err != nil {
		return 0, err
	}
	pause = time.Since(c.Opened)
	var taken bytes.Buffer
	c.TCP.SetReadDeadline(time.Now().Add(c.Timeout))
	for start := time.Now(); taken.Len() < slowBytes; {
		if _, err := io.CopyN(&taken, c.TCP, slowPart); err != nil {
			return pause, fmt.Errorf("after %d bytes, %v: %w", taken.Len(), time.Since(start), err)
		}
		if text := says(taken.Len()); text == "" {
			// Nothing yet.
		} else if err := c.Send(text); err != nil {
			return pause, fmt.Errorf("after %d bytes, %v, what the client sends is not taken: %w", taken.Len(), time.Since(start), err)
		}
		due := start.Add(time.Duration(taken.Len()) * time.Second / slowRate)
		time.Sleep(time.Until(due))
		pause = max(pause, time.Since(due))
	}
	c.Reader.Reset(io.MultiReader(&taken, c.TCP))
	for _, e := range want {
		if err := c.read(e); err != nil {
			return pause, err
		}
	}
	return pause, c.ReadEnd()
}
