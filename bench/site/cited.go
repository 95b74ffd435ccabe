package site

import (
	"fmt"
	"html"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// documents is docs/data/documents.yaml: what others have published, so that
// a chapter can quote no figure of theirs that they did not give.
type documents struct {
	Documents []document `yaml:"documents"`
	Note      string     `yaml:"note"` // for the ladder's table, see package results
	Published []published
}

type document struct {
	Number int    `yaml:"number"`
	Title  string `yaml:"title"`  // as published, in Chinese
	Means  string `yaml:"means"`  // the title in English
	Author string `yaml:"author"` // as far as the document says
	Says   string `yaml:"says"`
}

// published is one figure, as it may be quoted.
type published struct {
	Figure string `yaml:"figure"`
	In     []int  `yaml:"in"`
	What   string `yaml:"what"`
	Stage  string `yaml:"stage,omitempty"` // the stage that it belongs to, where it does to one

	Includes string `yaml:"includes,omitempty"` // a stage whose step is in the figure too
	Remark   string `yaml:"remark,omitempty"`   // what stands behind the figure in the ladder's table

	cited bool // by a page that has been made
}

func readDocuments(root string) (*documents, error) {
	path := filepath.Join(root, "docs", "data", "documents.yaml")
	var d documents
	if err := readYAML(path, &d); err != nil {
		return nil, err
	}
	for _, p := range d.Published {
		if p.Figure == "" || p.What == "" || len(p.In) == 0 {
			return nil, fmt.Errorf("%s: figure %q needs what it is and where it stands", path, p.Figure)
		}
		for _, n := range p.In {
			if !slices.ContainsFunc(d.Documents, func(x document) bool { return x.Number == n }) {
				return nil, fmt.Errorf("%s: figure %q: there is no document %d", path, p.Figure, n)
			}
		}
	}
	return &d, nil
}

// cite writes a published figure with the documents, by number, that it stands in.
func (d *documents) cite(numbers []string, figure string) (string, error) {
	var marks []string
	for _, number := range numbers {
		n, err := strconv.Atoi(number)
		if err != nil {
			return "", fmt.Errorf("cite: want the numbers of documents and then a figure, not %q", number)
		}
		given := false
		for i := range d.Published { // a lab may list what the documents' own list has too
			if p := &d.Published[i]; p.Figure == figure && slices.Contains(p.In, n) {
				given, p.cited = true, true
			}
		}
		if !given {
			return "", fmt.Errorf("document %d gives no figure %q: docs/data/documents.yaml lists those it does", n, figure)
		}
		marks = append(marks, fmt.Sprintf(`<a href="sources.html#document-%d" title="document %d">%d</a>`, n, n, n))
	}
	return fmt.Sprintf(`<span class="cited">%s<sup>[%s]</sup></span>`, html.EscapeString(figure), strings.Join(marks, ",")), nil
}

// ofStage is the published figure that belongs to a stage, "–" when there is none.
func (d *documents) ofStage(stage string) string {
	for _, p := range d.Published {
		if p.Stage == stage {
			var numbers []string
			for _, n := range p.In {
				numbers = append(numbers, strconv.Itoa(n))
			}
			if text, err := d.cite(numbers, p.Figure); err == nil {
				return text
			}
		}
	}
	return "–"
}
