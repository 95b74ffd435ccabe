package site

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository, seen from this folder.
const root = "../.."

func TestBuild(t *testing.T) {
	site, err := builtSite()
	require.NoError(t, err)
	again, err := Build(root)
	require.NoError(t, err)
	require.Equal(t, site.Files, again.Files, "the same sources make the same site")

	// Nothing is loaded from elsewhere: only links that a reader follows lead out.
	loads := regexp.MustCompile(`(?i)<(?:script|img|link|iframe|source|video|object)\b[^>]*\b(?:src|href|data)="([^"]*)"|@import|url\(\s*['"]?([a-z]+:)?//`)
	for name, content := range site.Files {
		for _, found := range loads.FindAllSubmatch(content, -1) {
			require.NotRegexp(t, `^(?i)(?:[a-z]+:)?//`, string(found[1]), "%s loads %s", name, found[0])
		}
		for _, found := range summary.FindAll(content, -1) { // HTML, in which Markdown means nothing
			require.NotRegexp(t, "`|\\*\\w", string(found), name)
		}
		for part := range strings.SplitSeq(name, "/") {
			require.False(t, strings.HasPrefix(part, "."), "%s could not be served by the stages", name)
		}
	}
}

// What was measured on this machine stands beside our figures, in the text, in tables and in the
// picture; a run that did not complete, and one that there is not, make the site that everybody
// has.
func TestBesideThisMachine(t *testing.T) {
	folder := t.TempDir()
	for from, to := range map[string]string{"ladder.json": "ladder.json", "peers.json": "peers.json", "where.json": "where-hello.json", "labs/locks.json": LabFile("locks")} {
		text, err := os.ReadFile(filepath.Join(root, "docs", "data", filepath.FromSlash(from)))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, to), text, 0o644))
	}
	site, err := BuildBeside(root, filepath.Join(folder, "ladder.json"))
	require.NoError(t, err)
	const beside = `([0-9.]+(?: <small>[0-9]+%</small>)?)(?:</[a-z]+>)?<span class="mine" title="on this machine"><br>([0-9.]+(?: <small>[0-9]+%</small>)?)</span>`
	for page, row := range map[string]string{
		"1-reuseport.html": `kernel: TCP send</th><td><span title="[^"]*">`, "lab-locks.html": `mutex</span></th><td>`,
	} {
		found := regexp.MustCompile(row + beside).FindStringSubmatch(string(site.Files[page]))
		require.NotNil(t, found, page)
		require.Equal(t, found[1], found[2], "%s: the same file on both sides", page)
	}
	require.Regexp(t, `gnet</th><td><span [^>]*>[^<]*<br>[^<]*</span><span class="mine" title="on this machine"><br><span `, string(site.Files["9-what-comes-next.html"]))
	require.Regexp(t, `<body class="[^"]*with-mine`, string(site.Files["index.html"]))
	require.Contains(t, string(site.Files["index.html"]), "<title>0 naive on this machine: ")
	require.Contains(t, string(site.Files["2-conn-timer.html"]), `<th scope="col">on this machine</th>`)
	require.Regexp(t, `<span class="figure" title="hello\.stage1\.calls, [^"]*" data-mine="[0-9.]+">`, string(site.Files["2-conn-timer.html"]))
	without, err := BuildBeside(root, filepath.Join(t.TempDir(), "ladder.json"))
	require.NoError(t, err)
	require.NotContains(t, string(without.Files["index.html"]), "with-mine")
	require.NotContains(t, string(without.Files["2-conn-timer.html"]), "data-mine")
}

// TestCheck holds the chapters to what docs/README.md says: no figure typed in,
// every command there is.
func TestCheck(t *testing.T) { require.NoError(t, Check(root)) }

// marksOf are the names of the marks in a text.
func marksOf(text string) (names []string) {
	replaceMarks(text, func(_ int, found string) string {
		names = append(names, parseMark(found).name)
		return found
	})
	return names
}

// The chapters about a step are alike, so that a reader knows where to look.
func TestStepChaptersHaveTheSameParts(t *testing.T) {
	pages, err := readPages(root)
	require.NoError(t, err)
	want := []string{
		"The symptom, as a number", "The evidence", "The idea", "The diff, hunk by hunk", "What it brought", "The parts, apart",
		"What it costs, and when it does not pay", "Traps", "Questions", "Read on",
	}
	steps := 0
	for _, p := range pages {
		if p.Step == "" {
			continue
		}
		steps++
		var have []string
		for _, found := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(p.text, -1) {
			if found[1] != "Do it yourself" {
				have = append(have, found[1])
			}
		}
		require.Equal(t, want, have, p.source)
		require.GreaterOrEqual(t, strings.Count(p.text, "<details><summary>"), 4, "%s: questions", p.source)
		require.Subset(t, marksOf(p.text), []string{"diagram", "flame", "hunk", "test", "man"}, p.source)
		traps := p.text[strings.Index(p.text, "## Traps"):strings.Index(p.text, "## Questions")]
		for line := range strings.Lines(traps) {
			if strings.HasPrefix(line, "- ") {
				require.Contains(t, marksOf(line), "test", "%s: which test catches this? %s", p.source, line)
			}
		}
	}
	require.Equal(t, 5, steps)
}

