// Package site builds the documentation: chapters beside the diffs that they
// explain, into one folder of plain files that needs no network.
//
// The text is Markdown with marks that the site fills in (docs/README.md lists
// them). Figures come from the results files in docs/data, diffs from the
// stage folders, and a build fails when either does not have what a chapter
// refers to.
//
// It measures nothing: what it shows was recorded by packages run and profile.
package site

import (
	"errors"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/profile"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// A page is one chapter, made of one Markdown file.
type page struct {
	source    string // path from the root of the repository
	out       string // file name in the site
	firstLine int    // of the text, behind the properties
	text      string

	Title string `yaml:"title"`
	Short string `yaml:"short"` // in the list of chapters
	Order int    `yaml:"order"`
	Step  string `yaml:"step"`  // the stage whose step it explains
	Stage string `yaml:"stage"` // the stage that it shows as a whole

	step     *Step
	body     template.HTML
	sections []section
}

// A section is what search finds: a heading and the text under it.
type section struct{ id, heading, text string }

// pageFiles are where the chapters lie.
var pageFiles = []string{"docs/*.md", "docs/chapters/*.md", "docs/workshop/README.md", "docs/labs/*.md"}

// readPages reads all chapters, in their order. Files without properties, such
// as docs/README.md, are none.
func readPages(root string) ([]*page, error) {
	var pages []*page
	for _, pattern := range pageFiles {
		names, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			p, err := readPage(root, name)
			if err != nil {
				return nil, err
			}
			if p != nil {
				pages = append(pages, p)
			}
		}
	}
	slices.SortFunc(pages, func(a, b *page) int { return a.Order - b.Order })
	if len(pages) == 0 {
		return nil, errors.New("there is no chapter in docs/chapters")
	}
	return pages, nil
}

// pageForm is what makes a file a page: properties in a comment at its top, or between lines of
// hyphens, as they are usually written. WriteMarks makes the comment, which no reader sees.
var pageForm = regexp.MustCompile(`^(?:---|<!--)\n((?s:.*?))\n(?:---|-->)\n`)

func readPage(root, name string) (*page, error) {
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	head := pageForm.FindStringSubmatch(string(b))
	if head == nil {
		return nil, nil
	}
	properties := head[1]
	p := &page{source: name, text: string(b)[len(head[0]):]}
	p.firstLine = strings.Count(properties, "\n") + 4
	if err := decodeYAML(name, []byte(properties), p); err != nil {
		return nil, err
	}
	if p.Title == "" || p.Short == "" {
		return nil, fmt.Errorf("%s: title: and short: are needed", name)
	}
	base := path.Base(name)
	if base == "README.md" {
		base = path.Base(path.Dir(name)) + ".md"
	} else if path.Base(path.Dir(name)) == labsName {
		base = "lab-" + base
	}
	p.out = strings.TrimSuffix(base, ".md") + ".html"
	return p, nil
}

// Site is the finished site, in memory.
type Site struct {
	Files map[string][]byte // by path
	pages []*page
}

type builder struct {
	root      string
	stages    []string
	results   *dataFiles
	mine      local // of this machine
	documents *documents
	tests     testNames
	ablation  *ablation
	labs      *labs
	summit    *ablation
	pages     []*page
	exercises []*exercise
	sources   map[string]bool // files of the repository that a page links to
	errs      []error
}

