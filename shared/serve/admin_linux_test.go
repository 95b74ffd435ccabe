package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime/trace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// never is a limit that no test reaches.
const never = time.Hour

// startAdmin serves an admin listener of its own on address. When the test ends it is closed, and no
// goroutine may be left of it.
func startAdmin(t *testing.T, address string, change func(*adminLimits)) *admin {
	t.Helper()
	before := goleak.IgnoreCurrent()
	a, err := listenAdmin("stage7-fake", address)
	require.NoError(t, err)
	a.limits.head, a.limits.body, a.limits.idle, a.limits.write = never, never, never, never
	if change != nil {
		change(&a.limits)
	}
	a.serve(func() []*netpoll.Published { return nil })
	t.Cleanup(func() {
		a.close()
		goleak.VerifyNone(t, before)
	})
	return a
}

// adminClient is a connection to an admin listener. Its receive buffer is smaller than what tests do not
// read, and several times as large as a segment on loopback (64 KB): below, every segment would wait for
// a delayed acknowledgement.
type adminClient struct {
	t *testing.T
	*net.TCPConn
	in *bufio.Reader
}

func (a *admin) dial(t *testing.T) *adminClient {
	t.Helper()
	c, err := net.Dial("tcp", a.addr())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	c.(*net.TCPConn).SetReadBuffer(256 << 10)
	return &adminClient{t, c.(*net.TCPConn), bufio.NewReader(c)}
}

func (c *adminClient) send(text string) {
	c.t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(c.t, err)
}

