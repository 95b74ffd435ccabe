package site

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	rendererhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown is CommonMark with tables. HTML is let through: the chapters are
// our own, and answers are folded in <details>.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(rendererhtml.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(codeBlocks{}, 100))),
)

// headingIDs gives the headings of a page the anchors that GitHub gives them, so that a link to one
// works in both places.
type headingIDs map[string]bool

// Generate implements parser.IDs.
func (h headingIDs) Generate(heading []byte, _ ast.NodeKind) []byte {
	base := slug(strings.TrimSpace(string(heading)))
	id := base
	for n := 1; h[id]; n++ {
		id = fmt.Sprintf("%s-%d", base, n)
	}
	h[id] = true
	return []byte(id)
}

// Put implements parser.IDs.
func (h headingIDs) Put(id []byte) { h[string(id)] = true }

// codeBlocks writes blocks of code, fenced ones in colour.
type codeBlocks struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (codeBlocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	write := func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		language := ""
		if fenced, ok := n.(*ast.FencedCodeBlock); ok {
			language = string(fenced.Language(source))
		}
		fmt.Fprintf(w, `<pre class="block" tabindex="0"><code>%s</code></pre>`+"\n",
			strings.TrimRight(strings.Join(highlight(language, string(n.Lines().Value(source))), "\n"), "\n"))
		return ast.WalkSkipChildren, nil
	}
	r.Register(ast.KindFencedCodeBlock, write)
	r.Register(ast.KindCodeBlock, write)
}

// tag is one of HTML.
var tag = regexp.MustCompile(`<[^>]*>`)

// render turns Markdown with HTML in the place of marks into a page, and notes its sections.
func (b *builder) render(p *page, expanded string) {
	source := []byte(expanded)
	document := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(headingIDs{}))))
	current := section{heading: p.Title}
	var words strings.Builder
	end := func() {
		current.text = strings.Join(strings.Fields(words.String()), " ")
		p.sections = append(p.sections, current)
		words.Reset()
	}
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				words.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			name, _ := id.([]byte)
			if n.Level > 1 {
				end()
				current = section{id: string(name), heading: plain(n, source)}
			}
			return ast.WalkSkipChildren, nil
		case *ast.Paragraph:
			// A term of the glossary is found like a heading.
			if term, ok := n.FirstChild().(*ast.Emphasis); ok && term.Level == 2 && p.source == glossaryPage {
				end()
				current = section{heading: strings.TrimSuffix(plain(term, source), ".")}
				current.id = slug(current.heading)
				n.SetAttributeString("id", []byte(current.id))
			}
		case *ast.HTMLBlock: // tables and questions; the frames of a flame graph say nothing alone
			if block := strings.TrimSpace(string(n.Lines().Value(source))); !strings.HasPrefix(block, "<figure") {
				words.WriteString(html.UnescapeString(tag.ReplaceAllString(block, " ")) + " ")
			}
		case *ast.Link:
			n.Destination = []byte(b.resolve(p, string(n.Destination)))
		case *ast.Text:
			words.Write(n.Value(source))
			if n.SoftLineBreak() {
				words.WriteByte(' ')
			}
		case *ast.String:
			words.Write(n.Value)
		}
		return ast.WalkContinue, nil
	})
	end()
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, document); err != nil {
		b.fail("%s: %w", p.source, err)
	}
	body := strings.NewReplacer("<th></th>", "<td></td>", "<table>", `<div class="table" tabindex="0"><table>`, "</table>", "</table></div>").Replace(out.String())
	p.body = template.HTML(b.linkExercises(p, body))
}

// glossaryPage explains terms, a paragraph each that begins with the term.
const glossaryPage = "docs/chapters/glossary.md"

// plain is a node's text.
func plain(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			out.Write(t.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

// resolve turns the target of a link into one that works in the site: chapters
// become pages, other files of the repository are shown as source pages.
func (b *builder) resolve(p *page, to string) string {
	u, err := url.Parse(to)
	if err != nil {
		b.fail("%s: %q is no address: %w", p.source, to, err)
		return to
	}
	if u.Scheme != "" || u.Host != "" || u.Path == "" || strings.HasSuffix(u.Path, ".html") && !strings.Contains(u.Path, "/") {
		return to // checkLinks looks at those within the site
	}
	file := path.Join(path.Dir(p.source), u.Path)
	up := strings.Repeat("../", strings.Count(p.out, "/"))
	if i := slices.IndexFunc(b.pages, func(x *page) bool { return x.source == file }); i >= 0 {
		u.Path = up + b.pages[i].out
		return u.String()
	}
	if i := slices.IndexFunc(b.exercises, func(e *exercise) bool { return e.source == file }); i >= 0 {
		b.exercises[i].isNamed(p)
		u.Path = up + b.exercises[i].out
		return u.String()
	}
	if info, err := os.Stat(filepath.Join(b.root, filepath.FromSlash(file))); err == nil && info.IsDir() {
		file = path.Join(file, "README.md")
	}
	line, ok := place(b.root, file, u.Fragment)
	if !ok {
		b.fail("%s: a link leads to %s, which is not there", p.source, to)
		return ""
	}
	b.sources[file] = true
	switch {
	case u.Fragment == "":
		return up + sourceName(file)
	case path.Ext(file) == ".md": // which is a page, with the same anchors
		return up + sourceName(file) + "#" + u.Fragment
	}
	return fmt.Sprintf("%s%s#L%d", up, sourceName(file), line)
}

// chapterList is the list of all chapters, for the first page.
func (b *builder) chapterList() (string, error) {
	var out strings.Builder
	out.WriteString(`<ol class="chapter-list">`)
	for _, p := range b.pages {
		if p.out != "index.html" {
			fmt.Fprintf(&out, `<li><a href="%s">%s</a></li>`, p.out, html.EscapeString(p.Title))
		}
	}
	out.WriteString("</ol>")
	return out.String(), nil
}

// highlight colours source text and answers its lines as HTML. The classes are
// chroma's; site.css gives them their colours.
func highlight(language, source string) []string {
	lexer := lexers.Get(language)
	if lexer == nil {
		lexer = lexers.Fallback
	}
	tokens, err := chroma.Tokenise(chroma.Coalesce(lexer), nil, source)
	// chroma gives up a match after a quarter of a second and calls the byte an
	// error: on a very busy machine that happens to good code too. The same sources
	// shall make the same site.
	for range 9 {
		if err != nil || !slices.ContainsFunc(tokens, func(t chroma.Token) bool { return t.Type == chroma.Error }) {
			break
		}
		tokens, err = chroma.Tokenise(chroma.Coalesce(lexer), nil, source)
	}
	if err != nil {
		return strings.Split(html.EscapeString(source), "\n")
	}
	var lines []string
	for _, line := range chroma.SplitTokensIntoLines(tokens) {
		var b strings.Builder
		for _, t := range line {
			text := html.EscapeString(strings.TrimSuffix(t.Value, "\n"))
			class := chroma.StandardTypes[t.Type]
			if class == "" || text == "" || strings.TrimSpace(t.Value) == "" {
				b.WriteString(text)
				continue
			}
			b.WriteString(`<span class="` + class + `">` + text + `</span>`)
		}
		lines = append(lines, b.String())
	}
	return lines
}
