package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fields is the plainest http1.Headers: each field has one line.
type fields map[string]string

func (f fields) Get(name string) string { return f[name] }

func (f fields) Values(name string) []string {
	if value, ok := f[name]; ok {
		return []string{value}
	}
	return nil
}

func newApp(t testing.TB, o Options) *App {
	a := New(o)
	t.Cleanup(a.Close)
	return a
}

func serve(a *App, method, path string) http1.Response {
	var s http1.Response
	a.Serve(&http1.Request{Method: method, Target: path, Path: path}, &s)
	return s
}

func TestRoutes(t *testing.T) {
	a := newApp(t, Options{})
	for _, c := range []struct {
		method, path string
		status       int
		contentType  string
		body         string
		stable       bool
		allow        string
	}{
		{"GET", "/", 200, http1.TextPlain, "Hello, World!", true, ""},
		{"HEAD", "/", 200, http1.TextPlain, "Hello, World!", true, ""},
		{"POST", "/", 405, http1.TextPlain, "405 Method Not Allowed\n", true, "GET, HEAD"},
		{"get", "/", 405, http1.TextPlain, "405 Method Not Allowed\n", true, "GET, HEAD"},
		{"GET", "/api/status", 200, "application/json", `{"status":"ok"}`, true, ""},
		{"HEAD", "/api/status", 200, "application/json", `{"status":"ok"}`, true, ""},
		{"DELETE", "/api/status", 405, http1.TextPlain, "405 Method Not Allowed\n", true, "GET, HEAD"},
		{"GET", "/api/status/", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/api/echo", 405, http1.TextPlain, "405 Method Not Allowed\n", true, "POST"},
		{"HEAD", "/api/echo", 405, http1.TextPlain, "405 Method Not Allowed\n", true, "POST"},
		{"BREW", "/api/echo", 405, http1.TextPlain, "405 Method Not Allowed\n", true, "POST"},
		{"POST", "/api/echo", 200, "application/octet-stream", "", false, ""},
		{"GET", "/users/42", 200, "application/json", `{"id":"42"}`, false, ""},
		{"HEAD", "/users/42", 200, "application/json", `{"id":"42"}`, false, ""},
		{"GET", "/users/\"\x00é\xff", 200, "application/json", `{"id":"\"\u0000é\ufffd"}`, false, ""},
		{"PUT", "/users/42", 405, http1.TextPlain, "405 Method Not Allowed\n", true, "GET, HEAD"},
		{"GET", "/users/", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/users", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/users/a/b", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"POST", "/users/a/b", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/bytes/0", 200, "application/octet-stream", "", true, ""},
		{"GET", "/bytes/12", 200, "application/octet-stream", "0123456789AB", true, ""},
		{"HEAD", "/bytes/3", 200, "application/octet-stream", "012", true, ""},
		{"POST", "/bytes/3", 405, http1.TextPlain, "405 Method Not Allowed\n", true, "GET, HEAD"},
		{"GET", "/bytes/", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/bytes/01", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/bytes/00", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/bytes/-1", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/bytes/+1", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/bytes/1x", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/bytes/16777217", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"POST", "/bytes/16777217", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/bytes/99999999999999999999999", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/middleware/0", 200, http1.TextPlain, "Hello, World!", true, ""},
		{"GET", "/middleware/100", 200, http1.TextPlain, "Hello, World!", true, ""},
		{"GET", "/middleware/101", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"POST", "/middleware/1", 405, http1.TextPlain, "405 Method Not Allowed\n", true, "GET, HEAD"},
		{"GET", "/async-middleware/0", 200, http1.TextPlain, "Hello, World!", true, ""},
		{"HEAD", "/async-middleware/100", 200, http1.TextPlain, "Hello, World!", true, ""},
		{"GET", "/async-middleware/101", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"OPTIONS", "*", 204, "", "", false, "GET, HEAD, OPTIONS, POST"},
		{"OPTIONS", "/", 405, http1.TextPlain, "405 Method Not Allowed\n", true, "GET, HEAD"},
		{"GET", "/nowhere", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "//", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/test/panic", 404, http1.TextPlain, "404 Not Found\n", true, ""},
		{"GET", "/static/app.go", 404, http1.TextPlain, "404 Not Found\n", true, ""},
	} {
		t.Run(fmt.Sprintf("%s %q", c.method, c.path), func(t *testing.T) {
			s := serve(a, c.method, c.path)
			require.Equal(t, c.status, s.Status)
			require.Equal(t, c.contentType, s.ContentType)
			require.Equal(t, c.body, string(s.Body))
			require.Equal(t, c.stable, s.Stable)
			require.Equal(t, c.allow, s.Allow)
			require.False(t, s.Close)
		})
	}
}

func TestEchoAnswersWithTheBodyItself(t *testing.T) {
	a := newApp(t, Options{})
	body := []byte("some bytes")
	var s http1.Response
	a.Serve(&http1.Request{Method: "POST", Path: "/api/echo", Body: body, Headers: fields{"Content-Type": "text/csv"}}, &s)
	require.Equal(t, "text/csv", s.ContentType)
	require.Same(t, &body[0], &s.Body[0])
	require.False(t, s.Stable, "the body is a view of the request")
}

func TestPatternIsOneAndStaysWhatItIs(t *testing.T) {
	a := newApp(t, Options{})
	small := serve(a, "GET", "/bytes/1000").Body
	require.Equal(t, leastPattern, len(*a.pattern.made.Load()))
	large := serve(a, "GET", fmt.Sprint("/bytes/", maxBytes)).Body
	require.Len(t, large, maxBytes)
	require.Equal(t, small, large[:1000])
	for _, i := range []int{0, 60, 61, 65535, 65536, 1 << 20, maxBytes - 1} {
		require.Equal(t, patternDigits[i%61], large[i], "byte %d", i)
	}
	again := serve(a, "GET", "/bytes/70000").Body
	require.Same(t, &large[0], &again[0])
	require.Equal(t, len(again), cap(again), "an append must not write into the pattern")
}

func TestPatternForManyAtOnce(t *testing.T) {
	a := newApp(t, Options{})
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			body := serve(a, "GET", fmt.Sprint("/bytes/", leastPattern<<n/2)).Body
			if len(body) != leastPattern<<n/2 || body[len(body)-1] != patternDigits[(len(body)-1)%61] {
				t.Errorf("wrong body for %d", n)
			}
		})
	}
	all.Wait()
}

