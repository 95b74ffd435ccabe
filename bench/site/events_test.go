package site

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// eventServer starts the reference of exercise 22.
func eventServer(t *testing.T, flags ...string) *harness.Server {
	if runtime.GOOS != "linux" {
		t.Skip("the servers need Linux: there is no epoll here")
	}
	server, err := run.BuildVariant(t.Context(), root, t.TempDir(), eventVariants()[1])
	require.NoError(t, err)
	server.Args = append(server.Args, flags...)
	s, err := run.Start(t.Context(), server, nil, 2)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func publish(t *testing.T, s *harness.Server, data string) {
	t.Helper()
	response, err := http.Post("http://"+s.Ready.Address+"/events", "text/plain", strings.NewReader(data))
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, 204, response.StatusCode)
}

// A Go client reads the stream as the answer's body, comes back with the number of its last event,
// and sees the end of a server that stops as the end of the body.
func TestEventsToGoClient(t *testing.T) {
	s := eventServer(t)
	subscribe := func(last string) (*http.Response, *bufio.Reader) {
		request, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Ready.Address+"/events", nil)
		require.NoError(t, err)
		if last != "" {
			request.Header.Set("Last-Event-ID", last)
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		t.Cleanup(func() { response.Body.Close() })
		require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
		require.Equal(t, "no-store", response.Header.Get("Cache-Control"))
		return response, bufio.NewReader(response.Body)
	}
	expect := func(body *bufio.Reader, lines ...string) {
		t.Helper()
		for _, want := range append(lines, "") {
			line, err := body.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, want+"\n", line)
		}
	}
	first, body := subscribe("")
	publish(t, s, "hello")
	expect(body, "id: 1", "data: hello")
	publish(t, s, "two\r\nlines")
	expect(body, "id: 2", "data: two", "data: lines")
	first.Body.Close()
	publish(t, s, "missed")
	_, body = subscribe("2")
	expect(body, "id: 3", "data: missed")
	publish(t, s, "and live")
	expect(body, "id: 4", "data: and live")
	require.NoError(t, s.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(body)
	require.NoError(t, err, "a stream that ends without its last chunk is an unexpected EOF")
	require.Empty(t, rest)
	require.NoError(t, s.Wait(harness.Patience))
	require.Zero(t, s.ExitCode())
}

// breakable passes connections on, and breaks all of them when it is told to.
type breakable struct {
	net.Listener
	mutex sync.Mutex
	open  []net.Conn
}

func newBreakable(t *testing.T, target string) *breakable {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &breakable{Listener: listener}
	t.Cleanup(func() { listener.Close(); b.breakAll() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			b.mutex.Lock()
			b.open = append(b.open, client, server)
			b.mutex.Unlock()
			for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					pair[0].Close()
				}()
			}
		}
	}()
	return b
}

func (b *breakable) breakAll() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, c := range b.open {
		c.Close()
	}
	b.open = nil
}

// A browser's EventSource gets events, is not woken by comments, comes back by itself when its
// connection breaks, and then gets what it has missed.
func TestEventsInBrowser(t *testing.T) {
	b := startBrowser(t)
	s := eventServer(t, "-idle-timeout", "1s")
	between := newBreakable(t, s.Ready.Address)
	b.open("http://" + between.Addr().String() + "/")
	b.eval(`window.got = []; window.opened = 0;
		window.source = new EventSource("/events");
		source.onmessage = e => got.push(e.lastEventId + "=" + e.data);
		source.onopen = () => opened++;
		new Promise(done => { const wait = () => opened > 0 ? done() : setTimeout(wait, 5); wait(); })`)
	soon := func(condition string) string {
		return b.eval(fmt.Sprintf(`new Promise(done => { const wait = () => %s ? done(got.join("|")) : setTimeout(wait, 5); wait(); })`, condition))
	}
	publish(t, s, "hello")
	publish(t, s, "two\nlines")
	publish(t, s, "")
	publish(t, s, "☃")
	require.Equal(t, "1=hello|2=two\nlines|3=|4=☃", soon("got.length == 4"))

	// Silent for more than the idle timeout: comments keep the stream, and are no events.
	time.Sleep(1500 * time.Millisecond)
	require.Equal(t, "1 4", b.eval(`opened + " " + got.length`))

	between.breakAll()
	publish(t, s, "missed")
	require.Equal(t, "5=missed", soon("got.length == 5")[len("1=hello|2=two\nlines|3=|4=☃|"):])
	require.Equal(t, "2", b.eval("opened"), "it has come back by itself")
	publish(t, s, "live")
	require.True(t, strings.HasSuffix(soon("got.length == 6"), "|6=live"))

	// When the server stops, it tries to come back: it was not told to stay away.
	require.NoError(t, s.Signal(syscall.SIGTERM))
	require.Equal(t, "0", b.eval(`new Promise(done => { const wait = () => source.readyState != 1 ? done(source.readyState) : setTimeout(wait, 5); wait(); })`))
	b.eval("source.close()")
	require.NoError(t, s.Wait(harness.Patience))
	require.Zero(t, s.ExitCode())
}

