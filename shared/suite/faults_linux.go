package suite

import (
	"bufio"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// faulty is a server whose system calls can be made to fail.
type faulty struct {
	*Server
	control net.Conn
	answers *bufio.Scanner
}

// faultyLink is the program by a link that makes it a faulty server, with rules from its start.
func faultyLink(t T, p Program, first ...*rule) Program {
	t.Helper()
	// Not t.TempDir: the name of a socket may not be long.
	folder, err := os.MkdirTemp("", "hostile")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	link := filepath.Join(folder, faultyName+"server")
	require.NoError(t, os.Symlink(p.Path, link))
	var text strings.Builder
	for _, r := range first {
		fmt.Fprintln(&text, r)
	}
	require.NoError(t, os.WriteFile(link+".rules", []byte(text.String()), 0o600))
	p.Path = link
	return p
}

func startFaulty(t T, p Program, args ...string) *faulty {
	t.Helper()
	link := faultyLink(t, p)
	f := &faulty{Server: link.Start(t, args...)}
	var err error
	f.control, err = net.Dial("unix", link.Path+".socket")
	require.NoError(t, err)
	t.Cleanup(func() { f.control.Close() })
	f.answers = bufio.NewScanner(f.control)
	f.answers.Buffer(nil, 64<<20) // for what was recorded
	return f
}

func (f *faulty) tell(t T, line string) string {
	t.Helper()
	_, err := fmt.Fprintln(f.control, line)
	require.NoError(t, err)
	require.True(t, f.answers.Scan(), "the server has ended: %s", f.Stderr())
	return f.answers.Text()
}

func (f *faulty) add(t T, all ...*rule) {
	t.Helper()
	for _, r := range all {
		require.Equal(t, "ok", f.tell(t, "add "+r.String()))
	}
}

// recorded ends a recording and gives it.
func (f *faulty) recorded(t T) (calls []made) {
	t.Helper()
	for text := range strings.SplitSeq(strings.TrimSuffix(f.tell(t, "recorded"), ","), ",") {
		var m made
		_, err := fmt.Sscan(text, &m.send, &m.fd, &m.at)
		require.NoError(t, err, "%q", text)
		calls = append(calls, m)
	}
	return calls
}

func (f *faulty) clear(t T) (made int) {
	t.Helper()
	made, err := strconv.Atoi(f.tell(t, "made"))
	require.NoError(t, err)
	require.Equal(t, "ok", f.tell(t, "clear"))
	return made
}

// failure is one way in which a call is made to fail.
type failure struct {
	errno syscall.Errno
	cut   int // if there is no errno
}

func (f failure) String() string {
	if f.errno != 0 {
		return fmt.Sprintf("%q", f.errno.Error())
	}
	return fmt.Sprintf("cut to %d", f.cut)
}

func errnos(all ...syscall.Errno) (failures []failure) {
	for _, errno := range all {
		failures = append(failures, failure{errno: errno})
	}
	return failures
}

// failures are the ways that the manual page of each call lists, and for those on a TCP socket those of tcp(7) and ip(7).
//
// Left out is what only a wrong argument brings about where the server ends on purpose rather than serve on: EBADF, EFAULT and EINVAL
// of epoll_wait(2), which would be wrong in every turn. An eventfd's write(2) fails otherwise than by EINTR only when its sum
// passes 2^64-2.
var failures = map[string][]failure{
	"recvfrom": errnos(syscall.EAGAIN, syscall.EBADF, syscall.ECONNREFUSED, syscall.EFAULT, syscall.EINTR, syscall.EINVAL, syscall.ENOMEM,
		syscall.ENOTCONN, syscall.ENOTSOCK, syscall.ECONNRESET, syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.EIO),
	"sendto":  sending,
	"sendmsg": sending,
	"accept4": errnos(syscall.EAGAIN, syscall.EBADF, syscall.ECONNABORTED, syscall.EFAULT, syscall.EINTR, syscall.EINVAL, syscall.EMFILE,
		syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ENOTSOCK, syscall.EOPNOTSUPP, syscall.EPERM, syscall.EPROTO,
		syscall.ENETDOWN, syscall.ENOPROTOOPT, syscall.EHOSTDOWN, syscall.ENONET, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT),
	"shutdown": errnos(syscall.EBADF, syscall.EINVAL, syscall.ENOTCONN, syscall.ENOTSOCK, syscall.ENOBUFS, syscall.EINTR),
	"close":    errnos(syscall.EBADF, syscall.EINTR, syscall.EIO, syscall.ENOSPC, syscall.EDQUOT),
	"epoll_ctl": errnos(syscall.EBADF, syscall.EEXIST, syscall.EINVAL, syscall.ELOOP, syscall.ENOENT, syscall.ENOMEM, syscall.ENOSPC,
		syscall.EPERM, syscall.EINTR),
	"epoll_pwait":     append(errnos(syscall.EINTR), failure{cut: 0}, failure{cut: 1}),
	"write":           errnos(syscall.EINTR),
	"timerfd_create":  errnos(syscall.EINVAL, syscall.EMFILE, syscall.ENFILE, syscall.ENODEV, syscall.ENOMEM, syscall.EPERM),
	"timerfd_settime": errnos(syscall.EBADF, syscall.EFAULT, syscall.EINVAL, syscall.ECANCELED, syscall.EINTR),
	"eventfd2":        errnos(syscall.EINVAL, syscall.EMFILE, syscall.ENFILE, syscall.ENODEV, syscall.ENOMEM),
}

var sending = append(errnos(syscall.EACCES, syscall.EAGAIN, syscall.EALREADY, syscall.EBADF, syscall.ECONNRESET, syscall.EDESTADDRREQ,
	syscall.EFAULT, syscall.EINTR, syscall.EINVAL, syscall.EISCONN, syscall.EMSGSIZE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ENOTCONN,
	syscall.ENOTSOCK, syscall.EOPNOTSUPP, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT, syscall.EIO),
	failure{cut: 1}, failure{cut: 100})

// shuffledCalls are the calls of failures, in an order that follows from the seed alone.
func shuffledCalls(seed uint64) []string {
	calls := slices.Sorted(maps.Keys(failures))
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	return calls
}

// One call of one connection fails, in each way there is. That connection may end, but what it received is right as far as it
// goes; all others do not notice; and nothing is left. The server overwrites what it should need no more (-poison), so that
// bytes which had to wait, and were not kept, show.
func faults(t T, p Program) {
	f := startFaulty(t, p, "-poison", "-workers", "2", "-linger-timeout", "200ms")
	before := levelAtRest(t, f.Server)
	other := dial(t, f.Server)
	other.hello(t)
	never := map[string]bool{}
	seed := drawSeed(t)
	random := rand.New(rand.NewPCG(seed, 1))
	for _, call := range shuffledCalls(seed) {
		never[call] = true
		for i, way := range failures[call] {
			// The first such call, and later ones: the socket or the timer, the first request or
			// the second. In the short form each way has one place, by the seed, and each call both.
			some := []int64{random.Int64N(3)}
			if i == 0 {
				some = []int64{0, 1 + random.Int64N(2)}
			}
			for _, skip := range thorough([]int64{0, 1, 2}, some) {
				name := fmt.Sprintf("%s fails with %v after %d calls", call, way, skip)
				r := &rule{call: call, errno: way.errno, cut: way.cut, skip: skip, times: 1}
				f.add(t, r)
				if call == "eventfd2" {
					// Descriptors are held back again after they have been used.
					f.add(t, &rule{call: "accept4", errno: syscall.EMFILE, times: 1})
				}
				require.NoError(t, f.victim(), name)
				if call == "close" {
					f.AwaitConnections(t, 1) // the victim knows of the end before the server makes the call
				}
				if f.clear(t) > 0 {
					never[call] = false
				}
				require.NoError(t, f.tryServed(), name)
				// The server comes to rest before the next one, or the fault might hit the wrong connection.
				before := f.AwaitConnections(t, 1).Total.Requests
				require.NoError(t, other.tryHello(), name)
				f.Await(t, "the other client's turn", func(r harness.Reading) bool { return r.Total.Requests > before })
			}
		}
	}
	// A loop that scans has one timer, as in exercise 6: made before it serves, and set only when something is due sooner.
	scans := f.Counters(t).Total.TimerfdCreates <= 2
	for call := range never {
		optional := call == "sendmsg" && p.number(t) < 4 || call == "write" && p.number(t) > 0 || scans && strings.HasPrefix(call, "timerfd_")
		require.True(t, optional || !never[call], "%s never failed", call)
	}
	require.NoError(t, other.Close())
	nothingLeft(t, f.Server, before)
}

// victim is a client that lives through the fault, or not.
func (f *faulty) victim() error {
	c, err := connect(f.Ready.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	n := &nudging{client: c}
	c.Reader = bufio.NewReader(n)
	some := func(n int) string { return fmt.Sprintf("GET /bytes/%d HTTP/1.1\r\nHost: a\r\n\r\n", n) }
	for _, s := range []step{
		{helloRequest, []Expected{Hello()}},
		{some(5000), []Expected{someBytes(5000)}},
		{helloRequest + some(2000), []Expected{Hello(), someBytes(2000)}},
	} {
		if err := c.Send(s.send); err != nil {
			return unlessGone(err)
		}
		for i := 0; i < len(s.answers)+n.nudges; i++ {
			want := Hello()
			if i < len(s.answers) {
				want = s.answers[i]
			}
			answer, err := c.answer(false)
			if err != nil {
				return unlessGone(err)
			}
			if answer.Status == 503 {
				return Refusal(503).Check(answer)
			}
			if err := want.Check(answer); err != nil {
				return err
			}
		}
		n.nudges = 0
	}
	// The byte behind its last request makes the server linger.
	if err := c.Send(lastHello + "G"); err != nil {
		return unlessGone(err)
	}
	for range n.nudges + 1 {
		answer, err := c.answer(false)
		if err != nil {
			return unlessGone(err)
		}
		if answer.Field("Connection") == "close" {
			return unlessGone(c.ReadEnd())
		}
	}
	return fmt.Errorf("the last answer does not close")
}

// nudging reads from a client's connection. Where a call was told that there is nothing to read or no room to write, and that
// was a lie, the kernel has no reason to call again, and an edge-triggered server waits. So whoever waits here for long
// asks for / once more, which is an answer more to come.
type nudging struct {
	*client
	nudges int
}

// Read implements io.Reader.
func (n *nudging) Read(p []byte) (int, error) {
	for end := time.Now().Add(patience); ; {
		n.TCP.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		got, err := n.TCP.Read(p)
		if !harness.TimedOut(err) || time.Now().After(end) {
			return got, err
		}
		n.nudges++
		if err := n.Send(helloRequest); err != nil {
			return 0, err
		}
	}
}

func unlessGone(err error) error {
	if harness.Gone(err) {
		return nil
	}
	return err
}

// What a server needs in order to serve is missing: it says so in one line, and ends.
func faultsAtStart(t T, p Program) {
	for _, r := range []*rule{
		{call: "epoll_create1", errno: syscall.EMFILE},
		{call: "epoll_create1", errno: syscall.ENFILE, skip: 1},
		{call: "eventfd2", errno: syscall.EMFILE},
		{call: "eventfd2", errno: syscall.ENFILE, skip: 1},
		{call: "eventfd2", errno: syscall.ENOMEM, skip: 3},
		{call: "epoll_ctl", errno: syscall.ENOSPC},
		{call: "epoll_ctl", errno: syscall.ENOMEM, skip: 1},
		{call: "socket", errno: syscall.EMFILE},
		{call: "setsockopt", errno: syscall.ENOBUFS},
		{call: "bind", errno: syscall.EACCES},
		{call: "bind", errno: syscall.EADDRNOTAVAIL},
		{call: "listen", errno: syscall.EADDRINUSE},
		{call: "getsockname", errno: syscall.ENOBUFS},
	} {
		r.times = 1
		t.Logf("%s", r)
		refuses(t, 1, "", faultyLink(t, p, r).Command("-addr", "127.0.0.1:0", "-workers", "2"))
	}

	// What it can do without.
	for _, one := range []struct {
		name string
		rule *rule
	}{
		{"no SO_REUSEPORT", &rule{call: "setsockopt", errno: syscall.ENOPROTOOPT, skip: 3, times: 1}},
		{"pinning is not permitted", &rule{call: "sched_setaffinity", errno: syscall.EINVAL, times: 100}},
	} {
		t.Run(one.name, func(t T) {
			s := faultyLink(t, p, one.rule).Start(t, "-workers", "2", "-pin")
			s.expectLogs = true // that it cannot pin
			for range 10 {
				s.expectServed(t)
			}
			refuses(t, 1, s.Ready.Address, p.Command("-addr", s.Ready.Address))
		})
	}
}

// Every call fails now and then, in turn in each way, under load. What anybody receives is right as far as it goes; and once the
// calls work again, nothing is left.
func faultsUnderLoad(t T, p Program) {
	f := startFaulty(t, p, strings.Fields("-poison -workers 2 -idle-timeout 2s -head-timeout 2s -body-timeout 2s -write-timeout 2s -linger-timeout 100ms")...)
	before := levelAtRest(t, f.Server)
	seed := drawSeed(t)
	period := int64(50)
	for _, call := range shuffledCalls(seed) {
		if call == "timerfd_settime" {
			continue // with a lost event on the same connection, nothing would ever end it
		}
		for _, way := range failures[call] {
			every := int64(20) // what does no harm may happen often
			if way.errno != 0 {
				period += 7
				every = period
			}
			f.add(t, &rule{call: call, errno: way.errno, cut: way.cut, skip: every, times: -every})
		}
	}
	end := time.Now().Add(soakTime)
	var whole, cut atomic.Int64
	var wrong atomic.Pointer[error]
	var group sync.WaitGroup
	for worker := range uint64(8) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1+worker))
			for time.Now().Before(end) {
				switch err := f.visit(random); {
				case err == nil:
					whole.Add(1)
				case harness.TimedOut(err) || unlessGone(err) == nil:
					cut.Add(1)
				default:
					wrong.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	group.Wait()
	made := f.clear(t)
	if err := wrong.Load(); err != nil {
		require.NoError(t, *err)
	}
	t.Logf("%d faults; %d connections came through, %d did not", made, whole.Load(), cut.Load())
	require.Positive(t, made)
	require.Positive(t, whole.Load())
	require.NoError(t, f.tryServed())
	nothingLeft(t, f.Server, before)
}

// visit makes some exchanges, none of which takes long.
func (f *faulty) visit(random *rand.Rand) error {
	c, err := connect(f.Ready.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	for range 1 + random.IntN(10) {
		s := oneOf(random, steps())
		c.Timeout = 200 * time.Millisecond
		if err := c.Send(s.send); err != nil {
			return err
		}
		for _, want := range s.answers {
			answer, err := c.answer(want.Bodiless)
			switch {
			case err != nil:
				return err
			case answer.Status == 503 || answer.Status == 408:
				refusal := Refusal(answer.Status)
				refusal.Bodiless = want.Bodiless
				return refusal.Check(answer)
			}
			if err := want.Check(answer); err != nil {
				return err
			}
		}
	}
	return nil
}

// The last answer before a stop says so too where all requests had been read before the loop heard
// of the stop, in more than one turn: beginning to stop takes every socket for one with input, and
// only the socket itself knows that this was all.
func stopWithRequestsRead(t T, p Program) {
	const requests = 3*requestsPerTurn + 8 // fewer than one read takes
	f := startFaulty(t, p, "-workers", "1", "-idle-timeout", "1h", "-grace", patience.String())
	c := dial(t, f.Server)
	wakes := 1
	if p.number(t) == 0 {
		wakes = 2 // the base loop is told, and tells the worker
	}
	require.Equal(t, "ok", f.tell(t, fmt.Sprintf("hold %d %d", f.descriptor(t, c), wakes)))
	c.send(t, strings.Repeat(helloRequest, requests))
	require.Equal(t, "ok", f.tell(t, "held"))
	f.Signal(t, syscall.SIGTERM)
	c.expectLast(t, requests)
	c.Close()
	f.Wait(t)
}
