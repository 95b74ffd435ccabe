package site

import (
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writtenSite builds the site into a folder of its own.
func writtenSite(t *testing.T) (folder string, pages []string) {
	site, err := Build(root)
	require.NoError(t, err)
	folder = t.TempDir()
	require.NoError(t, site.Write(folder))
	for _, p := range site.pages {
		pages = append(pages, p.out)
	}
	return folder, pages
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
	}{{1440, false}, {390, true}} {
		b.size(size.width, 850, size.dark)
		for _, page := range pages {
			b.open(address(page))
			require.Equal(t, "true", b.eval(`document.documentElement.scrollWidth <= innerWidth`), "%s is wider than %d pixels: %s", page, size.width,
				b.eval(`[...document.querySelectorAll("main *, header *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".table, pre, .frames, .code, .listing")).slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join("\n")`))
			light := b.eval(`getComputedStyle(document.body).backgroundColor`)
			require.Equal(t, size.dark, light != "rgb(253, 253, 251)", "%s: background %s", page, light)
			if folder := os.Getenv("SCREENSHOTS"); folder != "" {
				name := strings.TrimSuffix(page, ".html") + map[bool]string{false: "-wide", true: "-phone-dark"}[size.dark] + ".png"
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
	b.t = t
	b.requireSilence(home)
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
