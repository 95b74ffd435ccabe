package report

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// ladderRun is a run of a made-up machine.
func ladderRun(t *testing.T, rounds int) *results.Document {
	t.Helper()
	d := &results.Document{
		Schema: results.Schema, Version: results.Version, Created: time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC), Command: `ladder run --seed 1 # <&>`, Ended: results.Complete,
		Machine: results.Machine{CPU: "Imaginary <9000>", CPUs: 2, Kernel: "Linux 6.12.0", Go: "go1.26", Mitigations: []string{"spectre_v9: sorted"}},
		Method:  results.Method{Layout: results.CoLocated, ServerCPUs: []int{1}, LoadCPUs: []int{1}, Workers: 1, LoadThreads: 1, Generator: "embedded", Rounds: rounds, Seconds: 0.5},
	}
	for _, w := range []string{"hello", "browser"} {
		d.Workloads = append(d.Workloads, results.Workload{Name: w, Connections: 100, Pipeline: 1})
	}
	published := []string{"27.5 K", "with 2", "132 K", ""}
	for i, s := range []string{"stage0-naive", "stage1-reuseport", "stage2-conn-timer", "bare-c"} {
		d.Servers = append(d.Servers, results.Server{Name: s, Published: published[i], Counters: i < 3})
		if i > 0 && i < 3 {
			d.Ratios = append(d.Ratios, results.Ratio{Kind: results.Step, Workload: "hello", Metric: results.RequestsPerSecond, Head: s, Base: d.Servers[i-1].Name},
				results.Ratio{Kind: results.Target, Workload: "hello", Metric: results.RequestsPerSecond, Head: s, Base: d.Servers[i-1].Name})
		}
		for round := 1; round <= rounds; round++ {
			h := load.NewHistogram()
			for v := int64(1); v <= 2000; v++ {
				require.NoError(t, h.RecordValue(v*1000*int64(i+1)))
			}
			text, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
			require.NoError(t, err)
			m := results.Measurement{Round: round, Server: s, Workload: "hello", RequestsPerSecond: 10_000 * float64(i+1) * (1 + 0.01*float64(round%3)), Requests: 2000, Established: 100, Seconds: 0.5,
				Histogram: string(text), Latency: load.LatencyOf(h), ServerCPUNanos: 9000, ServerUserShare: 0.25}
			if i < 3 {
				m.Counters = map[string]float64{"reads": 1, "writes": 1, "epoll_waits": 0.02}
			}
			d.Measurements = append(d.Measurements, m)
			if i < 2 {
				m.Workload, m.Histogram = "browser", ""
				d.Measurements = append(d.Measurements, m)
			}
		}
	}
	d.Build("")
	return d
}

func pageOf(t *testing.T, d *results.Document) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, HTML(&out, d, func(string) string { return "" }))
	return out.String()
}

func TestPageShowsEverythingAndAsksNobody(t *testing.T) {
	text := pageOf(t, ladderRun(t, 7))
	for _, want := range []string{
		"The QPS ladder", "Imaginary &lt;9000&gt;", "spectre_v9: sorted", "Linux 6.12.0", "ladder run --seed 1 # &lt;&amp;&gt;",
		"<title>Requests per second</title>", "Published, another machine", "132 K", "<title>Latency on hello</title>", "1 reuseport to 0 naive, hello",
		"Counters per request on hello", "Requests per second, servers by workloads", "estimated from ticks", "prefers-color-scheme:dark", "default-src 'none'",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "Latency on browser", "no histogram, no curve")
	require.NotContains(t, text, "#0100", "a colour that stands for another")
	require.NotContains(t, text, "#0101")
	require.NotRegexp(t, `<script|<link[^>]*stylesheet|@import|url\(|src=`, text)
	for _, m := range regexp.MustCompile(`https?://[^"\s<]*`).FindAllString(text, -1) {
		require.Regexp(t, `^http://www\.w3\.org/`, m, "a namespace is no request")
	}
}

