package profile

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// half is a second recording, of a server that needs half the time for the same.
func half(t *testing.T) *record {
	r := recorded(t, "perf")
	r.server = "stage1-reuseport"
	r.outcome.counters.Process.CPUNanos = 100_000_000
	return r
}

func written(t *testing.T, sides ...[]*record) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flame.html")
	require.NoError(t, writeFile(path, newPage(sides, "abc").write))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// shows are the graphs of a page, in their order: what each says of itself.
func shows(html string) (graphs [][]string) {
	return regexp.MustCompile(`<div class="graph" data-name="([^"]*)" data-view="[^"]*" data-source="([^"]*)" data-sides="([^"]*)"[^>]*><p class="about">([^<]*)</p>`).FindAllStringSubmatch(html, -1)
}

func TestPageIsSelfContained(t *testing.T) {
	html := written(t, []*record{recorded(t, "go"), recorded(t, "perf")})
	for _, m := range regexp.MustCompile(`(?i)(?:src|href)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		require.Equal(t, "data:,", m[1])
	}
	require.NotRegexp(t, `(?i)url\(|@import|https?://|fetch\(|XMLHttpRequest`, html)
	graphs := shows(html)
	require.Len(t, graphs, 2)
	require.Equal(t, "perf (cpu-clock)", graphs[0][2], "the one that sees more comes first")
	require.Equal(t, goSource, graphs[1][2])
	require.Contains(t, graphs[0][4], "20.00 µs of server CPU per request")
	require.Contains(t, html, "light-dark(")
}

func TestNamesCannotBreakThePage(t *testing.T) {
	r := recorded(t, "go")
	r.stacks[0].frames = append([]frame{{`</script><script>alert("1")`, libraryCode}}, r.stacks[0].frames...)
	html := written(t, []*record{r})
	require.NotContains(t, html, `<script>alert`)
	require.Contains(t, html, `title="&lt;/script&gt;&lt;script&gt;alert(&#34;1&#34;): `)
}

// Every frame is at least as wide as what lies below it, and the root is the CPU time of a request.
func TestTreeAddsUp(t *testing.T) {
	root := graphOf(recorded(t, "perf"), false).root
	require.InEpsilon(t, 20_000, root.values[0], 1e-9)
	checkTree(t, root)
}

func checkTree(t *testing.T, root *node) {
	root.all(func(n *node) bool {
		for side, v := range n.values {
			sum := 0.0
			for _, c := range n.children {
				sum += c.values[side]
			}
			require.LessOrEqual(t, sum, v+1e-6, n.frame.name)
		}
		return true
	})
}

// The same samples, from a server that answered twice as many requests in the
// same time, are half as much for each of them.
func TestDifferenceIsPerRequest(t *testing.T) {
	root := Difference(graphOf(recorded(t, "perf"), true), graphOf(half(t), true)).root
	require.InEpsilon(t, 20_000, root.values[0], 1e-9)
	require.InEpsilon(t, 10_000, root.values[1], 1e-9)
	checkTree(t, root)
	parts := recorded(t, "perf").split()
	for _, c := range root.children {
		require.InEpsilon(t, c.values[0], 2*c.values[1], 1e-9)
		require.Contains(t, categoryNames, c.frame.name)
		for i, name := range categoryNames {
			if name == c.frame.name {
				require.InEpsilon(t, parts[i], c.values[0], 1e-9)
			}
		}
	}
	graphs := shows(written(t, []*record{recorded(t, "perf")}, []*record{half(t)}))
	require.Len(t, graphs, 3)
	require.Equal(t, "difference", graphs[0][1])
	require.Equal(t, "stage0,stage1", graphs[0][3])
	require.Equal(t, "stage1", graphs[2][1])
}

// What a step takes away is outlined once, where it begins, and what is there by chance only is
// not.
func TestGoneFrames(t *testing.T) {
	before := &Outline{About: "stage1 on hello, by perf; 1,000 samples", Time: map[string]int64{
		"main.run;main.arm;netpoll.SetTimer": 50, "main.run;main.close;netpoll.SetTimer": 30, "main.run;main.rare": 1, "main.run;netpoll.Send;[kernel] sendto": 919,
	}}
	after := &Outline{About: "stage2", Time: map[string]int64{"main.run;main.arm": 10, "main.run;main.close": 5, "main.run;netpoll.Send;[kernel] sendto": 900}}
	g := before.Graph("stage1", 20)
	require.InEpsilon(t, 20_000, g.root.values[0], 1e-9, "the price that was measured")
	require.InEpsilon(t, 20, g.step[0], 1e-9)
	names, shares := g.MarkGone(after.Graph("stage2", 10), 0.01)
	require.Equal(t, []string{"netpoll.SetTimer"}, names)
	require.InEpsilon(t, 0.08, shares[0], 1e-9)
	html := (&Figure{ID: "f", Graphs: []*Graph{g}, Code: func(name string) string { return map[string]string{"main.arm": "#d-arm"}[name] }}).HTML()
	require.Equal(t, 2, strings.Count(html, `class="project gone"`))
	require.Contains(t, html, `<a href="#d-arm" class="project" data-v="1000" title="main.arm: 5.0%">arm</a>`)
	require.Contains(t, html, `<span class="kernel" data-v="18380" title="[kernel] sendto: 92%">sendto</span>`)
	require.Equal(t, "http.readRequest", frameLabel("net/http.readRequest"))
	require.Equal(t, "loop.run", frameLabel("main.(*loop).run"))
}

func TestRecordingsOfOneServerJoin(t *testing.T) {
	r := recorded(t, "perf")
	samples, weight := r.samples, r.weight
	require.NoError(t, r.join(recorded(t, "perf")))
	require.Equal(t, 2*samples, r.samples)
	require.Equal(t, 2*weight, r.weight)
	require.Equal(t, int64(20_000), r.outcome.requests)
	require.InEpsilon(t, 20_000, r.outcome.cpuNanos(), 1e-9)
	require.NoError(t, r.profile.CheckValid())
}

// A file that could not be finished is not there, nor is anything else.
func TestNoBrokenFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "flame.html")
	full := errors.New("no space left")
	require.ErrorIs(t, writeFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "half of a page")
		require.NoError(t, err)
		return full
	}), full)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Zoom and search, in a real browser where there is one: as a link asks for them,
