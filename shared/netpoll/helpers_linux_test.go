package netpoll

import (
	"io"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// patience bounds how long a test waits for what must happen.
const patience = 20 * time.Second

// pair is two connected non-blocking stream sockets.
func pair(t testing.TB) (a, b int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() {
		unix.Close(fds[0])
		unix.Close(fds[1])
	})
	return fds[0], fds[1]
}

func listener(t testing.TB, address string, o ListenOptions) (fd int, bound string) {
	t.Helper()
	fd, bound, err := Listen(new(Counters), address, o)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd, bound
}

// needIPv6 skips the test on a machine without IPv6.
func needIPv6(t testing.TB) {
	t.Helper()
	fd, _, err := Listen(new(Counters), "[::1]:0", ListenOptions{})
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	require.NoError(t, unix.Close(fd))
}

func address(t testing.TB, text string) Address {
	t.Helper()
	a, err := ParseAddress(text)
	require.NoError(t, err)
	return a
}

// dial connects to target and waits until that is done.
func dial(t testing.TB, source Address, target string) int {
	t.Helper()
	fd, err := Connect(new(Counters), source, address(t, target))
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	await(t, fd, unix.POLLOUT)
	require.NoError(t, ConnectError(new(Counters), fd))
	return fd
}

// await polls fd until one of events.
func await(t testing.TB, fd int, events int16) {
	t.Helper()
	end := time.Now().Add(patience)
	for time.Now().Before(end) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
		n, err := unix.Poll(fds, int(patience/time.Millisecond))
		if err != unix.EINTR {
			require.NoError(t, err)
			require.Equal(t, 1, n, "no event in time")
			return
		}
	}
	t.Fatal("no event in time")
}

// connection is one TCP connection, both ends.
func connection(t testing.TB) (server, client int) {
	t.Helper()
	l, bound := listener(t, "127.0.0.1:0", ListenOptions{})
	client = dial(t, Address{}, bound)
	await(t, l, unix.POLLIN)
	server, err := Accept(new(Counters), l)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(server) })
	return server, client
}

func poller(t testing.TB, c *Counters) *Poller {
	t.Helper()
	p, err := NewPoller(c)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close(new(Counters)) })
	return p
}

// answer is one injected fault.
type answer struct {
	n   int
	err error
}

// injectFaults makes the next calls of that kind answer as given, in order, and leaves all others, and those that follow, alone.
// The test fails if not all answers were asked for.
func injectFaults(t testing.TB, call Call, answers ...answer) {
	t.Helper()
	var mu sync.Mutex
	Fault = func(made Call, _ int) (int, error, bool) {
		mu.Lock()
		defer mu.Unlock()
		if made != call || len(answers) == 0 {
			return 0, nil, false
		}
		next := answers[0]
		answers = answers[1:]
		return next.n, next.err, true
	}
	t.Cleanup(func() {
		Fault = nil
		require.Empty(t, answers, "faults of %s that nobody asked for", call)
	})
}

func fail(errnos ...syscall.Errno) []answer {
	var answers []answer
	for _, errno := range errnos {
		answers = append(answers, answer{err: errno})
	}
	return answers
}

// openDescriptors counts this process's descriptors.
func openDescriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// limitDescriptors puts the limit of this process, until the test ends, that much above the lowest number that is free: with
// 0, no descriptor can be opened.
func limitDescriptors(t *testing.T, above int) {
	t.Helper()
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	t.Cleanup(func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) })
	lowest, err := unix.Dup(0)
	require.NoError(t, err)
	require.NoError(t, unix.Close(lowest))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(lowest + above), Max: before.Max}))
}

// send writes text, all of it.
func send(t testing.TB, fd int, text string) {
	t.Helper()
	n, err := Send(new(Counters), fd, []byte(text))
	require.NoError(t, err)
	require.Equal(t, len(text), n)
}

// receiveAll reads until the end of input.
func receiveAll(t testing.TB, fd int) string {
	t.Helper()
	var all []byte
	buffer := make([]byte, 4096)
	for {
		await(t, fd, unix.POLLIN)
		n, err := Receive(new(Counters), fd, buffer)
		if err == io.EOF {
			return string(all)
		}
		require.NoError(t, err)
		all = append(all, buffer[:n]...)
	}
}
