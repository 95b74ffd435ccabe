package suite

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Clients lets clients that others have written use the server: net/http's, and curl and wrk where
// they are installed.
func Clients(t *testing.T) {
	t.Parallel()
	onTest, p := ofTest(t)
	runAll(onTest, p, []Check{
		{"net http, keep-alive", goKeepAlive},
		{"net http, bodies", goBodies},
		{"net http, expect", goExpect},
		{"net http, refused uploads", goRefusedUploads},
		{"net http, close", goClose},
		{"net http, no room", goNoRoom},
		{"curl", curl},
		{"curl, refused uploads", curlRefusedUploads},
		{"wrk", wrk},
	})
}

func goClient(t T) *http.Client {
	transport := &http.Transport{ExpectContinueTimeout: patience}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 2 * patience}
}

func do(t T, client *http.Client, request *http.Request) (*http.Response, []byte) {
	t.Helper()
	answer, err := client.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "qps-ladder", answer.Header.Get("Server"))
	return answer, body
}

func newRequest(t T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	request, err := http.NewRequest(method, url, body)
	require.NoError(t, err)
	return request
}

// A hundred requests over one connection. The client gives a connection up if its own goroutines take more than
// 50 ms to agree that a request was written, so a busy machine gets more attempts; a server that
// closes too early fails all of them.
func goKeepAlive(t T, p Program) {
	s := p.Start(t)
	connections := 0
	for range 5 {
		if connections = goKeepAliveOnce(t, s); connections == 1 {
			return
		}
	}
	require.Equal(t, 1, connections, "the client had to connect anew")
}

func goKeepAliveOnce(t T, s *Server) (connections int) {
	client := goClient(t)
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if !got.Reused {
			connections++
		}
	}}
	for i := range 100 {
		method, path, want := "GET", "/", Greeting
		switch i % 4 {
		case 1:
			method, want = "HEAD", ""
		case 2:
			path, want = "/nowhere", "404 Not Found\n"
		case 3:
			path, want = "/users/x%2520y", `{"id":"x%20y"}`
		}
		request := newRequest(t, method, "http://"+s.Ready.Address+path, nil)
		answer, body := do(t, client, request.WithContext(httptrace.WithClientTrace(context.Background(), trace)))
		require.Equal(t, want, string(body))
		require.False(t, answer.Close)
		if method == "HEAD" {
			require.EqualValues(t, len(Greeting), answer.ContentLength)
		}
	}
	return connections
}

func goBodies(t T, p Program) {
	s, client := p.Start(t), goClient(t)
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for name, reader := range map[string]func() io.Reader{
		"declared": func() io.Reader { return bytes.NewReader(body) },
		"chunked":  func() io.Reader { return struct{ io.Reader }{bytes.NewReader(body)} }, // of unknown length
	} {
		for range thorough(3, 1) {
			request := newRequest(t, "POST", "http://"+s.Ready.Address+"/api/echo", reader())
			request.Header.Set("Content-Type", "text/x-test")
			answer, got := do(t, client, request)
			require.Equal(t, 200, answer.StatusCode, name)
			require.Equal(t, "text/x-test", answer.Header.Get("Content-Type"))
			require.True(t, bytes.Equal(body, got), "%s: the body came back changed", name)
		}
	}
	answer, got := do(t, client, newRequest(t, "GET", "http://"+s.Ready.Address+"/bytes/16777216", nil))
	require.Equal(t, 200, answer.StatusCode)
	require.Len(t, got, maxAnswerBody)
}

func goExpect(t T, p Program) {
	s, client := p.Start(t), goClient(t)
	body := strings.Repeat("0123456789abcdef", 1<<16)
	asked := 0
	trace := &httptrace.ClientTrace{Got100Continue: func() { asked++ }}
	for range 3 {
		request := newRequest(t, "POST", "http://"+s.Ready.Address+"/api/echo", strings.NewReader(body))
		request.Header.Set("Expect", "100-continue")
		answer, got := do(t, client, request.WithContext(httptrace.WithClientTrace(context.Background(), trace)))
		require.Equal(t, 200, answer.StatusCode)
		require.Equal(t, body, string(got))
	}
	require.Equal(t, 3, asked)
}