func TestAsynchronousLayersForManyAtOnce(t *testing.T) {
	a := newApp(t, Options{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				if body := serve(a, "GET", "/async-middleware/20").Body; string(body) != "Hello, World!" {
					t.Errorf("wrong body %q", body)
				}
			}
		})
	}
	all.Wait()
}

func TestTestRoutes(t *testing.T) {
	a := newApp(t, Options{TestRoutes: true})
	require.Panics(t, func() { serve(a, "GET", "/test/panic") })
	require.Equal(t, 405, serve(a, "POST", "/test/panic").Status)
	require.Equal(t, 404, serve(a, "GET", "/test/other").Status)

	line := []byte("value")
	var s http1.Response
	view := fields{"X-Keep": viewOf(line)}
	a.Serve(&http1.Request{Method: "GET", Path: "/test/keep", Headers: view}, &s)
	require.Equal(t, 200, s.Status)
	require.Equal(t, "value", string(serve(a, "GET", "/test/kept").Body))
	copy(line, "XXXXX")
	require.Equal(t, "XXXXX", string(serve(a, "GET", "/test/kept").Body), "it keeps a view, not a copy")
}

// TestNoAllocation holds the app to what the stages from stage3 on promise.
func TestNoAllocation(t *testing.T) {
	a := newApp(t, Options{TestRoutes: true})
	body := make([]byte, 2000)
	for _, c := range []struct{ method, path string }{
		{"GET", "/"}, {"HEAD", "/"}, {"POST", "/"}, {"GET", "/api/status"}, {"POST", "/api/echo"}, {"GET", "/api/echo"},
		{"GET", "/users/42"}, {"GET", "/users/\"\x00é\xff"}, {"GET", "/bytes/65536"}, {"GET", "/bytes/0"},
		{"GET", "/middleware/100"}, {"GET", "/async-middleware/10"}, {"OPTIONS", "*"},
		{"GET", "/nowhere"}, {"GET", "/users/"}, {"GET", "/bytes/x"}, {"POST", "/users/1"},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			q := &http1.Request{Method: c.method, Target: c.path, Path: c.path, Body: body, Headers: fields{"Content-Type": "text/csv"}}
			s := &http1.Response{Scratch: make([]byte, 0, 512)}
			a.Serve(q, s) // the first one makes the pattern and the helpers
			require.Zero(t, testing.AllocsPerRun(100, func() {
				s.Reset()
				a.Serve(q, s)
			}))
		})
	}
}

func TestScratchGrows(t *testing.T) {
	a := newApp(t, Options{})
	s := http1.Response{Scratch: make([]byte, 0, 16)}
	id := strings.Repeat("\x01", 4000)
	a.Serve(&http1.Request{Method: "GET", Path: "/users/" + id}, &s)
	require.Equal(t, `{"id":"`+strings.Repeat(`\u0001`, 4000)+`"}`, string(s.Body))
	require.GreaterOrEqual(t, cap(s.Scratch), 24000, "what grew is kept for the next answer")
}

func standardJSON(t testing.TB, text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(text))
	return strings.TrimSuffix(b.String(), "\n")
}

func TestJSONEveryByteAndRune(t *testing.T) {
	for c := range 256 {
		text := "a" + string([]byte{byte(c)}) + "z"
		require.Equal(t, standardJSON(t, text), string(appendJSON(nil, text)))
	}
	var all []byte
	for r := range rune(utf8.MaxRune + 1) {
		all = utf8.AppendRune(all, r)
	}
	require.True(t, standardJSON(t, string(all)) == string(appendJSON(nil, string(all))), "every rune")
	require.Equal(t, `x""`, string(appendJSON([]byte("x"), "")))
}

func FuzzJSON(f *testing.F) {
	for _, text := range []string{"", "42", "\"\\\b\f\n\r\t\x00\x1f\x7f", "é\u2028\u2029\ufffd", "\xff\xc3", "\xe2\x80", "<&>"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		require.Equal(t, standardJSON(t, text), string(appendJSON(nil, text)))
	})
}

// viewOf is a string that shares its bytes with b, as a stage's views do.
func viewOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
