package site

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/report"
	"github.com/qps-ladder/qps-ladder/bench/results"
)

// builtSite is the site, built once for all tests that only look at it.
var builtSite = sync.OnceValues(func() (*Site, error) { return Build(root) })

// siteFolder is where writtenSite has written it; "" before.
var siteFolder string

func TestMain(m *testing.M) {
	code := m.Run()
	if theChromium != nil {
		theChromium.close()
	}
	if siteFolder != "" {
		_ = os.RemoveAll(siteFolder)
	}
	os.Exit(code)
}

// writtenSite is the folder of the site, which is all tests', and its pages.
func writtenSite(t *testing.T) (folder string, pages []string) {
	site, err := builtSite()
	require.NoError(t, err)
	if siteFolder == "" {
		folder, err := os.MkdirTemp("", "site")
		require.NoError(t, err)
		siteFolder = folder
		require.NoError(t, site.Write(folder))
	}
	for _, p := range site.pages {
		pages = append(pages, p.out)
	}
	return siteFolder, pages
}

// TestPagesInBrowser opens every page as a file, wide and at a phone's width,
// and uses what a reader uses, with the keyboard alone.
func TestPagesInBrowser(t *testing.T) {
	b := startBrowser(t)
	folder, pages := writtenSite(t)
	address := func(page string) string {
		return (&url.URL{Scheme: "file", Path: filepath.Join(folder, page)}).String()
	}
	home := (&url.URL{Scheme: "file", Path: folder}).String()

	for _, size := range []struct {
		width int
		dark  bool
	}{{1440, false}, {1024, true}, {390, false}} {
		b.size(size.width, 850, size.dark)
		for _, page := range pages {
			b.open(address(page))
			if size.width == 1440 {
				require.Empty(t, b.eval(`[...document.querySelectorAll(".table")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent.slice(0, 60)).join("\n")`), "%s: a table that is moved sideways", page)
			}
			if size.width >= 1024 {
				require.Empty(t, b.eval(smallText), "%s: letters of less than 10 px in a drawing", page)
				require.Empty(t, b.eval(cutText), "%s: words that leave their drawing", page)
			}
			if size.width == 1024 {
				b.eval(`document.querySelector('.tabs [data-pane="code"]')?.click()`)
				require.Empty(t, b.eval(`[...document.querySelectorAll(".code")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent.slice(0, 60)).join("\n")`), "%s: code that is moved sideways", page)
				b.eval(`document.querySelector('.tabs [data-pane="text"]')?.click()`)
			}
			require.Equal(t, "true", b.eval(`document.documentElement.scrollWidth <= innerWidth`), "%s is wider than %d pixels: %s", page, size.width,
				b.eval(`[...document.querySelectorAll("main *, header *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".table, pre, .frames, .code, .listing")).slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join("\n")`))
			light := b.eval(`getComputedStyle(document.body).backgroundColor`)
			require.Equal(t, size.dark, light != "rgb(253, 253, 251)", "%s: background %s", page, light)
			if folder := os.Getenv("SCREENSHOTS"); folder != "" {
				name := fmt.Sprintf("%s-%d-%s.png", strings.TrimSuffix(page, ".html"), size.width, map[bool]string{false: "light", true: "dark"}[size.dark])
				png, err := base64.StdEncoding.DecodeString(b.screenshot(os.Getenv("SCREENSHOTS_WHOLE") != ""))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(folder, name), png, 0o644))
			}
		}
	}

	t.Run("from text to code and back", func(t *testing.T) {
		b.t = t
		b.size(1440, 850, false)
		b.open(address("2-conn-timer.html"))
		b.press("j")
		require.Equal(t, "idleState", b.eval(`document.querySelector(".hunk.on .permalink").textContent`))
		b.press("j", "j")
		require.Equal(t, "conn.requestStarted", b.eval(`document.querySelector(".hunk.on .permalink").textContent`))
		require.Equal(t, "true", b.eval(`(() => { const r = document.querySelector(".hunk.on").getBoundingClientRect(); return r.top >= 0 && r.top < innerHeight })()`))
		b.press("k")
		require.Equal(t, "conn.startTimer", b.eval(`document.querySelector(".hunk.on .permalink").textContent`))
		b.eval(`document.querySelector(".hunk.on .back").click()`)
		require.Equal(t, "conn.startTimer", b.eval(`document.activeElement.textContent.trim().split(" ").pop()`))
	})
	t.Run("a link to a piece of code", func(t *testing.T) {
		b.t = t
		b.open("about:blank")
		b.open(address("2-conn-timer.html") + "#d-idle.go-conn.setTimer")
		require.Equal(t, "conn.setTimer", b.eval(`document.querySelector(".hunk.on .permalink").textContent`))
	})
	t.Run("views of the diff", func(t *testing.T) {
		b.t = t
		b.press("d")
		require.Equal(t, "grid", b.eval(`getComputedStyle(document.querySelector(".run")).display`))
		b.press("f")
		require.Equal(t, "0", b.eval(`document.querySelectorAll("details.file[open]").length`))
		b.press("f", "d", "w")
		require.Equal(t, "none", b.eval(`getComputedStyle(document.querySelector("main")).display`))
		b.press("w")
	})
	t.Run("search", func(t *testing.T) {
		b.t = t
		b.press("/")
		b.press(strings.Split("edge", "")...)
		b.press("Escape")
		require.Equal(t, "0", b.eval(`document.querySelectorAll("dialog[open]").length`), "one Escape closes the search")
		b.press("?")
		require.Equal(t, "help", b.eval(`document.querySelector("dialog[open]").id`))
		b.press("Escape", "/")
		b.press(strings.Split("io_uring", "")...)
		require.Contains(t, b.eval(`document.querySelector("#search a.on").textContent`), "uring")
		b.loading(func() { b.press("ArrowDown", "ArrowUp", "Enter") })
		require.Contains(t, b.eval(`document.body.textContent`), "uring")
	})
	t.Run("a stage by its number", func(t *testing.T) {
		b.t = t
		b.loading(func() { b.press("5") })
		require.Contains(t, b.eval(`document.title`), "Registered once")
	})
	t.Run("light and dark by hand", func(t *testing.T) {
		b.t = t
		before := b.eval(`getComputedStyle(document.body).backgroundColor`)
		b.press("t")
		require.NotEqual(t, before, b.eval(`getComputedStyle(document.body).backgroundColor`))
		b.press("t")
	})
	t.Run("text or code on a phone", func(t *testing.T) {
		b.t = t
		b.size(390, 850, false)
		b.open(address("1-reuseport.html"))
		require.Equal(t, "none", b.eval(`getComputedStyle(document.querySelector("#code")).display`))
		b.eval(`document.querySelector('.to-hunk').click()`)
		require.NotEqual(t, "none", b.eval(`getComputedStyle(document.querySelector("#code")).display`))
		require.Equal(t, "none", b.eval(`getComputedStyle(document.querySelector("main")).display`))
		b.eval(`document.querySelector('.hunk.on .back').click()`)
		require.NotEqual(t, "none", b.eval(`getComputedStyle(document.querySelector("main")).display`))
	})
	t.Run("back leads from the code to the same place of the text", func(t *testing.T) {
		b.t = t
		b.open(address("2-conn-timer.html"))
		b.eval(`document.querySelectorAll(".to-hunk")[3].scrollIntoView({ block: "center" })`)
		before := b.eval(`scrollY`)
		b.eval(`document.querySelectorAll(".to-hunk")[3].click()`)
		require.Equal(t, "none", b.eval(`getComputedStyle(document.querySelector("main")).display`))
		require.Equal(t, "text", b.eval(`new Promise(done => { addEventListener("popstate", () => setTimeout(() => done(getComputedStyle(document.querySelector("#code")).display === "none" ? "text" : "code"))); history.back() })`))
		require.Equal(t, before, b.eval(`scrollY`))
	})
	t.Run("the code follows the text", func(t *testing.T) {
		b.t = t
		b.size(1440, 850, false)
		b.open(address("2-conn-timer.html"))
		require.Equal(t, "true", b.eval(`new Promise(done => {
			const mark = document.querySelectorAll(".to-hunk")[2];
			const look = () => {
				const on = document.querySelector(".hunk.on"), by = document.querySelector(".to-hunk.on");
				if (!on) return setTimeout(look, 20);
				done(on.getBoundingClientRect().top < innerHeight && Math.abs(by.getBoundingClientRect().top - mark.getBoundingClientRect().top) < 60);
			};
			scrollTo(0, scrollY + mark.getBoundingClientRect().top - innerHeight / 2 + 30);
			look();
		})`))
	})
	t.Run("a flame graph", func(t *testing.T) {
		b.t = t
		b.open("about:blank")
		b.open(address("2-conn-timer.html") + "#flame-stage1-stage2?graph=stage1&zoom=main.(*conn).serve")
		require.Regexp(t, `^main\.\(\*conn\)\.serve — .* its own code`, b.eval(`new Promise(done => {
			const look = () => {
				const text = document.querySelector("#flame-stage1-stage2 .detail")?.textContent || "";
				if (text.includes("serve — ")) done(text); else setTimeout(look, 20);
			};
			look();
		})`))
		require.NotEqual(t, "0", b.eval(`scrollY`), "the graph is in sight")
		require.Contains(t, b.eval(`document.querySelector("#flame-stage1-stage2 figcaption").textContent`), "timerfd_settime", "what the step takes away is named")
		require.NotEqual(t, "0", b.eval(`document.querySelectorAll("#flame-stage1-stage2 .gone").length`))
		b.eval(`document.querySelector('#flame-stage1-stage2 a[title^="main.(*conn).requestStarted"]').click()`)
		require.Equal(t, "conn.requestStarted", b.eval(`document.querySelector(".hunk.on .permalink").textContent`), "a click shows the code")
		b.eval(`[...document.querySelectorAll("#flame-stage1-stage2 .tools button")].find(e => e.textContent === "difference").click()`)
		require.Equal(t, "difference", b.eval(`document.querySelector("#flame-stage1-stage2 .graph:not([hidden])").dataset.name`))
		require.Contains(t, b.eval(`location.hash`), "view=difference")
	})
	b.t = t
	b.requireSilence(home)
}

