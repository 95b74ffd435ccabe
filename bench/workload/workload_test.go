package workload

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/app"
	"github.com/qps-ladder/qps-ladder/shared/http1"
)

func TestEveryWorkloadIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range All() {
		require.False(t, seen[w.Name], "%s is there twice", w.Name)
		seen[w.Name] = true
		require.NotEmpty(t, w.Summary)
		require.Positive(t, w.Connections)
		require.Positive(t, w.Pipeline)
		require.NotEmpty(t, w.Body, w.Name)

		// One request, no byte after it, and one that the standard library reads.
		reader := bufio.NewReader(bytes.NewReader(w.Request))
		request, err := http.ReadRequest(reader)
		require.NoError(t, err, w.Name)
		_, err = io.Copy(io.Discard, request.Body)
		require.NoError(t, err, w.Name)
		_, err = reader.ReadByte()
		require.ErrorIs(t, err, io.EOF, w.Name)
		require.Equal(t, w.Reconnect, request.Close, w.Name)
	}
}

// What is sent over a WebSocket is one frame under a mask, and Body that frame without it (RFC 6455, 5.2).
func TestSocketWorkloads(t *testing.T) {
	for name, size := range map[string]int{"ws125": 125, "ws16k": 16384} {
		w, err := ByName(name)
		require.NoError(t, err)
		opening, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(w.Opening)))
		require.NoError(t, err)
		require.Equal(t, "websocket", opening.Header.Get("Upgrade"))
		require.Len(t, w.Request, len(w.Body)+4)
		payload := w.Body[len(w.Body)-size:]
		require.Equal(t, len(w.Body)-size, map[int]int{125: 2, 16384: 4}[size], "the head")
		key := w.Request[len(w.Request)-size-4:][:4]
		for i, b := range w.Request[len(w.Request)-size:] {
			require.Equal(t, payload[i], b^key[i%4])
		}
		require.NotContains(t, All(), w)
	}
}

func TestBrowserIsWhatItSays(t *testing.T) {
	w, err := ByName("browser")
	require.NoError(t, err)
	require.Equal(t, 14+1+1+1, bytes.Count(w.Request, []byte("\r\n"))+1, "14 fields, a request line, an empty line")
	require.InDelta(t, 800, len(w.Request), 60)
}

func TestUnknownNameListsAll(t *testing.T) {
	_, err := ByName("helo")
	require.ErrorContains(t, err, `no workload "helo"`)
	for _, w := range All() {
		require.ErrorContains(t, err, w.Name)
	}
}

// Ten thousand connections are as many as the machine can hold, and the name says how many those
// are.
func TestLargestWorkloadsTellTheirNumber(t *testing.T) {
	require.Equal(t, 10_000, Most(1<<20))
	require.Equal(t, 10_000, Most(20_500))
	require.Equal(t, 9_750, Most(20_000))
	require.Equal(t, 262, Most(1024))
	require.Equal(t, 2, Most(0), "c1 is another workload")

	set := func(w *Workload, n int) { w.Connections = n }
	summary := func(n string) string { return "over " + n }
	full := crowd("c10000", 10_000, summary, set)
	require.Equal(t, "c10000", full.Name)
	require.Equal(t, "over 10,000", full.Summary)
	require.Zero(t, full.Wanted)
	for name, want := range map[string]string{"c10000": "c9750", "idle10k": "idle9750"} {
		less := crowd(name, 9_750, summary, set)
		require.Equal(t, want, less.Name)
		require.Equal(t, name, less.Alias)
		require.Equal(t, 9_750, less.Connections)
		require.Equal(t, 10_000, less.Wanted)
		require.Contains(t, less.Summary, "over 9,750")
	}
	require.Equal(t, "c999", crowd("c10000", Most(2500), summary, set).Name, "c1000 is another workload")
	for _, name := range []string{"c10000", "idle10k"} {
		w, err := ByName(name)
		require.NoError(t, err)
		again, err := ByName(w.Name)
		require.NoError(t, err, "its name in tables finds it too")
		require.Equal(t, w, again)
		require.LessOrEqual(t, w.Total(), 10_100)
	}
}

func TestList(t *testing.T) {
	_, err := List("hello,json,hello")
	require.EqualError(t, err, "workload hello is named twice")
	all, err := List("all")
	require.NoError(t, err)
	require.Len(t, all, len(All()))
	two, err := List("hello, mw10")
	require.NoError(t, err)
	require.Equal(t, "mw10", two[1].Name)
	_, err = List("hello,nothing")
	require.ErrorContains(t, err, `no workload "nothing"`)
}

// Every request that the generator sends gets the answer it expects from the application itself.
func TestAnswersAreThoseOfTheApplication(t *testing.T) {
	for _, w := range All() {
		application := application
		if w.File != "" {
			folder := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(folder, w.File), w.Body, 0o600))
			application = app.New(app.Options{Static: folder, StaticMemory: 1 << 20})
			defer application.Close()
		}
		request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(w.Request)))
		require.NoError(t, err)
		body, err := io.ReadAll(request.Body)
		require.NoError(t, err)
		var q http1.Request
		var s http1.Response
		q.Method, q.Target, q.Path, q.Body, q.Headers = request.Method, request.URL.Path, request.URL.Path, body, request.Header
		application.Serve(&q, &s)
		require.Equal(t, w.Status, s.Status, w.Name)
		require.Equal(t, string(w.Body), string(s.Body), w.Name)
	}
	application.Close()
}
