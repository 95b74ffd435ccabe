package site

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// expand replaces the marks of a page. What goes wrong is gathered in b.errs,
// so that one build tells all.
func (b *builder) expand(p *page, text string) string {
	fail := func(line int, format string, args ...any) {
		b.fail("%s:%d: %w", p.source, p.firstLine+line-1, fmt.Errorf(format, args...))
	}
	outsideCode(withoutMarks(text), func(line int, part string) string {
		if i := strings.Index(part, "{{"); i >= 0 {
			fail(line, "%q is no include", part[i:min(len(part), i+40)])
		}
		return part
	})
	return replaceMarks(text, func(line int, found string) string {
		if plainLink(p, found) {
			return found
		}
		out, err := b.include(p, parseMark(found))
		if err != nil {
			fail(line, "%w", err)
		}
		return out
	})
}

// include makes the HTML of one mark. docs/README.md lists them all.
func (b *builder) include(p *page, m mark) (string, error) {
	name, args := m.name, m.args
	made, known := map[string]struct {
		least, most int // arguments
		html        func() (string, error)
	}{
		"figure": {1, 1, func() (string, error) {
			f, err := b.figure(args[0])
			return f.html(), err
		}},
		"verdict": {1, 1, func() (string, error) {
			text, err := b.verdict(args[0])
			return `<span class="verdict">` + html.EscapeString(text) + `</span>`, err
		}},
		"cite":        {2, 6, func() (string, error) { return b.documents.cite(args[:len(args)-1], args[len(args)-1]) }},
		"hunk":        {2, 12, func() (string, error) { return b.pointToHunks(p, args[0], args[1:]) }},
		"diagram":     {2, 2, func() (string, error) { return b.diagram(args[0], args[1]) }},
		"man":         {1, 1, func() (string, error) { return manual(args[0]) }},
		"test":        {1, 1, func() (string, error) { return b.test(args[0]) }},
		"counters":    {2, 9, func() (string, error) { return b.countersTable(args[0], args[1:]) }},
		"result":      {1, 1, func() (string, error) { return b.resultTable(args[0]) }},
		"ablation":    {1, 1, func() (string, error) { return b.ablationTable(args[0]) }},
		"flame":       {1, 2, func() (string, error) { return b.flame(p, args...) }},
		"where":       {1, 6, func() (string, error) { return b.whereTable(args...) }},
		"summit":      {0, 0, b.summitTable},
		"elsewhere":   {0, 0, b.elsewhereTable},
		"peers":       {2, 9, func() (string, error) { return b.peersTable(args[0], args[1:]) }},
		"rate":        {0, 0, b.rateTable},
		"network":     {0, 0, b.networkTable},
		"events":      {0, 0, b.eventsTable},
		"pin":         {0, 0, b.pinTable},
		"machines":    {0, 0, b.machinesTable},
		"lab":         {1, 1, func() (string, error) { return b.labTable(args[0]) }},
		"predicted":   {2, 2, func() (string, error) { return b.predictedTable(args[0], args[1]) }},
		"labs":        {0, 0, b.labList},
		"gains":       {0, 0, b.gainsPicture},
		"progression": {0, 0, b.progression},
		"documents":   {0, 0, b.documentList},
		"published":   {0, 0, b.publishedTable},
		"chapters":    {0, 0, b.chapterList},
	}[name]
	switch {
	case !known:
		return "", fmt.Errorf("there is no include %q", name)
	case len(args) < made.least || len(args) > made.most:
		return "", fmt.Errorf("%s takes %d to %d arguments, not %d", name, made.least, made.most, len(args))
	}
	return made.html()
}

// pointToHunks writes the marks that lead from a paragraph to what it explains.
func (b *builder) pointToHunks(p *page, file string, anchors []string) (string, error) {
	if p == nil || p.step == nil {
		return "", fmt.Errorf("this page has no diff: it needs step: or stage: at its top")
	}
	var out strings.Builder
	for _, anchor := range anchors {
		h, err := p.step.find(file, anchor)
		if err != nil {
			return "", err
		}
		id := fmt.Sprintf("x%d-%s", len(h.explained)+1, strings.TrimPrefix(h.ID, "d-"))
		h.explained = append(h.explained, id)
		fmt.Fprintf(&out, `<a class="to-hunk" id="%s" href="#%s"><span class="file">%s</span> %s</a> `, id, h.ID, file, html.EscapeString(h.Name))
	}
	return strings.TrimSpace(out.String()), nil
}

// diagram puts an SVG of docs/diagrams into the page itself, so that it takes
// part in light and dark.
func (b *builder) diagram(name, caption string) (string, error) {
	svg, err := os.ReadFile(filepath.Join(b.root, "docs", "diagrams", name+".svg"))
	if err != nil {
		return "", err
	}
	var lines []string
	for line := range strings.Lines(string(svg)) {
		// An empty line would end the HTML block in Markdown, and so would an indented one
		// begin code. The page has the colours itself.
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "<?xml") && line != pictureStyle {
			lines = append(lines, line)
		}
	}
	// Several diagrams share a page, so an identifier must be told from another's.
	inline := strings.NewReplacer(`id="`, `id="`+name+`-`, `url(#`, `url(#`+name+`-`, `href="#`, `href="#`+name+`-`).Replace(strings.Join(lines, "\n"))
	return fmt.Sprintf("<figure class=\"diagram\" tabindex=\"0\">\n%s\n<figcaption>%s</figcaption></figure>", inline, html.EscapeString(caption)), nil
}

var manualPage = regexp.MustCompile(`^([a-z0-9_]+)\(([1-8])\)$`)

// manual links to a page of the Linux manual, by name and section.
func manual(name string) (string, error) {
	if !manualPage.MatchString(name) {
		return "", fmt.Errorf("%q is no name of a manual page, such as epoll(7)", name)
	}
	return fmt.Sprintf(`<a class="man" href="%s">%s</a>`, manualAddress(name), name), nil
}

// manualAddress is where a page of the manual can be read.
func manualAddress(name string) string {
	return manualPage.ReplaceAllString(name, "https://man7.org/linux/man-pages/man$2/$1.$2.html")
}
