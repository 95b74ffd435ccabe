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

func dataOf(t *testing.T, html string) (d struct {
	Names [][2]any
	Views []struct {
		Title, Source, About string
		Labels               []string
		Step                 []float64
		Tree                 []any
	}
}) {
	t.Helper()
	_, rest, ok := strings.Cut(html, `<script id="data" type="application/json">`)
	require.True(t, ok)
	text, _, ok := strings.Cut(rest, "</script>")
	require.True(t, ok)
	require.NoError(t, json.Unmarshal([]byte(text), &d))
	return d
}

func TestPageIsSelfContained(t *testing.T) {
	html := written(t, []*record{recorded(t, "go"), recorded(t, "perf")})
	for _, m := range regexp.MustCompile(`(?i)(?:src|href)="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		require.Equal(t, "data:,", m[1])
	}
	require.NotRegexp(t, `(?i)url\(|@import|https?://|fetch\(|XMLHttpRequest`, html)
	d := dataOf(t, html)
	require.Len(t, d.Views, 2)
	require.Equal(t, "perf (cpu-clock)", d.Views[0].Source, "the one that sees more comes first")
	require.Equal(t, goSource, d.Views[1].Source)
	require.Contains(t, d.Views[0].About, "20.00 µs of server CPU per request")
	require.Contains(t, html, "prefers-color-scheme: dark")
}

func TestNamesCannotBreakThePage(t *testing.T) {
	r := recorded(t, "go")
	r.stacks[0].frames = append([]frame{{`</script><script>alert("1")`, libraryCode}}, r.stacks[0].frames...)
	html := written(t, []*record{r})
	require.NotContains(t, html, `<script>alert`)
	require.NotEmpty(t, dataOf(t, html).Names)
}

// Every frame is at least as wide as what lies on it, and the root is the CPU time of a request.
func TestTreeAddsUp(t *testing.T) {
	root := treeOf(false, recorded(t, "perf"))
	require.InEpsilon(t, 20_000, root.values[0], 1e-9)
	checkTree(t, root)
}

func checkTree(t *testing.T, n *node) {
	for side, v := range n.values {
		sum := 0.0
		for _, c := range n.children {
			sum += c.values[side]
		}
		require.LessOrEqual(t, sum, v+1e-6, n.frame.name)
	}
	for _, c := range n.children {
		checkTree(t, c)
	}
}

// The same samples, from a server that answered twice as many requests in the
// same time, are half as much for each of them.
func TestDifferenceIsPerRequest(t *testing.T) {
	root := treeOf(true, recorded(t, "perf"), half(t))
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
	d := dataOf(t, written(t, []*record{recorded(t, "perf")}, []*record{half(t)}))
	require.Len(t, d.Views, 3)
	require.Equal(t, "difference", d.Views[0].Title)
	require.Equal(t, []string{"stage0", "stage1"}, d.Views[0].Labels)
	require.Equal(t, "stage1", d.Views[2].Title)
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
		html := browse(t, "", "#graph=stage0&search=tcp_sendmsg&zoom=main.(*conn).parse")
		require.Regexp(t, `<output id="matched"[^>]*>[0-9.]+% of the whole</output>`, html)
		require.Regexp(t, `<p id="detail"[^>]*>main\.\(\*conn\)\.parse — [0-9.]+% of the whole, [0-9.]+ µs per request`, html)
		require.Regexp(t, `class="frame project faded"[^>]*>main\.\(\*loop\)\.run<`, html, "what lies below the frame that is zoomed into")
		require.NotContains(t, html, ">tcp_sendmsg<", "nothing beside it is drawn")
		require.Contains(t, html, `<button id="out" type="button">`, "zoomed, so that one can zoom out")
	})
	t.Run("mouse and keys", func(t *testing.T) {
		t.Parallel()
		html := browse(t, interaction, "#graph=stage0")
		_, text, ok := strings.Cut(html, `<pre id="log">`)
		require.True(t, ok)
		text, _, _ = strings.Cut(text, "</pre>")
		var log []string
		require.NoError(t, json.Unmarshal([]byte(text), &log))
		require.Len(t, log, 8)
		require.Regexp(t, `^main\.\(\*conn\)\.parse — [0-9.]+% of the whole`, log[0], "hover")
		require.Equal(t, "100% true", log[1], "a click zooms in")
		require.Regexp(t, `^[0-9.]+% of the whole$`, log[2], "search")
		require.Equal(t, "none", log[3], "nothing beside the zoomed frame is drawn, found or not")
		require.Equal(t, "false", log[4], "Escape zooms out")
		require.Regexp(t, `^[1-9][0-9]*$`, log[5], "what is found is marked")
		require.Regexp(t, `^kernel runtime library project`, log[6], "four colours that differ")
		require.Regexp(t, `perf.*stage0 20\.00 µs.*stage1 10\.00 µs`, log[7], "another graph")
	})
}

const interaction = `<pre id="log"></pre><script>
const log = [], find = (name) => [...document.querySelectorAll('.frame')].find((e) => e.node.name === name);
const text = (id) => document.getElementById(id).textContent;
const parse = find('main.(*conn).parse');
parse.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
log.push(text('detail'));
parse.click();
log.push(Math.round(parseFloat(find('main.(*conn).parse').style.width)) + '% ' + !document.getElementById('out').disabled);
const search = document.getElementById('search');
search.value = 'tcp_sendmsg';
search.dispatchEvent(new Event('input'));
log.push(text('matched'));
log.push(find('tcp_sendmsg') ? 'drawn' : 'none');
document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
log.push(String(!document.getElementById('out').disabled));
log.push(String(document.querySelectorAll('.frame.match').length));
const kinds = ['kernel', 'runtime', 'library', 'project'];
const colours = new Set(kinds.map((k) => getComputedStyle(document.querySelector('.frame.' + k + ':not(.match)')).backgroundColor));
log.push(colours.size === 4 ? kinds.join(' ') : [...colours].join(' '));
[...document.querySelectorAll('#graphs button')].find((b) => b.textContent === 'difference').click();
log.push(text('about'));
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
