package site

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/profile"
)

func TestTypedFigures(t *testing.T) {
	for text, want := range map[string]string{
		"It does 68.2 K requests.":                       "68.2 K",
		"that is 20% less":                               "20%",
		"1.33× as fast":                                  "1.33×",
		"after 17 µs":                                    "17 µs",
		"about 3 ms later":                               "3 ms",
		"5 times as fast":                                "5 times",
		"90,000 requests per second":                     "90,000 requests per second",
		"49 against 40 thousand":                         "40 thousand",
		"1.33x as fast, or 12\u00a0%":                    "1.33x",
		"20 per cent and no more":                        "20 per cent",
		"stage1 does 0.94 of them":                       "0.94",
		"(0.94)":                                         "0.94",
		"it is **1.28**.":                                "1.28",
		"between [0.73, about one]":                      "0.73",
		"3 microseconds of CPU":                          "3 microseconds",
		"Go 1.26, HTTP/1.1, section 9.3.2 and 127.0.0.1": "",
		`{{figure "hello.stage1.qps"}} and 12% of it`:    "12%",
		`{{cite 1 "14%"}} of it`:                         "",
		"`100 ms` in code":                               "",
		"```\n12%\n```":                                  "",
		"8192 bytes, 64 fields, 10 seconds, 16 requests": "",
		"an i7-11700K":                                   "",
		"stage3 has 6 files":                             "",
	} {
		found := findTyped(text)
		if want == "" {
			require.Empty(t, found, text)
			continue
		}
		require.NotEmpty(t, found, text)
		require.Equal(t, want, found[0].text)
	}
}

// What stands in a README between marks is what the results say, or is told.
func TestReadmeFigures(t *testing.T) {
	b, err := newBuilder(root)
	require.NoError(t, err)
	files, err := readmeFiles(root)
	require.NoError(t, err)
	require.Len(t, files, 1+len(b.stages))
	ratio, err := b.figure("hello.stage1/stage0.ratio")
	require.NoError(t, err)
	right := ratio.text
	require.Regexp(t, `^\d+\.\d\d \[\d+\.\d\d–\d+\.\d\d\]$`, right)

	stale := "It is <!--figure hello.stage1/stage0.ratio-->9.99<!--/--> of it, <!--cite 1,4 27 K-->28 K<!--/--> there."
	text, err := b.marked("x.md", nil, stale)
	require.NoError(t, err)
	require.Equal(t, "It is <!--figure hello.stage1/stage0.ratio-->"+right+"<!--/--> of it, <!--cite 1,4 27 K-->27 K<sup>[1,4]</sup><!--/--> there.", text)
	again, err := b.marked("x.md", nil, text)
	require.NoError(t, err)
	require.Equal(t, text, again)

	for text, want := range map[string]string{
		"<!--figure hello.stage9.qps--><!--/-->": "x.md:1: figure \"hello.stage9.qps\"",
		"<!--cite 2 27,493--><!--/-->":           `document 2 gives no figure "27,493"`,
		"\n<!--cite often 27,493--><!--/-->":     "x.md:2: cite: want the numbers of documents",
		`{{hunk "idle.go" "conn.setTimer"}}`:     "a page with step:",
	} {
		_, err := b.marked("x.md", nil, text)
		require.ErrorContains(t, err, want)
	}
	table, err := b.ladderTable()
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(table, "| 5 speculative-read |"))
}

