package hostile

import (
	"fmt"

	"os"

	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/qps-ladder/qps-ladder/shared/suite"
)

// sendUrgent sends text whose last byte is urgent (tcp(7), MSG_OOB).
func (c *client) sendUrgent(text string) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	err = raw.Write(func(fd uintptr) bool {
		sendErr = unix.Sendto(int(fd), []byte(text), unix.MSG_OOB|unix.MSG_NOSIGNAL, nil)
		return sendErr != unix.EAGAIN
	})
	if err != nil {
		return err
	}
	return sendErr
}

// sendWithUrgent sends text, with the bytes at these places urgent.
func (c *client) sendWithUrgent(text string, places []int) error {
	from := 0
	for _, place := range places {
		if err := c.sendUrgent(text[from : place+1]); err != nil {
			return err
		}
		from = place + 1
	}
	return c.send(text[from:])
}

// An urgent byte is a byte of the stream like any other (RFC 6093, 6), wherever it is and however many there are, and what
// lies behind it is not left unread.
func urgentBytes(t *testing.T) {
	s := suite.Start(t, "-head-timeout", "1h", "-body-timeout", "1h", "-linger-timeout", "1h")
	before := levelAtRest(t, s)
	body := strings.Repeat("0123456789", 4)
	upload := fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	echoed := suite.Expected{Status: 200, Type: "application/octet-stream", Body: body}
	long := strings.Repeat("b", 20_000)
	whole := []step{
		{hello + upload, []suite.Expected{suite.Hello(), echoed}},
		{"\r\n" + lastHello, []suite.Expected{closing(suite.Hello())}},
		{"GET /% HTTP/1.1\r\nHost: a\r\n\r\n", []suite.Expected{suite.Refusal(400)}},
		{fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(long), long) + hello,
			[]suite.Expected{{Status: 200, Type: "application/octet-stream", Body: long}, suite.Hello()}},
	}
	var exchanges []*urgentExchange
	add := func(w step, shut bool, places ...int) {
		exchanges = append(exchanges, &urgentExchange{step: w, places: places, shut: shut})
	}
	for _, w := range whole {
		for place := 0; place < len(w.send); place += 1 + place/200*997 {
			add(w, place%3 == 0, place)
		}
		last := len(w.send) - 1
		add(w, false, last)
		add(w, true, last)
		add(w, false, 0, 1, 2, last/2, last/2+1, last)
		add(w, true, 3, last-1)
	}

	// As the bytes arrive, and then all of them at once, so that they lie in the socket when the server reads.
	for _, together := range []bool{false, true} {
		if together {
			require.NoError(t, syscall.Kill(s.PID, syscall.SIGSTOP))
			t.Cleanup(func() { syscall.Kill(s.PID, syscall.SIGCONT) })
			awaitStopped(t, s)
		}
		for _, e := range exchanges {
			c, err := connect(s.Addr)
			require.NoError(t, err)
			t.Cleanup(func() { c.Close() })
			e.client = c
			require.NoError(t, e.begin(), "%s", e)
		}
		if together {
			require.NoError(t, syscall.Kill(s.PID, syscall.SIGCONT))
		}
		for _, e := range exchanges {
			require.NoError(t, e.finish(), "%s, all at once: %t", e, together)
			e.client.Close()
		}
	}
	nothingLeft(t, s, before)
}

// urgentExchange is an exchange with some bytes urgent.
type urgentExchange struct {
	step
	places []int
	shut   bool // and then the end of input
	client *client
}

func (e *urgentExchange) String() string {
	return fmt.Sprintf("%.80q (%d bytes), urgent %v, end of input %t", e.send, len(e.send), e.places, e.shut)
}

func (e *urgentExchange) begin() error {
	if err := e.client.sendWithUrgent(e.send, e.places); err != nil || !e.shut {
		return err
	}
	return e.client.CloseWrite()
}

// finish reads the answers, and looks whether the connection is as it should be.
func (e *urgentExchange) finish() error {
	for i, want := range e.answers {
		if err := e.client.expect(want); err != nil {
			return fmt.Errorf("answer %d: %w", i, err)
		}
	}
	if e.shut || e.answers[len(e.answers)-1].Connection == "close" {
		return e.client.end()
	}
	return e.client.hello()
}

// awaitStopped waits until the kernel shows the server as stopped, see proc_pid_stat(5).
func awaitStopped(t testing.TB, s *suite.Server) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID))
		require.NoError(t, err)
		if _, state, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(state, "T") {
			return
		}
		require.True(t, time.Now().Before(end), "the process does not stop: %s", stat)
	}
}