// runBlock is a code block that says it can be run: ```sh run, or ```go run.
type runBlock struct {
	file     string
	line     int
	language string
	code     string
	prints   string // what the text says that it prints; "" if it does not say
}

var runFence = regexp.MustCompile("(?ms)^```(sh|go) run$\n(.*?)^```$(?:\n\nIt prints\n\n```text\n(.*?)^```$)?")

// runBlocks are all code blocks of the documentation that are marked to be run.
func runBlocks(root string) ([]runBlock, error) {
	files, err := repositoryFiles(root, ".md")
	if err != nil {
		return nil, err
	}
	var out []runBlock
	for _, name := range files {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		for _, at := range runFence.FindAllSubmatchIndex(b, -1) {
			out = append(out, runBlock{
				file: name, line: strings.Count(string(b[:at[0]]), "\n") + 1,
				language: string(b[at[2]:at[3]]), code: string(b[at[4]:at[5]]),
			})
			if at[6] >= 0 {
				out[len(out)-1].prints = string(b[at[6]:at[7]])
			}
		}
	}
	return out, nil
}

// TestRunBlocks runs the code blocks that are marked to be run.
func TestRunBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("runs commands")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the commands are for Linux")
	}
	blocks, err := runBlocks(root)
	require.NoError(t, err)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		t.Run(filepath.Base(b.file), func(t *testing.T) {
			var cmd *exec.Cmd
			switch b.language {
			case "sh":
				cmd = exec.CommandContext(t.Context(), "sh", "-e", "-c", b.code)
			case "go":
				file := filepath.Join(t.TempDir(), "main.go")
				require.NoError(t, os.WriteFile(file, []byte(b.code), 0o600))
				cmd = exec.CommandContext(t.Context(), "go", "run", file)
			}
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s:%d:\n%s", b.file, b.line, out)
			require.NotEmpty(t, out, "%s:%d prints nothing", b.file, b.line)
			if b.prints != "" {
				require.Equal(t, b.prints, string(out), "%s:%d", b.file, b.line)
			}
		})
	}
}

// Search finds code and tables by what stands in them, and a term of the glossary where it is explained.
func TestSearchIndex(t *testing.T) {
	site, err := builtSite()
	require.NoError(t, err)
	var index []struct{ P, U, H, T string }
	script := strings.TrimSuffix(strings.TrimPrefix(string(site.Files["search.js"]), "window.searchIndex = "), ";\n")
	require.NoError(t, json.Unmarshal([]byte(script), &index))
	found := func(href, text string) bool {
		for _, e := range index {
			if e.U == href && strings.Contains(e.T, text) {
				return true
			}
		}
		return false
	}
	require.True(t, found("2-conn-timer.html#d-idle.go-conn.setTimer", "func (c *conn) setTimer("), "code")
	require.True(t, found("2-conn-timer.html#what-it-brought", "to the one before"), "a table")
	require.True(t, found("2-conn-timer.html#questions", "In the documents it is an atomic"), "a question")
	require.True(t, found("glossary.html#accept", "a finished handshake"), "a term")
	require.Contains(t, string(site.Files["glossary.html"]), `<p id="accept"><strong>Accept.</strong>`)
}