// What is written in short becomes the mark, and what every mark holds is written anew.
func TestMarks(t *testing.T) {
	b, err := newBuilder(root)
	require.NoError(t, err)
	p := &page{source: "docs/chapters/x.md", Step: "stage2"}
	require.NoError(t, b.prepare(p))
	figure, err := b.figure("hello.stage1.qps")
	require.NoError(t, err)
	value := figure.text
	hunk, err := p.step.find("idle.go", "conn.setTimer")
	require.NoError(t, err)
	folder, first, last := p.step.place(hunk)
	require.Equal(t, "stage2-conn-timer", folder)
	source, err := os.ReadFile(filepath.Join(root, folder, "idle.go"))
	require.NoError(t, err)
	shown := strings.Join(strings.Split(string(source), "\n")[first-1:last], "\n")
	require.Contains(t, shown, "\nfunc (c *conn) setTimer(")
	require.True(t, strings.HasSuffix(shown, "\n}"), shown)
	link := fmt.Sprintf("[idle.go `conn.setTimer`](../../stage2-conn-timer/idle.go#L%d-L%d)", first, last)

	for short, want := range map[string]string{
		`so {{figure "hello.stage1.qps"}}.`:                      "so <!--figure hello.stage1.qps-->" + value + "<!--/-->.",
		"`{{figure \"x\"}}` in code":                             "`{{figure \"x\"}}` in code",
		"```\n{{figure \"x\"}}\n```\n":                           "```\n{{figure \"x\"}}\n```\n",
		"it does\n{{figure \"hello.stage1.qps\"}}, or so,\nhere": "it does <!--figure hello.stage1.qps-->" + value + "<!--/-->,\nor so,\nhere",
		`{{cite 1 4 "27 K"}}`:                                    "<!--cite 1,4 27 K-->27 K<sup>[1,4]</sup><!--/-->",
		`{{hunk "idle.go" "conn.setTimer"}} Here.`:               link + " Here.",
		"[idle.go `conn.setTimer`]()":                            link,
		`{{man "epoll_ctl(2)"}}`:                                 "[epoll_ctl(2)](https://man7.org/linux/man-pages/man2/epoll_ctl.2.html)",
		`{{test "TestMarks"}}`:                                   "[TestMarks](../../bench/site/text_test.go)",
		"[TestMarks](../old_test.go)":                            "[TestMarks](../../bench/site/text_test.go)",
		"---\ntitle: x\n---\n# X\n":                              "<!--\ntitle: x\n-->\n# X\n",
	} {
		have, err := b.marked(p.source, p, short)
		require.NoError(t, err, short)
		require.Equal(t, want, have, short)
		again, err := b.marked(p.source, p, have)
		require.NoError(t, err, short)
		require.Equal(t, want, again, "written twice")
	}

	diagram, err := b.marked(p.source, p, `{{diagram "stage1" "One, two."}}`)
	require.NoError(t, err)
	require.Regexp(t, `^!\[Stage 1: [^\]]*\]\(\.\./diagrams/stage1\.svg\)\\\n\*One, two\.\*$`, diagram)
	table, err := b.marked(p.source, p, `{{predicted "stage2" "hello"}}`)
	require.NoError(t, err)
	require.Contains(t, table, "<!--predicted stage2 hello-->\n\n| per request on hello | fewer | price | µs |\n| --- | ---: | ---: | ---: |\n| ")
	require.Contains(t, table, "Prices of [lab price](../labs/price.md)")
	for _, text := range []string{diagram, table} {
		again, err := b.marked(p.source, p, text)
		require.NoError(t, err)
		require.Equal(t, text, again)
		require.Contains(t, b.expand(p, text), "</", "the site shows it")
		require.NotContains(t, b.expand(p, text), "](")
	}
	require.Empty(t, b.errs)

	require.Equal(t, "[loop.go `loop.run`](x)", b.expand(&page{source: "x.md"}, "[loop.go `loop.run`](x)"), "an ordinary link where there is no step")
	require.Regexp(t, lineBegins, "a\n- <!--figure x-->1<!--/-->")
	require.NotRegexp(t, lineBegins, "a\n| <!--figure x-->1<!--/--> |")
}

