package site

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "assets/page.html"))

// view is what the template makes a page of.
type view struct {
	Title          string
	Body, Diff     template.HTML
	From, To       string // the step, or To alone: a whole stage
	Number         string // of the stage
	Site           []chapterLink
	Rungs          []rung
	Previous, Next *chapterLink
	Up             string // to the root of the site
	Home, Listing  bool
	Mine           bool            // figures of this machine stand beside ours
	Contents       []contentsEntry // of the page
	Measured       string
}

type contentsEntry struct{ ID, Heading string }

type chapterLink struct {
	Href, Title, Short string
	Here               bool
}

// A rung is one stage in the bar at the top.
type rung struct {
	Href, Number, Name, RequestsPerSecond string
	Here                                  bool
	Filled                                bool // at or below where the reader is
}

func (v view) page() ([]byte, error) {
	var out bytes.Buffer
	err := layout.Execute(&out, v)
	return out.Bytes(), err
}

func (b *builder) chapters(here *page) []chapterLink {
	var out []chapterLink
	for _, p := range b.pages {
		out = append(out, chapterLink{p.out, p.Title, p.Short, p == here})
	}
	return out
}

// rungs makes the bar: each stage with what it was measured to do on hello, and
// the chapter about it.
func (b *builder) rungs(here *page) []rung {
	at := -1
	out := make([]rung, len(b.stages))
	for i, folder := range b.stages {
		number, name, _ := strings.Cut(strings.TrimPrefix(folder, "stage"), "-")
		out[i] = rung{Number: number, Name: name, Href: "index.html"}
		if f, err := b.results.figure("hello.stage" + number + ".qps"); err == nil {
			out[i].RequestsPerSecond = f.text
		}
		for _, p := range b.pages {
			if p.step != nil && p.step.To == folder {
				out[i].Href = p.out
				if p == here {
					at, out[i].Here = i, true
				}
			}
		}
	}
	for i := range out {
		out[i].Filled = i <= at
	}
	return out
}

// searchIndex is the text of all pages by section, as a script: a page that is
// opened as a file may not fetch one.
func (b *builder) searchIndex() []byte {
	type entry struct {
		Page    string `json:"p"`
		Href    string `json:"u"`
		Heading string `json:"h"`
		Text    string `json:"t"`
	}
	var all []entry
	pages := slices.Clone(b.pages)
	for _, e := range b.exercises {
		pages = append(pages, e.page)
	}
	for _, p := range pages {
		for _, s := range p.sections {
			href := p.out
			if s.id != "" {
				href += "#" + s.id
			}
			all = append(all, entry{p.Title, href, s.heading, s.text})
		}
		if p.step == nil {
			continue
		}
		for _, f := range p.step.Files {
			for _, h := range f.Hunks {
				if h.Name != "imports" && h.Name != "package" {
					all = append(all, entry{p.Title, p.out + "#" + h.ID, h.Name, "in " + f.Name + " of " + p.step.To + ": " + h.text()})
				}
			}
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings can always be written
	}
	return fmt.Appendf(nil, "window.searchIndex = %s;\n", text)
}