// The measurement is short here, and what it counts is exact.
func TestEventsAreCounted(t *testing.T) {
	testenv.Slow(t)
	if runtime.GOOS != "linux" {
		t.Skip("the servers need Linux: there is no epoll here")
	}
	folder := t.TempDir()
	for i, v := range eventVariants() {
		server, err := run.BuildVariant(t.Context(), root, folder, v)
		require.NoError(t, err)
		const subscribers, events = 20, 10
		m, err := publishTo(context.Background(), server, nil, subscribers, events)
		require.NoError(t, err)
		require.Equal(t, uint64(subscribers*events), m.Requests)
		require.Equal(t, []float64{4 * subscribers, subscribers}[i], m.Counters["writes"], v.Name)
		require.Equal(t, []float64{(1 + subscribers) * eventBytes, eventBytes}[i], m.Counters["body_bytes_copied"], v.Name)
	}
}

// Both tables say how they are measured as long as they are not, and show what was counted.
func TestTablesOfEventsAndPin(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "docs", "data")
	require.NoError(t, os.MkdirAll(folder, 0o755))
	b := &builder{root: root}
	for name, table := range map[string]func() (string, error){eventsName: b.eventsTable, pinName: b.pinTable} {
		text, err := table()
		require.NoError(t, err)
		require.Contains(t, text, "<code>bench/out/bin/ladder docs refresh --only "+name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "pin.json"), []byte(`{"created":"2026-12-01T00:00:00Z","workload":"hello","cpus":2,"workers":2,"servers":[
		{"server":"stage5-speculative-read","requests":60000,"per_request":{"context-switches":0.0455,"cpu-migrations":0.0002}},
		{"server":"stage5-speculative-read -pin","requests":50000,"per_request":{"context-switches":0.1,"cpu-migrations":0.0001}}]}`), 0o644))
	text, err := b.pinTable()
	require.NoError(t, err)
	require.Contains(t, text, `<th scope="row">stage5 -pin</th><td>50,000</td><td>5</td><td>100.0</td>`)
	require.Contains(t, text, `<code>make stat STAGE=5 ARGS="--pin --layout shared"</code>, with 2 loops on 2 CPUs`)

	d := &results.Document{Schema: results.Schema, Version: results.Version, Servers: []results.Server{{Name: "start", Counters: true}, {Name: "reference", Counters: true}},
		Workloads: []results.Workload{{Name: "1 subscriber", Connections: 1}}, Ratios: []results.Ratio{{Kind: results.Pair, Workload: "1 subscriber", Metric: results.ServerCPU, Head: "reference", Base: "start"}}}
	for round := 1; round <= 6; round++ {
		for i, name := range []string{"start", "reference"} {
			d.Measurements = append(d.Measurements, results.Measurement{Round: round, Server: name, Workload: "1 subscriber", RequestsPerSecond: 100,
				ServerCPUNanos: []float64{40_000, 10_000}[i], Counters: map[string]float64{"writes": []float64{4, 1}[i], "body_bytes_copied": []float64{2000, 1000}[i]}})
		}
	}
	d.Build("")
	require.NoError(t, writeWhole(d, filepath.Join(folder, "events.json")))
	text, err = b.eventsTable()
	require.NoError(t, err)
	require.Contains(t, text, `<th scope="row">1 subscriber, start</th><td>4</td><td>2,000</td><td>40.0 µs</td>`)
	require.Contains(t, text, `<th scope="row">1 subscriber, reference</th><td>1</td><td>1,000</td><td>10.0 µs</td><td>`)
	require.Contains(t, text, "0.25")
}