func TestAsMarkdown(t *testing.T) {
	b := &builder{pages: []*page{{source: "docs/labs/price.md", out: "lab-price.html"}}}
	for fragment, want := range map[string]string{
		`<div class="table numbers" tabindex="0"><table><thead><tr><th></th><th>a|b</th></tr></thead><tbody><tr><th scope="rowgroup" colspan="2"><strong>x</strong><br>y &amp; <code>z*</code></th></tr><tr><th>k</th><td><span title="t">1 &lt; 2*</span></td></tr></tbody></table></div><p>After.</p>`: "|  | a\\|b |\n| --- | ---: |\n| **x**<br>y & `z*` |  |\n| k | 1 &lt; 2\\* |\n\nAfter.",
		`<p>a <a href="lab-price.html#x">b</a></p>`:                             "a [b](../labs/price.md#x)",
		`<ol><li>a</li><li>b</li></ol><p>c</p>`:                                 "- a\n- b\n\nc",
		`<section id="document-1"><p><strong>1.</strong></p><p>c</p></section>`: "<a id=\"document-1\"></a>**1.**\n\nc",
	} {
		text, err := b.asMarkdown("docs/chapters/x.md", fragment)
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
}

func TestUnknownCommands(t *testing.T) {
	targets := map[string]bool{"ladder": true, "diff": true}
	for text, wrong := range map[string]int{
		"`make ladder QUICK=1`":                     0,
		"`make diff A=1 B=2` and `make`":            0,
		"`make stage3 run ARGS=\"-admin :9090\"`":   0,
		"`make stage3 fly`":                         1,
		"`make tea`":                                1,
		"we make tea":                               0,
		"```sh\nmake ladder\nmake tea   # hot\n```": 1,
		"`cd x && make tea`":                        1,
		"`makefile`":                                0,
	} {
		require.Len(t, unknownCommands("x.md", text, targets), wrong, text)
	}
}

func TestOutsideCode(t *testing.T) {
	upper := func(_ int, s string) string { return strings.ToUpper(s) }
	require.Equal(t, "A `b` C ``d ` e`` F\n```\ng\n```\nH\n", outsideCode("a `b` c ``d ` e`` f\n```\ng\n```\nh\n", upper))
	require.Equal(t, "A ` B", outsideCode("a ` b", upper), "a lone backquote is no code")
}

// Every include tells what is wrong with it, with file and line.
func TestBadIncludes(t *testing.T) {
	b, err := newBuilder(root)
	require.NoError(t, err)
	for text, want := range map[string]string{
		`{{figure "hello.stage9.qps"}}`:           "x.md:11: figure \"hello.stage9.qps\": none of ladder.json, ablation.json has stage9 on hello",
		`{{figure "shared.hello.stage5.qps"}}`:    "none of shared.json has stage5 on hello",
		`{{verdict "shared.hello.stage1.qps"}}`:   "want workload.head/base.metric",
		`{{figure "hello.stage1.speed"}}`:         `no metric or counter "speed"`,
		`{{figure "hello.stage1"}}`:               "want workload.server.metric",
		`{{figure "hello.stage1/stage0.beauty"}}`: `no ratio of "beauty"`,
		`{{figure "machine.colour"}}`:             "nothing like this is known",
		`{{figure}}`:                              "takes 1 to 1 arguments, not 0",
		`{{cite 1 "99,999"}}`:                     `document 1 gives no figure "99,999"`,
		`{{cite 2 "27,493"}}`:                     `document 2 gives no figure "27,493"`,
		`{{hunk "idle.go" "conn.setTimer"}}`:      "this page has no diff",
		`{{diagram "nothing" "x"}}`:               "nothing.svg",
		`{{test "no test at all"}}`:               `no test called "no test at all"`,
		`{{man "epoll"}}`:                         "no name of a manual page",
		`{{ablation "stage9"}}`:                   "no variant belongs",
		`{{colour "red"}}`:                        `no include "colour"`,
		`{{figure hello}}`:                        "is no include",
		`{{verdict "hello.stage1.qps"}}`:          "want workload.head/base.metric",
	} {
		b.errs = nil
		b.expand(&page{source: "x.md", firstLine: 10}, "\n"+text)
		require.Len(t, b.errs, 1, text)
		require.ErrorContains(t, b.errs[0], want)
		require.ErrorContains(t, b.errs[0], "x.md:11: ")
	}
}

func TestFigures(t *testing.T) {
	for value, want := range map[float64]string{950: "950", 27_493: "27.5 K", 99_960: "100 K", 158_700: "159 K"} {
		require.Equal(t, want, kilo(value))
	}
	for value, want := range map[float64]string{1.234: "1.23 µs", 12.34: "12.3 µs", 345.6: "346 µs", 1720: "1.72 ms", 12_340: "12.3 ms", 1_203_800: "1.20 s"} {
		require.Equal(t, want, microseconds(value))
	}
	for value, want := range map[float64]string{0: "0", 0.004: "under 0.01", 1: "1.00", 12.01: "12.0", 65536: "65,536"} {
		require.Equal(t, want, perRequest(value))
	}
	require.Equal(t, "+33%", percent(1.33))
	require.Equal(t, "−2.1%", percent(0.979))
}

func TestManual(t *testing.T) {
	text, err := manual("epoll_ctl(2)")
	require.NoError(t, err)
	require.Contains(t, text, "man2/epoll_ctl.2.html")
}

func TestProfileIsReadAsItWasWritten(t *testing.T) {
	root := t.TempDir()
	o := &profile.Outline{About: "stage9 on hello, by perf; 4 samples", Time: map[string]int64{"main.(*loop).run": 10, "main.(*loop).run;netpoll.Send;[kernel] sendto": 20}}
	path := filepath.Join(root, "docs", "data", "profiles", "stage9.folded")
	require.NoError(t, writeProfile(o, path))
	read, err := readProfile(root, "stage9")
	require.NoError(t, err)
	require.Equal(t, o, read)

	// What is not drawn is not kept, and counted all the same.
	o.Time = map[string]int64{"main.main;a": 998, "main.main;b;c": 1, "x;y": 1}
	require.NoError(t, writeProfile(o, path))
	read, err = readProfile(root, "stage9")
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"main.main;a": 998, "main.main": 1, "x": 1}, read.Time)

	for text, want := range map[string]string{"# nothing\n": "holds no sample", "main.main\n": "no stack with its time", "main.main x\n": "invalid syntax"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := readProfile(root, "stage9")
		require.ErrorContains(t, err, want)
	}
	_, err = readProfile(root, "stage8")
	require.ErrorContains(t, err, "make docs-refresh records it")
}