func (b *builder) fail(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

// Build makes the site from the repository at root. The error tells everything
// that is wrong, a line each.
func Build(root string) (*Site, error) { return BuildBeside(root, "") }

// BuildBeside is Build with what was measured on this machine beside our figures: run is what make
// ladder has left, and beside it may lie what make peers, where and lab have. There may be no such
// file, and one that does not fit is left out.
func BuildBeside(root, run string) (*Site, error) {
	b, err := newBuilder(root)
	if err != nil {
		return nil, err
	}
	if run != "" {
		b.mine = b.readLocal(run)
	}
	return b.build()
}

func newBuilder(root string) (b *builder, err error) {
	b = &builder{root: root, sources: map[string]bool{}}
	if b.stages, err = harness.Stages(root); err != nil {
		return nil, err
	}
	if b.results, err = readResults(root, b.stages); err != nil {
		return nil, err
	}
	if b.documents, err = readDocuments(root); err != nil {
		return nil, err
	}
	if b.tests, err = readTests(root); err != nil {
		return nil, err
	}
	if b.ablation, err = readAblation(root, ablationName); err != nil {
		return nil, err
	}
	if b.summit, err = readSummit(root); err != nil {
		return nil, err
	}
	if b.labs, err = readLabs(root); err != nil {
		return nil, err
	}
	b.documents.Published = append(b.documents.Published, b.labs.published()...)
	if b.exercises, err = readExercises(root); err != nil {
		return nil, err
	}
	b.pages, err = readPages(root)
	return b, err
}

func (b *builder) build() (*Site, error) {
	site := &Site{Files: map[string][]byte{}, pages: slices.Clone(b.pages)}
	for _, p := range b.pages {
		if err := b.prepare(p); err != nil {
			return nil, err
		}
		b.render(p, b.expand(p, p.text))
	}
	for _, e := range b.exercises {
		b.render(e.page, e.text)
	}
	b.explainTerms()
	for _, p := range b.pages {
		if p.step != nil {
			if missing := p.step.unexplained(); len(missing) > 0 {
				b.fail("%s: no paragraph explains these hunks of %s:\n  %s", p.source, p.step.To, strings.Join(missing, "\n  "))
			}
		}
	}
	for _, p := range b.documents.Published {
		if !p.cited {
			b.fail("no page quotes what the documents say of this: %s (%s)", p.Figure, p.What)
		}
	}
	if err := b.write(site); err != nil {
		return nil, err
	}
	b.checkLinks(site)
	return site, errors.Join(b.errs...)
}

// prepare makes the diff that a page is about.
func (b *builder) prepare(p *page) (err error) {
	switch {
	case p.Step != "":
		i := slices.Index(b.stages, b.results.server(p.Step))
		if i < 1 {
			return fmt.Errorf("%s: step: there is no step to %q", p.source, p.Step)
		}
		p.step, err = compareStages(b.root, b.stages[i-1], b.stages[i])
	case p.Stage != "":
		p.step, err = wholeStage(b.root, b.results.server(p.Stage))
	}
	return err
}

var (
	hrefForm = regexp.MustCompile(` href="([^"#]*)(?:#([^"]*))?"`)
	idForm   = regexp.MustCompile(` id="([^"]*)"`)
)

// checkLinks finds links within the site that lead to no file of it, or to no place of that file.
func (b *builder) checkLinks(site *Site) {
	ids := map[string]map[string]bool{}
	for name, content := range site.Files {
		ids[name] = map[string]bool{}
		for _, found := range idForm.FindAllSubmatch(content, -1) {
			ids[name][html.UnescapeString(string(found[1]))] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(site.Files)) {
		if path.Ext(name) != ".html" {
			continue
		}
		for _, found := range hrefForm.FindAllStringSubmatch(string(site.Files[name]), -1) {
			to, err := url.Parse(html.UnescapeString(found[1]))
			place, placeErr := url.PathUnescape(html.UnescapeString(found[2]))
			if err != nil || placeErr != nil {
				b.fail("%s: %q is no address", name, found[0])
				continue
			}
			file := name
			if to.Path != "" {
				file = path.Join(path.Dir(name), to.Path)
			}
			switch {
			case to.Scheme != "" || to.Host != "":
			case site.Files[file] == nil:
				b.fail("%s: a link leads to %s, which is not there", name, to.Path)
			case place != "" && !ids[file][place]:
				b.fail("%s: a link leads to %s#%s, which has no such place", name, to.Path, place)
			}
		}
	}
}

// write puts everything into the site.
func (b *builder) write(site *Site) error {
	for i, p := range b.pages {
		v := view{
			Title: p.Title, Body: p.body, Site: b.chapters(p), Rungs: b.rungs(p),
			Home: p.out == "index.html", Mine: b.mine.any(), Measured: b.results.documents[0].Created.Format("2 January 2006"),
		}
		if p.step != nil {
			v.Diff = p.step.html(b.source)
			v.From, v.To = p.step.From, p.step.To
			v.Number = strings.TrimPrefix(b.results.short(p.step.To), "stage")
		}
		for _, s := range p.sections {
			if s.id != "" {
				v.Contents = append(v.Contents, contentsEntry{s.id, s.heading})
			}
		}
		if i > 0 {
			v.Previous = &chapterLink{b.pages[i-1].out, b.pages[i-1].Title, "", false}
		}
		if i+1 < len(b.pages) {
			v.Next = &chapterLink{b.pages[i+1].out, b.pages[i+1].Title, "", false}
		}
		content, err := v.page()
		if err != nil {
			return err
		}
		site.Files[p.out] = content
	}
	if err := b.writeExercises(site); err != nil {
		return err
	}
	book, err := b.book()
	if err != nil {
		return err
	}
	site.Files[bookName] = book
	if site.Files[codeName], err = b.code(); err != nil {
		return err
	}
	for more := true; more; { // a source page may link to others
		more = false
		for _, file := range slices.Sorted(maps.Keys(b.sources)) {
			name := sourceName(file)
			if site.Files[name] != nil {
				continue
			}
			content, err := b.sourcePage(file)
			if err != nil {
				return err
			}
			site.Files[name], more = content, true
		}
	}
	site.Files["search.js"] = b.searchIndex()
	site.Files["flame.css"], site.Files["flame.js"] = []byte(profile.FlameStyle), []byte(profile.FlameScript)
	for _, name := range []string{"site.css", "site.js"} {
		content, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		site.Files[name] = content
	}
	return nil
}

// source makes sure that the site shows a file of the repository, and says where.
func (b *builder) source(file string) string {
	if _, err := os.Stat(filepath.Join(b.root, filepath.FromSlash(file))); err != nil {
		return "" // the file that a step takes away
	}
	b.sources[file] = true
	return sourceName(file)
}

// sourceName is where a file of the repository stands in the site.
func sourceName(file string) string {
	// No file name may begin with a dot: the stages' static route does not serve those.
	parts := strings.Split(file, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, ".") {
			parts[i] = "dot-" + part[1:]
		}
	}
	return "source/" + strings.Join(parts, "/") + ".html"
}

// sourcePage shows a file of the repository that a page links to: Markdown as a page, all else as a
// listing.
func (b *builder) sourcePage(file string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	v := view{Title: file, Site: b.chapters(nil), Rungs: b.rungs(nil), Up: strings.Repeat("../", strings.Count(sourceName(file), "/"))}
	if path.Ext(file) == ".md" {
		p := &page{source: file, out: sourceName(file), Title: file}
		b.render(p, string(text))
		v.Body = p.body
		return v.page()
	}
	language := map[string]string{".go": "go", ".yaml": "yaml", ".json": "json", ".c": "c"}[path.Ext(file)]
	if path.Base(file) == "Makefile" {
		language = "make"
	}
	var out strings.Builder
	out.WriteString(`<div class="listing">`)
	for i, line := range highlight(language, string(text)) {
		writeLine(&out, fmt.Sprintf(`class="l" id="L%d"`, i+1), fmt.Sprintf(`<span class="no">%d</span>`, i+1), line, line)
	}
	out.WriteString("</div>")
	v.Body, v.Listing = template.HTML("<h1>"+html.EscapeString(file)+"</h1>"+out.String()), true
	return v.page()
}

// Write puts the site into a folder, and takes away what an earlier one left
// there. A folder that holds something else is refused.
func (s *Site) Write(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, "site.css")); len(entries) > 0 && err != nil {
		return fmt.Errorf("%s holds something that is not this site: choose another folder", folder)
	}
	for name, content := range s.Files {
		target := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return err
		}
	}
	return filepath.WalkDir(folder, func(target string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, target)
		if err == nil && s.Files[filepath.ToSlash(name)] == nil {
			err = os.Remove(target)
		}
		return err
	})
}