// A stage has its colour on every page, whatever it stands beside, and nobody else has it.
func TestStagesKeepTheirColours(t *testing.T) {
	d := &results.Document{}
	for _, name := range []string{"stage3-native-parser", "stage2-conn-timer", "bare-c", "stage3 changed"} {
		d.Servers = append(d.Servers, results.Server{Name: name})
	}
	require.Equal(t, map[string]int{"stage3-native-parser": 3, "stage2-conn-timer": 2, "bare-c": 6, "stage3 changed": 7}, shades(d))
}

func TestPageOfAnInterruptedRun(t *testing.T) {
	d := ladderRun(t, 2)
	d.Ended = "interrupted"
	d.Build("")
	require.Contains(t, pageOf(t, d), "Not complete: interrupted")
	empty := ladderRun(t, 0)
	require.Contains(t, pageOf(t, empty), "The QPS ladder", "nothing measured is no reason to fail")
	folder := t.TempDir()
	paths, err := WritePage(d, folder, "ladder")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(folder, "ladder-partial.html"), paths[0])
}

func TestChartsAreWholeXML(t *testing.T) {
	folder := t.TempDir()
	paths, err := WritePage(ladderRun(t, 7), folder, "ladder")
	require.NoError(t, err)
	require.Len(t, paths, 4)
	for _, path := range paths[2:] {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		decoder := xml.NewDecoder(bytes.NewReader(b))
		elements := 0
		for {
			token, err := decoder.Token()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			if _, ok := token.(xml.StartElement); ok {
				elements++
			}
		}
		require.Greater(t, elements, 20)
		require.NotContains(t, string(b), "var(", "a file of its own has no variables to look up")
		require.NotContains(t, string(b), "currentColor")
	}
	f, err := os.Open(filepath.Join(folder, "ladder.csv"))
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, 1+6, "a header, and a line for each server on each workload")
	require.Equal(t, []string{"server", "workload", "rounds", "requests_per_second"}, lines[0][:4])
	require.Equal(t, "epoll_waits", lines[0][len(lines[0])-3])
	require.Equal(t, "stage0-naive", lines[1][0])
	require.Equal(t, "0.02", lines[1][len(lines[1])-3])
}

// A browser opens the page without a complaint, and the bars are there in their colours.
func TestPageInABrowser(t *testing.T) {
	chromium := testenv.Browser(t)
	folder := t.TempDir()
	path := filepath.Join(folder, "ladder.html")
	require.NoError(t, os.WriteFile(path, []byte(pageOf(t, ladderRun(t, 7))), 0o600))
	for name, c := range map[string]struct {
		flags []string
		theme theme
	}{"light": {nil, light}, "dark": {[]string{"--blink-settings=preferredColorScheme=0"}, dark}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			shot := filepath.Join(folder, name+".png")
			args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update",
				"--user-data-dir=" + filepath.Join(folder, "profile-"+name), "--enable-logging=stderr", "--window-size=1100,2400", "--screenshot=" + shot}, c.flags...)
			text, err := exec.CommandContext(ctx, chromium, append(args, "file://"+path)...).CombinedOutput()
			require.NoError(t, err, "%s", text)
			for line := range strings.Lines(string(text)) {
				require.NotContains(t, line, "CONSOLE", "the page complains")
			}
			f, err := os.Open(shot)
			require.NoError(t, err)
			defer f.Close()
			img, err := png.Decode(f)
			require.NoError(t, err)
			seen := map[string]int{}
			for y := range img.Bounds().Dy() {
				for x := range img.Bounds().Dx() {
					r, g, b, _ := img.At(x, y).RGBA()
					seen[fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)]++
				}
			}
			for _, want := range []string{c.theme.paper, c.theme.series[0], c.theme.series[1], c.theme.series[2], c.theme.muted} {
				require.Greater(t, seen[want], 500, "%s is not to be seen", want)
			}
		})
	}
}
