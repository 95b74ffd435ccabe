// Package report shows the results of a run to people: tables for a terminal and as Markdown, CSV,
// charts as SVG, and a page that holds all of it and asks nobody for anything.
//
// It measures nothing and judges nothing: verdicts and notes come with the results (package results).
package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/results"
)

// files are what is to be written into a folder, and the paths of those that are.
type files struct {
	folder string
	paths  []string
	err    error // the first; nothing is written behind it
}

func (f *files) write(name string, content []byte) {
	if f.err == nil {
		path := filepath.Join(f.folder, name)
		if f.err = os.WriteFile(path, content, 0o644); f.err == nil {
			f.paths = append(f.paths, path)
		}
	}
}

// stem is what the files of a run are called: one that did not complete does not replace one that
// did.
func stem(d *results.Document, name string) string {
	if d.Ended != results.Complete {
		name += "-partial"
	}
	return name
}

// Write leaves name.json and name.md in folder, and copies with the date in their names, and
// returns the paths of the first two. Those of a run that did not complete are called name-partial.
func Write(d *results.Document, folder, name string) ([]string, error) {
	encoded, err := json.MarshalIndent(d, "", "\t")
	if err != nil {
		return nil, err
	}
	var markdown bytes.Buffer
	Markdown(&markdown, d)
	f, copies := files{folder: folder}, files{folder: folder}
	name = stem(d, name)
	dated := name + "-" + d.Created.Format("2006-01-02T15-04-05Z")
	f.write(name+".json", append(encoded, '\n'))
	f.write(name+".md", markdown.Bytes())
	copies.write(dated+".json", append(encoded, '\n'))
	copies.write(dated+".md", markdown.Bytes())
	return f.paths, cmp.Or(f.err, copies.err)
}

// chaptersBeside finds the chapters from a folder in the repository such as bench/out: pages of the
// site if that was built, else their text.
func chaptersBeside(folder string) func(stage string) string {
	return func(stage string) string {
		if stageNumber(stage) < 0 {
			return ""
		}
		name := strings.TrimPrefix(stage, "stage")
		if stageNumber(stage) == 0 {
			name = "stage0"
		}
		for _, place := range []string{"../../docs/_site/" + name + ".html", "../../docs/chapters/" + name + ".md"} {
			if _, err := os.Stat(filepath.Join(folder, filepath.FromSlash(place))); err == nil {
				return place
			}
		}
		return ""
	}
}

// WritePage leaves name.html and name.csv in folder, and for the ladder its progression as two SVG
// files, for light and dark pages. Those of a run that did not complete are called name-partial.
func WritePage(d *results.Document, folder, name string) ([]string, error) {
	var page, figures bytes.Buffer
	if err := HTML(&page, d, chaptersBeside(folder)); err != nil {
		return nil, fmt.Errorf("cannot make the page: %w", err)
	}
	if err := CSV(&figures, d); err != nil {
		return nil, err
	}
	f := files{folder: folder}
	name = stem(d, name)
	f.write(name+".html", page.Bytes())
	f.write(name+".csv", figures.Bytes())
	if d.IsLadder() {
		const title = "Requests per second of each stage"
		if svg := progression(d, light, title); svg != "" {
			f.write(name+"-light.svg", []byte(svg))
			f.write(name+"-dark.svg", []byte(progression(d, dark, title)))
		}
	}
	return f.paths, f.err
}