// get sends a request with more header lines, and returns the answer with its body.
func (c *adminClient) get(path, host string, lines ...string) (status int, body string) {
	c.t.Helper()
	c.send("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + strings.Join(append(lines, "\r\n"), "\r\n"))
	answer, err := http.ReadResponse(c.in, nil)
	require.NoError(c.t, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	require.NoError(c.t, err)
	return answer.StatusCode, string(b)
}

// requireEnd waits until the server has ended the connection.
func (c *adminClient) requireEnd() {
	c.t.Helper()
	_, err := io.Copy(io.Discard, c.in)
	require.NotErrorIs(c.t, err, os.ErrDeadlineExceeded, "the connection is still open")
}

func TestAdminEndsSilentConnections(t *testing.T) {
	short := func(limit func(*adminLimits) *time.Duration) func(*adminLimits) {
		return func(l *adminLimits) { *limit(l) = 50 * time.Millisecond }
	}
	head := short(func(l *adminLimits) *time.Duration { return &l.head })
	t.Run("nothing sent", func(t *testing.T) {
		startAdmin(t, "127.0.0.1:0", head).dial(t).requireEnd()
	})
	t.Run("half a head", func(t *testing.T) {
		c := startAdmin(t, "127.0.0.1:0", head).dial(t)
		c.send("GET / HTTP/1.1\r\nHost: local")
		c.requireEnd()
	})
	t.Run("at rest between requests", func(t *testing.T) {
		c := startAdmin(t, "127.0.0.1:0", short(func(l *adminLimits) *time.Duration { return &l.idle })).dial(t)
		status, _ := c.get("/", "localhost")
		require.Equal(t, 200, status)
		c.requireEnd()
	})
	for name, request := range map[string]string{
		"half a body that is read":        "POST /debug/pprof/symbol HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n0x1",
		"half a body that nobody reads":   "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345",
		"half a chunk":                    "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\na\r\n12345",
		"half a body that was not wanted": "POST /other HTTP/1.1\r\nHost: example.com\r\nContent-Length: 10\r\n\r\n12345",
	} {
		t.Run(name, func(t *testing.T) {
			c := startAdmin(t, "127.0.0.1:0", short(func(l *adminLimits) *time.Duration { return &l.body })).dial(t)
			c.send(request)
			c.requireEnd()
		})
	}
}

// Longer than any limit on a silent client, and it is none.
func TestAdminDoesNotCutAProfile(t *testing.T) {
	for _, path := range []string{"/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=1"} {
		c := startAdmin(t, "127.0.0.1:0", func(l *adminLimits) {
			l.head, l.body, l.idle, l.write = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
		}).dial(t)
		begun := time.Now()
		status, body := c.get(path, "localhost")
		require.Equal(t, 200, status)
		require.NotEmpty(t, body)
		require.GreaterOrEqual(t, time.Since(begun), time.Second)
	}
}

func TestAdminBoundsItsConnections(t *testing.T) {
	a := startAdmin(t, "127.0.0.1:0", func(l *adminLimits) { l.conns = 3 })
	var held []*adminClient
	for range 3 {
		c := a.dial(t)
		c.get("/", "localhost") // now it counts
		held = append(held, c)
	}
	for range 10 {
		a.dial(t).requireEnd()
	}
	status, _ := held[0].get("/", "localhost")
	require.Equal(t, 200, status)

	// A place that becomes free is used again.
	for range 2 {
		held[0].send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		held[0].requireEnd()
		require.Eventually(t, func() bool {
			c := a.dial(t)
			c.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
			answer, err := http.ReadResponse(c.in, nil)
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				held[0] = c
			}
			return err == nil
		}, patience, time.Millisecond)
	}
}

func TestAdminHosts(t *testing.T) {
	const loopback, address, every, everyone, name = "127.0.0.1", "192.0.2.7", "0.0.0.0", "::", "Ladder.example"
	for _, c := range []struct {
		configured, host string
		want             bool
	}{
		{loopback, "localhost", true},
		{loopback, "localhost:9090", true},
		{loopback, "LocalHost.:9090", true},
		{loopback, "stage5.localhost:9090", true},
		{loopback, "127.0.0.1", true},
		{loopback, "127.0.0.1:1", true},
		{loopback, "127.1.2.3:9090", true},
		{loopback, "[::1]", true},
		{loopback, "[::1]:9090", true},
		{loopback, "[0:0:0:0:0:0:0:1]:9090", true},
		{loopback, "[::ffff:127.0.0.1]:9090", true},
		{loopback, "", false},
		{loopback, ":9090", false},
		{loopback, "example.com", false},
		{loopback, "example.com:9090", false},
		{loopback, "localhost.example.com", false},
		{loopback, "notlocalhost", false},
		{loopback, "127.0.0.1.example.com:9090", false},
		{loopback, "192.0.2.7:9090", false},
		{loopback, "0.0.0.0:9090", false},
		{loopback, "[::]:9090", false},
		{address, "192.0.2.7:9090", true},
		{address, "[::ffff:192.0.2.7]:9090", true},
		{address, "127.0.0.1:9090", true},
		{address, "192.0.2.8:9090", false},
		{address, "example.com:9090", false},
		{every, "192.0.2.7:9090", true},
		{every, "[2001:db8::7]:9090", true},
		{every, "0.0.0.0:9090", true},
		{every, "example.com:9090", false},
		{everyone, "[2001:db8::7]:9090", true},
		{everyone, "192.0.2.7:9090", true},
		{everyone, "example.com:9090", false},
		{name, "ladder.example:9090", true},
		{name, "LADDER.EXAMPLE.", true},
		{name, "localhost:9090", true},
		{name, "other.ladder.example", false},
		{name, "192.0.2.7", false},
	} {
		t.Run(c.configured+" "+c.host, func(t *testing.T) {
			a, err := listenAdmin("stage7-fake", "127.0.0.1:0")
			require.NoError(t, err)
			a.host = c.configured
			a.serve(func() []*netpoll.Published { return nil })
			defer a.close()
			for _, path := range []string{"/", "/debug/counters", "/metrics", "/debug/pprof/", "/other"} {
				status, body := a.dial(t).get(path, c.host)
				require.Equal(t, !c.want, status == 403, "%s: %s", path, body)
				if status == 403 {
					require.Equal(t, fmt.Sprintf("the admin listener does not answer for the host %q: "+
						"ask for localhost, 127.0.0.1 or the host of -admin\n", c.host), body)
				}
			}
		})
	}
}

func TestAdminKeepsProfilesFromOtherSites(t *testing.T) {
	a := startAdmin(t, "127.0.0.1:0", nil)
	for _, c := range []struct {
		path, line string
		status     int
	}{
		{"/debug/pprof/heap?gc=1", "Sec-Fetch-Site: none", 200},
		{"/debug/pprof/heap?gc=1", "Sec-Fetch-Site: same-origin", 200},
		{"/debug/pprof/heap?gc=1", "Origin: http://localhost:9090", 200},
		{"/debug/pprof/heap?gc=1", "Accept: */*", 200},
		{"/debug/pprof/heap?gc=1", "Sec-Fetch-Site: cross-site", 403},
		{"/debug/pprof/heap?gc=1", "Sec-Fetch-Site: same-site", 403},
		{"/debug/pprof/heap?gc=1", "Origin: http://example.com", 403},
		{"/debug/pprof/heap?gc=1", "Origin: http://localhost:8080", 403},
		{"/debug/pprof/heap?gc=1", "Origin: null", 403},
		{"/debug/pprof/profile?seconds=3600", "Sec-Fetch-Site: cross-site", 403},
		{"/debug/pprof/trace?seconds=3600", "Sec-Fetch-Site: cross-site", 403},
		{"/", "Sec-Fetch-Site: cross-site", 200},
		{"/debug/counters", "Origin: http://example.com", 200},
	} {
		status, body := a.dial(t).get(c.path, "localhost:9090", c.line)
		require.Equal(t, c.status, status, "%s, %s", c.path, c.line)
		if status == 403 {
			require.Equal(t, "profiles are not for pages of other sites: open the address itself\n", body)
		}
	}
}

func TestAdminListensOnTheFamilyThatWasAsked(t *testing.T) {
	_, port, _ := net.SplitHostPort(startAdmin(t, "0.0.0.0:0", nil).addr())
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	require.NoError(t, err)
	c.Close()
	_, err = net.Dial("tcp", "[::1]:"+port)
	require.Error(t, err)

	probe, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	probe.Close()
	_, port, _ = net.SplitHostPort(startAdmin(t, "[::]:0", nil).addr())
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		c, err := net.Dial("tcp", host+":"+port)
		require.NoError(t, err)
		c.Close()
	}
}

