package site

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/report"
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
	for _, scheme := range []string{report.LightScheme, report.DarkScheme} {
		all = append(all, picture{ladderFiles[scheme], func() (string, error) {
			costs, err := b.costs()
			return report.CostSVG(costs, scheme, costTitle), err
		}})
	}
	for _, folder := range b.stages {
		stage := harness.ShortName(folder)
		all = append(all, picture{flameFile(stage), func() (string, error) {
			g, err := b.graph(stage)
			if err != nil {
				return "", err
			}
			return g.SVG(), nil
		}})
	}
	return all
}

func flameFile(stage string) string { return "docs/data/profiles/" + stage + ".svg" }

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
  <img alt="What a request costs on hello, stage by stage, and on what it goes" src="%s">
</picture>

%s`, relative(file, ladderFiles[report.DarkScheme]), relative(file, ladderFiles[report.LightScheme]), measured), err
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
