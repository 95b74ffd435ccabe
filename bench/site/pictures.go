package site

import (
	"cmp"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/profile"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// pictureStyle is a line of every SVG that Markdown shows as an image, where it has no page to take
// its colours from: those of site.css, in light and in dark.
const pictureStyle = `<style>svg{color:#1e2126;--text:#1e2126;--quiet:#5c6370;--line:#d9d9d0;--mark:#fff1bf;--accent:#0b5cad}` +
	`@media(prefers-color-scheme:dark){svg{color:#dfe2e7;--text:#dfe2e7;--quiet:#9aa3b0;--line:#353b45;--mark:#4a3f14;--accent:#7db8f5;` +
	`--accent-soft:#1f3347;--page:#15181d;--raised:#1d2128;--worse:#f29191}}</style>`

// A picture is an SVG in docs/data that is drawn from the data there.
type picture struct {
	file string // from the root
	draw func() (string, error)
}

const gainsFile = "docs/data/gains.svg"

// pictures are those that Markdown shows in the place of what the site draws into its pages.
func (b *builder) pictures() []picture {
	all := []picture{{gainsFile, func() (string, error) {
		svg, err := b.gainsSVG()
		return strings.Replace(svg, ">\n", ">\n"+pictureStyle+"\n", 1), err
	}}}
	for _, folder := range b.stages {
		stage := harness.ShortName(folder)
		all = append(all, picture{flameFile(stage), func() (string, error) {
			o, err := readProfile(b.root, stage)
			if err != nil {
				return "", err
			}
			return flameSVG(o), nil
		}})
	}
	return all
}

func flameFile(stage string) string { return "docs/data/profiles/" + stage + ".svg" }

// A call is a function of a profile with what it calls.
type call struct {
	name  string
	time  int64 // with what it calls
	calls []*call
}

// callTree is a profile as a tree, at each level the longest first. What is too short to be seen is
// left out.
func callTree(o *profile.Outline) *call {
	root := &call{}
	for stack, n := range o.Time {
		at := root
		at.time += n
		for name := range strings.SplitSeq(stack, ";") {
			i := slices.IndexFunc(at.calls, func(c *call) bool { return c.name == name })
			if i < 0 {
				i = len(at.calls)
				at.calls = append(at.calls, &call{name: name})
			}
			at = at.calls[i]
			at.time += n
		}
	}
	var sort func(c *call)
	sort = func(c *call) {
		const seen = 0.004
		c.calls = slices.DeleteFunc(c.calls, func(x *call) bool { return float64(x.time) < seen*float64(root.time) })
		slices.SortFunc(c.calls, func(a, b *call) int { return cmp.Or(cmp.Compare(b.time, a.time), strings.Compare(a.name, b.name)) })
		for _, x := range c.calls {
			sort(x)
		}
	}
	sort(root)
	return root
}

// flameSVG draws a profile, callers above what they call, small enough to be committed. A frame's
// colour is that of its kind, in light and in dark.
func flameSVG(o *profile.Outline) string {
	const width, step, letter = 960, 18, 6.7
	var out strings.Builder
	depth := 0
	root := callTree(o)
	var draw func(within *call, x float64, level int)
	draw = func(within *call, x float64, level int) {
		for _, c := range within.calls {
			w := width * float64(c.time) / float64(root.time)
			depth = max(depth, level+1)
			fmt.Fprintf(&out, `<g class="%s"><title>%s: %.1f%%</title><rect x="%.1f" y="%d" width="%.1f" height="%d"/>`,
				profile.Class(c.name), html.EscapeString(c.name), 100*float64(c.time)/float64(root.time), x, level*step, w-0.8, step-1)
			label := []rune(strings.NewReplacer("[kernel] ", "", "main.", "", "(*", "", ")", "").Replace(c.name[strings.LastIndexByte(c.name, '/')+1:]))
			if fits := int((w - 5) / letter); fits < len(label) {
				label = append(label[:max(fits-1, 0)], '…')
			}
			if len(label) > 1 {
				fmt.Fprintf(&out, `<text x="%.1f" y="%d">%s</text>`, x+3, level*step+13, html.EscapeString(string(label)))
			}
			out.WriteString("</g>\n")
			draw(c, x, level+1)
			x += w
		}
	}
	draw(root, 0, 0)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n"+
		`<style>.kernel{fill:#e8b04b}.runtime{fill:#b9a3e0}.library{fill:#a9c7de}.project{fill:#97cfa0}text{fill:#16181c;font:11px ui-monospace,Menlo,Consolas,monospace}</style>`+"\n%s</svg>\n",
		width, depth*step, html.EscapeString(o.About), out.String())
}

// flameMarkdown shows the pictures of profiles.
func (b *builder) flameMarkdown(file string, stages []string) (string, error) {
	var out []string
	for _, s := range stages {
		stage := b.results.short(b.results.server(s))
		o, err := readProfile(b.root, stage)
		if err != nil {
			return "", err
		}
		out = append(out, fmt.Sprintf("![Flame graph of %s](%s)\\\n*%s*", stage, relative(file, flameFile(stage)), escapeMarkdown(o.About)))
	}
	return strings.Join(out, "\n\n"), nil
}

// progressionMarkdown shows the picture of the whole ladder.
func (b *builder) progressionMarkdown(file string) (string, error) {
	measured, err := b.asMarkdown(file, b.measuredLine())
	return fmt.Sprintf(`<picture>
  <source media="(prefers-color-scheme: dark)" srcset="%s">
  <img alt="Requests per second on hello, stage by stage, with intervals" src="%s">
</picture>

%s`, relative(file, "docs/data/progression-dark.svg"), relative(file, "docs/data/progression-light.svg"), measured), err
}

var svgLabel = regexp.MustCompile(`<svg[^>]* aria-label="([^"]*)"`)

// diagramMarkdown shows a drawing of docs/diagrams with its caption.
func (b *builder) diagramMarkdown(file, name, caption string) (string, error) {
	drawing := "docs/diagrams/" + name + ".svg"
	svg, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(drawing)))
	if err != nil {
		return "", err
	}
	label := svgLabel.FindSubmatch(svg)
	if label == nil {
		return "", fmt.Errorf("%s has no aria-label", drawing)
	}
	return fmt.Sprintf("![%s](%s)\\\n*%s*", html.UnescapeString(string(label[1])), relative(file, drawing), caption), nil
}