// and by mouse and keys.
func TestPageWorksInABrowser(t *testing.T) {
	t.Parallel()
	t.Run("link", func(t *testing.T) {
		t.Parallel()
		html := browse(t, "", "#flame?view=stage0&search=^tcp_send(msg|page)$&zoom=main.(*conn).parse&up=1")
		require.Regexp(t, `<output>[0-9.]+% of the whole</output>`, html)
		require.Regexp(t, `<p class="detail" role="status">main\.\(\*conn\)\.parse — [0-9.]+% of the whole, [0-9.]+ µs per request`, html)
		require.Regexp(t, `<div class="fr path"[^>]*><span class="project"[^>]*title="main\.\(\*conn\)\.parse: `, html)
		require.Contains(t, html, `<figure class="flame whole up" id="flame">`)
		require.Contains(t, html, `<button type="button">Zoom out</button>`, "zoomed, so that one can zoom out")
	})
	t.Run("mouse and keys", func(t *testing.T) {
		t.Parallel()
		html := browse(t, interaction, "#flame?view=stage0")
		_, text, ok := strings.Cut(html, `<pre id="log">`)
		require.True(t, ok)
		text, _, _ = strings.Cut(text, "</pre>")
		var log []string
		require.NoError(t, json.Unmarshal([]byte(text), &log), text)
		require.Len(t, log, 9)
		require.Regexp(t, `^main\.\(\*conn\)\.parse — [0-9.]+% of the whole`, log[0], "hover")
		require.Equal(t, "100% true", log[1], "a click zooms in")
		require.Contains(t, log[2], "zoom=main.%28*conn%29.parse", "the address keeps it")
		require.Regexp(t, `^[0-9.]+% of the whole$`, log[3], "search")
		require.Equal(t, "none", log[4], "nothing beside the zoomed frame is drawn, found or not")
		require.Equal(t, "false", log[5], "Escape zooms out")
		require.Regexp(t, `^[1-9][0-9]*$`, log[6], "what is found is marked")
		require.Regexp(t, `^kernel runtime library project`, log[7], "four colours that differ")
		require.Regexp(t, `stage0 20\.00 µs.*stage1 10\.00 µs`, log[8], "another graph")
	})
}

const interaction = `<pre id="log"></pre><script>
const log = [], find = (name) => [...document.querySelectorAll('.graph:not([hidden]) .fr > :first-child')].find((e) => e.node.name === name && e.getClientRects().length);
const text = (selector) => document.querySelector(selector).textContent;
const out = [...document.querySelectorAll('.tools button')].find((b) => b.textContent === 'Zoom out');
const parse = find('main.(*conn).parse');
parse.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
log.push(text('.detail'));
parse.click();
log.push(Math.round(100 * find('main.(*conn).parse').offsetWidth / document.querySelector('.graph:not([hidden]) .frames > .fr').offsetWidth) + '% ' + !out.disabled);
log.push(location.hash);
const search = document.querySelector('.tools input');
search.value = 'tcp_sendm.g$';
search.dispatchEvent(new Event('input'));
log.push(text('output'));
log.push(find('tcp_sendmsg') ? 'drawn' : 'none');
document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
log.push(String(!out.disabled));
log.push(String(document.querySelectorAll('.graph:not([hidden]) .match').length));
const kinds = ['kernel', 'runtime', 'library', 'project'];
const colours = new Set(kinds.map((k) => getComputedStyle(document.querySelector('.graph:not([hidden]) .frames .' + k + ':not(.match)')).backgroundColor));
log.push(colours.size === 4 ? kinds.join(' ') : [...colours].join(' '));
[...document.querySelectorAll('.tools button')].find((b) => b.textContent === 'difference').click();
log.push(text('.graph:not([hidden]) .about'));
document.getElementById('log').textContent = JSON.stringify(log);
</script>`

// browse opens a page of two servers, with more of HTML at its end, and returns what it became.
func browse(t *testing.T, more, fragment string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("opens a browser")
	}
	browser := testenv.Browser(t)
	folder := t.TempDir()
	path := filepath.Join(folder, "flame.html")
	page := newPage([][]*record{{recorded(t, "perf")}, {half(t)}}, "")
	require.NoError(t, writeFile(path, func(w io.Writer) error {
		if err := page.write(w); err != nil {
			return err
		}
		_, err := io.WriteString(w, more)
		return err
	}))
	cmd := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--user-data-dir="+filepath.Join(folder, "browser"), "--window-size=1400,900", "--dump-dom", "file://"+path+fragment)
	cmd.Env = append(os.Environ(), "HOME="+folder)
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}