// makeEvents has much to trace until the test ends: goroutines that wake each other.
func makeEvents(t *testing.T) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	ball := make(chan struct{})
	for range 2 {
		running.Go(func() {
			for {
				select {
				case ball <- struct{}{}:
				case <-ball:
				case <-stop:
					return
				}
			}
		})
	}
	t.Cleanup(func() { close(stop); running.Wait() })
}

func requireTraceEnds(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return !trace.IsEnabled() }, patience, 5*time.Millisecond, "it is still tracing")
}

// Until the client reads, the trace may take no more than its limit. It is whole, but for its length.
func TestTraceThatNobodyReadsEnds(t *testing.T) {
	makeEvents(t)
	c := startAdmin(t, "127.0.0.1:0", func(l *adminLimits) { l.trace = 1 << 20 }).dial(t)
	c.send("GET /debug/pprof/trace?seconds=3600 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	answer, err := http.ReadResponse(c.in, nil) // and nothing else
	require.NoError(t, err)
	requireTraceEnds(t)
	c.SetDeadline(time.Now().Add(patience))
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(body), "go 1."))
	require.Greater(t, len(body), 1<<20)
}

// The client is taken for gone when it takes no byte, whatever it has asked for.
func TestAdminCutsAClientThatDoesNotRead(t *testing.T) {
	makeEvents(t)
	a := startAdmin(t, "127.0.0.1:0", func(l *adminLimits) { l.write, l.trace = 50*time.Millisecond, 1<<30 })
	c := a.dial(t)
	c.send("GET /debug/pprof/trace?seconds=3600 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	answer, err := http.ReadResponse(c.in, nil)
	require.NoError(t, err)
	requireTraceEnds(t)
	_, err = io.Copy(io.Discard, answer.Body)
	require.Error(t, err, "the answer is cut, and does not look whole")
}

// An answer may take longer than the limit, which is for a piece of it.
func TestAdminServesASlowReader(t *testing.T) {
	t.Parallel()
	const limit, size = 2 * time.Second, 4 << 20
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer inner.Close()
	written := make(chan error, 1)
	go func() {
		c, err := (&adminListener{Listener: inner, limits: adminLimits{conns: 1, write: limit}}).Accept()
		if err == nil {
			_, err = c.Write(make([]byte, size))
			c.Close()
		}
		written <- err
	}()
	c := (&admin{listener: inner}).dial(t)
	got := 0
	piece := make([]byte, 16<<10)
	for begun := time.Now(); time.Since(begun) < limit*3/2; {
		n, err := io.ReadFull(c.in, piece)
		require.NoError(t, err)
		got += n
		time.Sleep(20 * time.Millisecond) // not to wait for anything: it is a slow reader
	}
	c.SetDeadline(time.Now().Add(patience))
	rest, err := io.Copy(io.Discard, c.in)
	require.NoError(t, err)
	require.NoError(t, <-written)
	require.EqualValues(t, size, got+int(rest))
}

func TestTraceLengthIsRead(t *testing.T) {
	a := startAdmin(t, "127.0.0.1:0", nil)
	for _, seconds := range []string{"0.01", "0.000001"} {
		status, body := a.dial(t).get("/debug/pprof/trace?seconds="+seconds, "localhost")
		require.Equal(t, 200, status)
		require.True(t, strings.HasPrefix(body, "go 1."))
	}
	first := a.dial(t)
	first.send("GET /debug/pprof/trace?seconds=Inf HTTP/1.1\r\nHost: localhost\r\n\r\n")
	_, err := http.ReadResponse(first.in, nil)
	require.NoError(t, err)
	status, body := a.dial(t).get("/debug/pprof/trace?seconds=NaN", "localhost")
	require.Equal(t, 500, status)
	require.Contains(t, body, "cannot trace: ")
	first.Close()
	requireTraceEnds(t)
}

// A profile that runs does not hold up the stop.
func TestAdminCloseEndsWhatIsUnderWay(t *testing.T) {
	before := goleak.IgnoreCurrent()
	a, err := listenAdmin("stage7-fake", "127.0.0.1:0")
	require.NoError(t, err)
	a.serve(func() []*netpoll.Published { return nil })
	a.dial(t)
	a.dial(t).get("/", "localhost")
	tracing := a.dial(t)
	tracing.send("GET /debug/pprof/trace?seconds=3600 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.Eventually(t, trace.IsEnabled, patience, time.Millisecond)
	a.dial(t).send("GET /debug/pprof/goroutine?seconds=3600 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	a.close()
	require.False(t, trace.IsEnabled())
	goleak.VerifyNone(t, before)
}

// A browser gets a page with every counter, and what it links to is there; all else gets some lines.
func TestAdminPage(t *testing.T) {
	a := startAdmin(t, "127.0.0.1:0", nil)
	loops := []*netpoll.Published{new(netpoll.Published), new(netpoll.Published)}
	a.loops = func() []*netpoll.Published { return loops }
	status, text := a.dial(t).get("/", a.addr(), "Accept: */*")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "stage7-fake\n\n/debug/counters")
	status, page := a.dial(t).get("/", a.addr(), "Accept: text/html,application/xhtml+xml;q=0.9")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "<h1>stage7-fake</h1>")
	require.Contains(t, page, `<th scope="col">loop 1</th>`)
	require.NotRegexp(t, `>(?:LOOPS|CALLS|COUNTERS)|STAGE`, page)
	new(netpoll.Counters).Each(func(name string, _ uint64) {
		require.Contains(t, page, `<tr data-counter="`+name+`"`)
	})
	require.Contains(t, page, `data-counter="connections" data-level>`)
	for _, found := range regexp.MustCompile(`href="([a-z][^"]*?)(?:\?[^"]*)?"`).FindAllStringSubmatch(page, -1) {
		if path := found[1]; path != "data:," && !strings.HasSuffix(path, "/profile") && !strings.HasSuffix(path, "/trace") {
			status, _ := a.dial(t).get("/"+path, a.addr())
			require.Equal(t, http.StatusOK, status, path)
		}
	}
}