func goClose(t T, p Program) {
	s, client := p.Start(t), goClient(t)
	for range 5 {
		request := newRequest(t, "GET", "http://"+s.Ready.Address+"/bytes/100000", nil)
		request.Close = true
		answer, body := do(t, client, request)
		require.True(t, answer.Close)
		require.Len(t, body, 100_000)
	}
}

// tool is where a program is; the test is skipped where it is not installed.
func tool(t T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// runTool runs a program, which must succeed, and returns its standard output.
func runTool(t T, path string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	c := exec.CommandContext(ctx, path, args...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	require.NoError(t, err, "%s %q: %s", filepath.Base(path), args, &stderr)
	return string(out)
}

// A client that finds no room sees the answer each time, with a body on its way too.
func goNoRoom(t T, p Program) {
	s := p.Start(t, "-max-conns", "1")
	dial(t, s).hello(t)
	for i := range 40 {
		client := goClient(t)
		method, body := "GET", ""
		if i%2 == 1 {
			method, body = "POST", strings.Repeat("a", 100_000)
		}
		answer, text := do(t, client, newRequest(t, method, "http://"+s.Ready.Address+"/api/echo", strings.NewReader(body)))
		require.Equal(t, 503, answer.StatusCode)
		require.True(t, answer.Close)
		require.Equal(t, "503 Service Unavailable\n", string(text))
		client.CloseIdleConnections()
	}
}

func curl(t T, p Program) {
	path := tool(t, "curl")
	s := p.Start(t)
	url := "http://" + s.Ready.Address
	run := func(args ...string) string {
		return runTool(t, path, append([]string{"-sS", "--max-time", "20"}, args...)...)
	}
	require.Equal(t, Greeting, run(url+"/"))
	require.Equal(t, Greeting, run("--http1.0", url+"/"))
	// The number of new connections, for each of three.
	require.Equal(t, Greeting+"1\n"+Greeting+"0\n"+Greeting+"0\n", run("-w", "%{num_connects}\n", url+"/", url+"/?a", url+"/?b"))
	require.Contains(t, run("-I", url+"/"), "Content-Length: 13\r\n")
	require.Equal(t, "405", run("-o", os.DevNull, "-w", "%{http_code}", "-X", "DELETE", url+"/"))
	require.Equal(t, "204", run("-w", "%{http_code}", "-X", "OPTIONS", "--request-target", "*", url))
	require.Equal(t, Greeting, run("--request-target", "http://elsewhere/", url))

	upload := filepath.Join(t.TempDir(), "upload")
	body := strings.Repeat("0123456789abcdef", 1<<16)
	require.NoError(t, os.WriteFile(upload, []byte(body), 0o600))
	require.Equal(t, body, run("--data-binary", "@"+upload, url+"/api/echo"))
	require.Equal(t, body, run("--data-binary", "@"+upload, "-H", "Expect: 100-continue", url+"/api/echo"))
	require.Equal(t, body, run("--data-binary", "@"+upload, "-H", "Transfer-Encoding: chunked", url+"/api/echo"))
	require.Equal(t, "16777216", run("-o", os.DevNull, "-w", "%{size_download}", url+"/bytes/16777216"))
}

func wrk(t T, p Program) {
	path := tool(t, "wrk")
	s := p.Start(t)
	for _, target := range thorough([]string{"/", "/bytes/65536"}, []string{"/"}) {
		out := runTool(t, path, "-t1", "-c20", "-d1s", "--timeout", "10s", "http://"+s.Ready.Address+target)
		require.NotContains(t, out, "Non-2xx")
		require.NotContains(t, out, "Socket errors")
		match := regexp.MustCompile(`(\d+) requests in`).FindStringSubmatch(out)
		require.NotNil(t, match, out)
		done, err := strconv.Atoi(match[1])
		require.NoError(t, err)
		require.Positive(t, done, out)
		t.Logf("%s: %d requests", target, done)
	}
	s.Await(t, "rest", func(r harness.Reading) bool { return r.Total.Connections == 0 })
}
