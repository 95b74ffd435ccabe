package site

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// chromium is a headless Chromium, spoken to through the DevTools protocol over
// a pair of pipes, which needs no library and no port. There is one for all tests:
// its start takes seconds of CPU.
type chromium struct {
	cmd     *exec.Cmd
	profile string
	out     io.WriteCloser
	in      chan message // closed when it has ended
	next    atomic.Int64
}

// A browser is a test's own in it: nothing of another test's, and one page at a time.
type browser struct {
	*chromium
	t       *testing.T
	session string

	loaded   int      // pages that were loaded to their end
	problems []string // exceptions, errors on the console, requests that failed
	requests []string // addresses asked for
}

type message struct {
	ID      int64           `json:"id"`
	Session string          `json:"sessionId"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// startBrowser skips the test where there is no Chromium, see testenv.Browser.
func startBrowser(t *testing.T) *browser {
	if testing.Short() {
		t.Skip("opens a browser")
	}
	if runtime.GOOS != "linux" {
		t.Skip("Chromium is driven through inherited pipes, which this test does on Linux only")
	}
	path := testenv.Browser(t)
	if theChromium == nil {
		var err error
		theChromium, err = startChromium(path)
		require.NoError(t, err)
	}
	b := &browser{chromium: theChromium, t: t}
	var own struct {
		ID string `json:"browserContextId"`
	}
	b.call("Target.createBrowserContext", nil, &own)
	var target struct {
		ID string `json:"targetId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": own.ID}, &target)
	var attached struct {
		Session string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &attached)
	t.Cleanup(func() {
		b.t, b.session = t, ""
		b.call("Target.disposeBrowserContext", map[string]any{"browserContextId": own.ID}, nil)
	})
	b.session = attached.Session
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

var theChromium *chromium // nil: not started

func startChromium(path string) (c *chromium, err error) {
	c = &chromium{in: make(chan message, 4096)}
	if c.profile, err = os.MkdirTemp("", "browser"); err != nil {
		return nil, err
	}
	toRead, toWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromRead, fromWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.out = toWrite
	c.cmd = exec.Command(path, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--hide-scrollbars", "--force-device-scale-factor=1", "--user-data-dir="+c.profile, "about:blank")
	c.cmd.ExtraFiles = []*os.File{toRead, fromWrite}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	toRead.Close()
	fromWrite.Close()
	go func() {
		defer close(c.in)
		defer fromRead.Close()
		scanner := bufio.NewScanner(fromRead)
		scanner.Buffer(nil, 64<<20)
		scanner.Split(func(data []byte, end bool) (int, []byte, error) {
			if i := bytes.IndexByte(data, 0); i >= 0 {
				return i + 1, data[:i], nil
			}
			return 0, nil, nil
		})
		for scanner.Scan() {
			var m message
			if json.Unmarshal(scanner.Bytes(), &m) == nil {
				c.in <- m
			}
		}
	}()
	return c, nil
}

// close ends it. Without its pipe it ends by itself too.
func (c *chromium) close() {
	fmt.Fprint(c.out, `{"id":1000000,"method":"Browser.close"}`+"\x00")
	c.out.Close()
	for range c.in { // what nobody waits for any more
	}
	_ = c.cmd.Wait()
	for range 100 { // helper processes outlive it for a moment, and write there
		if os.RemoveAll(c.profile) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// call makes a request of the protocol and waits for its answer.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	id := b.next.Add(1)
	request := map[string]any{"id": id, "method": method}
	if params != nil {
		request["params"] = params
	}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, err := json.Marshal(request)
	require.NoError(b.t, err)
	_, err = b.out.Write(append(text, 0))
	require.NoError(b.t, err)
	m := b.until(func(m message) bool { return m.ID == id })
	require.Nil(b.t, m.Error, "%s", method)
	if result != nil {
		require.NoError(b.t, json.Unmarshal(m.Result, result))
	}
}

// until reads messages up to the one that is waited for, and notes what tells of
// problems and requests.
func (b *browser) until(wanted func(message) bool) message {
	b.t.Helper()
	limit := time.After(3 * time.Minute)
	for {
		select {
		case m, ok := <-b.in:
			require.True(b.t, ok, "the browser has ended")
			if m.Session != b.session {
				continue // an event of a test that is over
			}
			b.note(m)
			if wanted(m) {
				return m
			}
		case <-limit:
			require.Fail(b.t, "the browser does not answer")
		}
	}
}

func (b *browser) note(m message) {
	var p struct {
		Request struct {
			URL string `json:"url"`
		} `json:"request"`
		Details struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
		Entry struct {
			Level, Text, URL string
		} `json:"entry"`
		Type string `json:"type"`
		Text string `json:"errorText"`
	}
	_ = json.Unmarshal(m.Params, &p)
	switch m.Method {
	case "Page.loadEventFired":
		b.loaded++
	case "Network.requestWillBeSent":
		b.requests = append(b.requests, p.Request.URL)
	case "Network.loadingFailed":
		b.problems = append(b.problems, "not loaded: "+p.Text)
	case "Runtime.exceptionThrown":
		b.problems = append(b.problems, p.Details.Text+" "+p.Details.Exception.Description)
	case "Runtime.consoleAPICalled":
		if p.Type == "error" || p.Type == "warning" {
			b.problems = append(b.problems, "console: "+string(m.Params))
		}
	case "Log.entryAdded":
		if p.Entry.Level == "error" || p.Entry.Level == "warning" {
			b.problems = append(b.problems, p.Entry.Text+" "+p.Entry.URL)
		}
	}
}

// open goes to an address and waits until all of it is there.
func (b *browser) open(address string) {
	b.t.Helper()
	b.loading(func() { b.call("Page.navigate", map[string]any{"url": address}, nil) })
}

// loading waits until what f does has loaded a page.
func (b *browser) loading(f func()) {
	b.t.Helper()
	before := b.loaded
	f()
	if b.loaded == before {
		b.until(func(m message) bool { return m.Method == "Page.loadEventFired" })
	}
}

// size sets the window; dark asks for dark colours.
func (b *browser) size(width, height int, dark bool) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// eval runs an expression in the page.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var result struct {
		Result struct {
			Value any `json:"value"`
		} `json:"result"`
		Details *json.RawMessage `json:"exceptionDetails"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &result)
	require.Nil(b.t, result.Details, "%s", expression)
	return fmt.Sprint(result.Result.Value)
}

// press sends keys, one after the other, as a keyboard does.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		text := key
		if len([]rune(key)) > 1 {
			text = map[string]string{"Enter": "\r"}[key]
		}
		down := map[string]any{"type": "keyDown", "key": key, "text": text}
		if text == "" {
			delete(down, "text")
		}
		b.call("Input.dispatchKeyEvent", down, nil)
		b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
	}
}

// screenshot gives the window as a PNG, in base64.
func (b *browser) screenshot(whole bool) string {
	b.t.Helper()
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole}, &shot)
	return shot.Data
}

// requireSilence fails when anything went wrong, or was asked from elsewhere
// than the given beginning of an address.
func (b *browser) requireSilence(from string) {
	b.t.Helper()
	require.Empty(b.t, b.problems)
	for _, r := range b.requests {
		require.True(b.t, strings.HasPrefix(r, from) || strings.HasPrefix(r, "data:") || r == "about:blank", "asked for %s", r)
	}
}