func TestHeadings(t *testing.T) {
	require.Equal(t, map[string]int{"a": 1, "document-1": 2}, headings("# A\n<a id=\"document-1\"></a>x\n"))
	text := "# The `bench`\n\nx\n```\n# no heading\n```\n## How, and [where](x.md)?\n## How, and where\n### Straße_2 – 3\n"
	require.Equal(t, map[string]int{"the-bench": 1, "how-and-where": 7, "how-and-where-1": 8, "straße_2--3": 9}, headings(text))
}

func TestDeadLinks(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "bench"), 0o755))
	for name, text := range map[string]string{"bench/README.md": "# Bench\n## Peers\n", "Makefile": "a:\n\tb\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	for link, dead := range map[string]bool{
		"../Makefile": false, "../Makefile#L2": false, "../Makefile#L1-L2": false, "../Makefile#L1-L3": true, "../Makefile#L2-L1": true, "../Makefile#L3": true, "../Makefile#L0": true, "../Makefile#peers": true,
		"README.md#peers": false, "README.md#pears": true, "#peers": false, "#pears": true, "..": false, "../bench/": false,
		"nothing.go": true, "../../elsewhere": true, "https://example.org/x#y": false,
	} {
		want := 0
		if dead {
			want = 1
		}
		require.Len(t, deadLinks(root, "bench/README.md", "a\n[b `c`]("+link+") and `[x](y)`\n"), want, link)
	}
}

func TestMissingOpening(t *testing.T) {
	const title, questions = "\n# A title\n\n", "\nText.\n\n## Questions\n\nOne.\n"
	whole := opening[0] + "a.\n" + opening[1] + "b.\n" + opening[2] + "c.\n"
	chapter := func(text string) *page { return &page{source: "docs/chapters/x.md", text: text} }
	require.Empty(t, missingOpening(chapter(title+whole+questions)))
	require.Empty(t, missingOpening(chapter(title+"Words.\n")), "a page without questions is no chapter")
	require.Empty(t, missingOpening(&page{source: "docs/labs/x.md", text: title + questions}))
	require.Len(t, missingOpening(chapter(title+questions)), 3)
	errs := missingOpening(chapter(title + opening[0] + "a.\n" + opening[2] + "c.\n" + questions))
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], "How long")
}

func TestUnnamedExercises(t *testing.T) {
	chapter := func(text string) []*page { return []*page{{source: "docs/chapters/x.md", text: text}} }
	one := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(one, "docs", "workshop", "exercises", "01-a"), 0o755))
	for _, text := range []string{"exercise 1 is", "Exercise 1, exercise 12", "`make exercise N=1`", "\n- [1](x.md), a", "\n- 1, a"} {
		require.Empty(t, unnamedExercises(one, chapter(text)), text)
	}
	for _, text := range []string{"", "exercise 12", "N=11", "chapter 1"} {
		require.Len(t, unnamedExercises(one, chapter(text)), 1, text)
	}
	require.Len(t, unnamedExercises(one, []*page{{source: "docs/labs/x.md", text: "exercise 1"}}), 1)
}

// A figure that no page quotes is found.
func TestCited(t *testing.T) {
	b, err := newBuilder(root)
	require.NoError(t, err)
	b.documents.Published = append(b.documents.Published, published{Figure: "77 M", In: []int{1}, What: "requests"})
	_, err = b.build()
	require.ErrorContains(t, err, "no page quotes what the documents say of this: 77 M (requests)")
}