// Every exercise is a page, with links to it from the pages that name it, and from it to them.
func TestExercisesArePages(t *testing.T) {
	site, err := Build(root)
	require.NoError(t, err)
	folders, err := filepath.Glob(filepath.Join(root, "docs", "workshop", "exercises", "[0-9]*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	list := string(site.Files[exercisesName])
	named := map[int]string{1: "1-reuseport.html", 16: "stage0.html", 24: "9-what-comes-next.html"}
	for i := range folders {
		name := fmt.Sprintf("exercise-%d.html", i+1)
		text := string(site.Files[name])
		require.Contains(t, text, fmt.Sprintf("<h1 id=\"%d-", i+1))
		require.Contains(t, list, `<a href="`+name+`">`)
		_, back, _ := strings.Cut(text, "Named in: ")
		require.Regexp(t, `^<a href="[^"]+\.html">`, back, name)
		if from := named[i+1]; from != "" {
			require.Contains(t, back, `<a href="`+from+`">`)
			require.Contains(t, string(site.Files[from]), `<a href="`+name+`">`)
		}
	}
	require.Contains(t, string(site.Files["index.html"]), `<a href="`+exercisesName+`">`, "in the menu")
}

func TestExercisesAreLinked(t *testing.T) {
	here := &page{source: "x.md", out: "source/x.html", Short: "X"}
	b := &builder{}
	for _, n := range []int{1, 3, 16} {
		b.exercises = append(b.exercises, &exercise{page: &page{out: fmt.Sprintf("exercise-%d.html", n)}, number: n})
	}
	for text, want := range map[string]string{
		"<p>See exercise 16.</p>":            `<p>See <a href="../exercise-16.html">exercise 16</a>.</p>`,
		"Exercises 3, 4 or 16, 2 days":       `<a href="../exercise-3.html">Exercises 3</a>, 4 or <a href="../exercise-16.html">16</a>, 2 days`,
		"<code>make exercise N=3</code>":     `<a href="../exercise-3.html"><code>make exercise N=3</code></a>`,
		"<code>make exercise</code>":         `<a href="../exercises.html"><code>make exercise</code></a>`,
		"<code>make stage1 run</code>":       "<code>make stage1 run</code>",
		`<a href="y">exercise 3</a>`:         `<a href="y">exercise 3</a>`,
		`<h2 id="a">Exercise 3</h2>`:         `<h2 id="a">Exercise 3</h2>`,
		`<i title="exercise 3">1 > 0</i>`:    `<i title="exercise 3">1 > 0</i>`,
		"<pre><code>exercise 3</code></pre>": "<pre><code>exercise 3</code></pre>",
	} {
		require.Equal(t, want, b.linkExercises(here, text))
	}
	require.Equal(t, []*page{here}, b.exercises[1].named)
	require.Empty(t, b.exercises[0].named)
}

// A dead anchor is told, also on a page that a chapter only links to.
func TestCheckLinks(t *testing.T) {
	b := &builder{}
	b.checkLinks(&Site{Files: map[string][]byte{
		"a.html":        []byte(`<h2 id="here"></h2><a href="source/b.html#there">b</a> <a href="#here">a</a> <a href="https://example.org/#x">c</a>`),
		"source/b.html": []byte(`<h2 id="there"></h2><a href="../a.html#here">a</a> <a href="../a.html#gone">a</a> <a href="a.html">a</a>`),
	}})
	require.Len(t, b.errs, 2)
	require.ErrorContains(t, b.errs[0], "source/b.html: a link leads to ../a.html#gone, which has no such place")
	require.ErrorContains(t, b.errs[1], "source/b.html: a link leads to a.html, which is not there")
}

func TestWrite(t *testing.T) {
	site := &Site{Files: map[string][]byte{"site.css": []byte("x"), "source/a.html": []byte("y")}}
	folder := filepath.Join(t.TempDir(), "site")
	require.NoError(t, site.Write(folder))
	require.FileExists(t, filepath.Join(folder, "source", "a.html"))
	delete(site.Files, "source/a.html")
	require.NoError(t, site.Write(folder))
	require.NoFileExists(t, filepath.Join(folder, "source", "a.html"), "what an earlier site left")

	foreign := t.TempDir()
	kept := filepath.Join(foreign, "thesis.txt")
	require.NoError(t, os.WriteFile(kept, []byte("ten years"), 0o600))
	require.ErrorContains(t, site.Write(foreign), "something that is not this site")
	require.FileExists(t, kept)
}

func TestServeOnLoopbackOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:80", "example.org:80", "8000"} {
		require.Error(t, Serve(t.Context(), t.TempDir(), address, io.Discard), address)
	}
}

// Whoever ends it does not wait for a connection that a browser keeps open and asks nothing on.
func TestServeEndsWithConnectionsOpen(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "page.txt"), []byte("a page"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, folder, "127.0.0.1:0", out) }()
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	home, _, _ := strings.Cut(line, " ")
	silent, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(home, "http://"), "/"))
	require.NoError(t, err)
	defer silent.Close()
	answer, err := http.Get(home + "page.txt")
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, "a page", string(text))
	cancel()
	require.NoError(t, <-ended)
	_, err = silent.Read(make([]byte, 1))
	require.Error(t, err, "closed")
}

// Diagrams are part of a page in light and in dark, so they name no colour that
// does not come from it.
func TestDiagrams(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "diagrams", "*.svg"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	used := map[string]bool{}
	pages, err := readPages(root)
	require.NoError(t, err)
	for _, p := range pages {
		replaceMarks(p.text, func(_ int, found string) string {
			if m := parseMark(found); m.name == "diagram" {
				used[m.args[0]] = true
			}
			return found
		})
	}
	colours := regexp.MustCompile(`^(?:currentColor|none|var\(--[a-z-]+, #[0-9a-f]{3,6}\)|url\(#[a-z]+\))$`)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, used[strings.TrimSuffix(filepath.Base(file), ".svg")], "no chapter shows %s", file)
		require.Contains(t, string(b), "\n  "+pictureStyle+"\n", "%s: its colours where it is an image", file)
		decoder := xml.NewDecoder(strings.NewReader(string(b)))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			element, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			names := []string{}
			for _, a := range element.Attr {
				names = append(names, a.Name.Local)
				if a.Name.Local == "fill" || a.Name.Local == "stroke" {
					require.Regexp(t, colours, a.Value, file)
				}
			}
			if element.Name.Local == "svg" {
				require.True(t, slices.Contains(names, "aria-label") && slices.Contains(names, "viewBox"), file)
			}
		}
	}
}