// smallText finds letters in drawings that are smaller than 10 px on the screen.
const smallText = `[...document.querySelectorAll("svg text")].filter(e => e.getClientRects().length && parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a < 9.99)
	.map(e => e.textContent + " " + parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a).join("\n")`

// cutText finds words that end beyond the drawing which they are in, where nobody sees them.
const cutText = `[...document.querySelectorAll("svg text")].filter(e => {
	const word = e.getBoundingClientRect(), drawing = e.ownerSVGElement.getBoundingClientRect()
	return word.width && (word.left < drawing.left - 1 || word.right > drawing.right + 1)
}).map(e => e.textContent).join("\n")`

// TestAccessible runs axe, which knows the rules of WCAG, on a page of each kind in both themes; on
// all of them with ALL_PAGES.
func TestAccessible(t *testing.T) {
	b := startBrowser(t)
	folder, pages := writtenSite(t)
	axe, err := os.ReadFile(filepath.Join("testdata", "axe.min.js"))
	require.NoError(t, err)
	if os.Getenv("ALL_PAGES") == "" {
		pages = []string{"index.html", "0-measure.html", "2-conn-timer.html", "6-what-did-not-work.html", "9-what-comes-next.html", "glossary.html", "machines.html", "labs.html", "lab-code.html"}
	}
	run, err := results.Read(filepath.Join(root, "docs", "data", "ladder.json"))
	require.NoError(t, err)
	shown, err := os.Create(filepath.Join(folder, "report.html"))
	require.NoError(t, err)
	require.NoError(t, report.HTML(shown, run, func(string) string { return "index.html" }))
	require.NoError(t, shown.Close())
	pages = append(pages, sourceName("stage2-conn-timer/idle.go"), sourceName("bench/README.md"), "report.html")
	var found []string
	for _, c := range []struct {
		width int
		dark  bool
	}{{1440, false}, {1440, true}, {390, false}} {
		b.size(c.width, 850, c.dark)
		if c.width < 1000 {
			pages = []string{"2-conn-timer.html", "report.html"}
		}
		for _, page := range pages {
			b.open((&url.URL{Scheme: "file", Path: filepath.Join(folder, page)}).String())
			if page == "report.html" {
				require.Empty(t, b.eval(smallText), "%d pixels wide: letters of less than 10 px in a chart", c.width)
			}
			b.eval(string(axe) + "; 0")
			rules := `{ resultTypes: ["violations"] }`
			if c.dark { // the rest is the same
				rules = `{ resultTypes: ["violations"], runOnly: ["color-contrast"] }`
			}
			if text := b.eval(`axe.run(document, ` + rules + `).then(r => r.violations.map(v => v.id + ": " + v.nodes.length + "\n" + v.nodes.slice(0, 4).map(n => "  " + n.html.slice(0, 200) + "\n    " + n.any.concat(n.all, n.none).map(c => c.message).join("; ")).join("\n")).join("\n"))`); text != "" {
				found = append(found, fmt.Sprintf("%s, %d px wide, dark %v: %s", page, c.width, c.dark, text))
			}
		}
	}
	require.Empty(t, strings.Join(found, "\n"))
}

