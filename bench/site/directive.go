package site

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// An include is a name and arguments in double braces: {{figure "hello.stage1.qps"}}.
type include struct {
	name string
	args []string // quoted ones without their quotes, numbers as they are
	line int
}

var includeForm = regexp.MustCompile(`\{\{\s*([a-z]+)((?:\s+(?:"(?:[^"\\]|\\.)*"|[0-9]+))*)\s*\}\}`)
var argumentForm = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[0-9]+`)

// expand replaces the includes of a page. What goes wrong is gathered in
// b.errs, so that one build tells all.
func (b *builder) expand(p *page, text string) string {
	return outsideCode(text, func(line int, text string) string {
		text = includeForm.ReplaceAllStringFunc(text, func(found string) string {
			parts := includeForm.FindStringSubmatch(found)
			in := include{name: parts[1], line: p.firstLine + line - 1}
			for _, a := range argumentForm.FindAllString(parts[2], -1) {
				if unquoted, err := strconv.Unquote(a); err == nil {
					a = unquoted
				}
				in.args = append(in.args, a)
			}
			out, err := b.include(p, in)
			if err != nil {
				b.fail("%s:%d: %w", p.source, in.line, err)
			}
			return out
		})
		if i := strings.Index(text, "{{"); i >= 0 {
			b.fail("%s:%d: %q is no include", p.source, p.firstLine+line-1, text[i:min(len(text), i+40)])
		}
		return text
	})
}

// include makes the HTML of one include.
func (b *builder) include(p *page, in include) (string, error) {
	need := func(least, most int) error {
		if len(in.args) < least || len(in.args) > most {
			return fmt.Errorf("{{%s}} takes %d to %d arguments, not %d", in.name, least, most, len(in.args))
		}
		return nil
	}
	switch in.name {
	case "figure":
		if err := need(1, 1); err != nil {
			return "", err
		}
		f, err := b.results.figure(in.args[0])
		return f.html(), err
	case "verdict":
		if err := need(1, 1); err != nil {
			return "", err
		}
		text, err := b.results.verdict(in.args[0])
		return `<span class="verdict">` + html.EscapeString(text) + `</span>`, err
	case "cite":
		if err := need(2, 6); err != nil {
			return "", err
		}
		var numbers []int
		for _, a := range in.args[:len(in.args)-1] {
			n, err := strconv.Atoi(a)
			if err != nil {
				return "", fmt.Errorf("{{cite}} takes numbers of documents and then a figure, not %q", a)
			}
			numbers = append(numbers, n)
		}
		return b.documents.cite(numbers, in.args[len(in.args)-1])
	case "hunk":
		if err := need(2, 12); err != nil {
			return "", err
		}
		return b.pointToHunks(p, in.args[0], in.args[1:])
	case "diagram":
		if err := need(2, 2); err != nil {
			return "", err
		}
		return b.diagram(in.args[0], in.args[1])
	case "man":
		if err := need(1, 1); err != nil {
			return "", err
		}
		return manual(in.args[0])
	case "test":
		if err := need(1, 1); err != nil {
			return "", err
		}
		return b.tests.name(in.args[0])
	case "counters":
		if err := need(2, 9); err != nil {
			return "", err
		}
		return b.countersTable(in.args[0], in.args[1:])
	case "result":
		if err := need(1, 1); err != nil {
			return "", err
		}
		return b.resultTable(in.args[0])
	case "ablation":
		if err := need(1, 1); err != nil {
			return "", err
		}
		return b.ablationTable(in.args[0])
	case "flame":
		if err := need(1, 2); err != nil {
			return "", err
		}
		return b.flame(in.args...)
	case "where":
		if err := need(1, 6); err != nil {
			return "", err
		}
		return b.whereTable(in.args...)
	case "peers":
		if err := need(2, 9); err != nil {
			return "", err
		}
		return b.peersTable(in.args[0], in.args[1:])
	case "progression":
		if err := need(0, 0); err != nil {
			return "", err
		}
		return b.progression()
	case "documents":
		return b.documentList(), need(0, 0)
	case "published":
		return b.publishedTable(), need(0, 0)
	case "chapters":
		return b.chapterList(), need(0, 0)
	}
	return "", fmt.Errorf("there is no include %q", in.name)
}

// pointToHunks writes the marks that lead from a paragraph to what it explains.
func (b *builder) pointToHunks(p *page, file string, anchors []string) (string, error) {
	if p.step == nil {
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
		// An empty line would end the HTML block in Markdown, and so would an indented one begin code.
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "<?xml") {
			lines = append(lines, line)
		}
	}
	// Several diagrams share a page, so an identifier must be told from another's.
	inline := strings.NewReplacer(`id="`, `id="`+name+`-`, `url(#`, `url(#`+name+`-`, `href="#`, `href="#`+name+`-`).Replace(strings.Join(lines, "\n"))
	return fmt.Sprintf("<figure class=\"diagram\">\n%s\n<figcaption>%s</figcaption></figure>", inline, html.EscapeString(caption)), nil
}

var manualPage = regexp.MustCompile(`^([a-z0-9_]+)\(([1-8])\)$`)

// manual links to a page of the Linux manual, by name and section.
func manual(name string) (string, error) {
	parts := manualPage.FindStringSubmatch(name)
	if parts == nil {
		return "", fmt.Errorf("%q is no name of a manual page, such as epoll(7)", name)
	}
	return fmt.Sprintf(`<a class="man" href="https://man7.org/linux/man-pages/man%s/%s.%s.html">%s</a>`, parts[2], parts[1], parts[2], name), nil
}