// TestPrinted prints a page as browsers do when nobody has asked for backgrounds: the frames and
// bars keep their colours.
func TestPrinted(t *testing.T) {
	b := startBrowser(t)
	folder, _ := writtenSite(t)
	b.open((&url.URL{Scheme: "file", Path: filepath.Join(folder, "1-reuseport.html")}).String())
	var pdf struct{ Data []byte }
	b.call("Page.printToPDF", map[string]any{"printBackground": false}, &pdf)
	var drawn strings.Builder
	for part := range bytes.SplitSeq(pdf.Data, []byte("stream\n")) {
		if r, err := zlib.NewReader(bytes.NewReader(part)); err == nil {
			_, _ = io.Copy(&drawn, r) // what follows the stream is none
		}
	}
	for what, colour := range map[string][3]float64{"kernel": {0xe8, 0xb0, 0x4b}, "project": {0x97, 0xcf, 0xa0}, "added lines": {0xe8, 0xf7, 0xea}} {
		want := ""
		for _, c := range colour {
			want += strings.TrimPrefix(fmt.Sprintf("%.3f", c/255-0.0005), "0") + `\d* `
		}
		require.Regexp(t, want+`rg`, drawn.String(), what)
	}
}

// TestPagesFromStage5 has the project's own last stage serve the site.
func TestPagesFromStage5(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the servers need Linux")
	}
	b := startBrowser(t)
	folder, pages := writtenSite(t)
	server, err := startStage(t.Context(), root, t.TempDir(), "5", "-static", folder)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	home := "http://" + server.Ready.Address + "/static/"
	b.open(home)
	require.Equal(t, "The QPS ladder", b.eval(`document.title`))
	require.True(t, slices.Contains(b.requests, home+"site.css"))
	for _, page := range pages[:3] {
		b.open(home + page)
		require.NotEmpty(t, b.eval(`document.querySelector("h1").textContent`))
	}
	b.requireSilence(home)
}
