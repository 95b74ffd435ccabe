package site

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Chapters and READMEs are also read where no program fills anything in: in an editor, and where the
// code is hosted. So what comes from docs/data or from the code stands in their text, between marks
// that a reader does not see:
//
//	<!--figure c1.stage1/stage0.ratio-->1.28 [1.18–1.36]<!--/-->
//	<!--cite 1,4 12.5%-->12.5%<sup>[1,4]</sup><!--/-->
//	<!--counters hello stage0 stage1-->a table<!--/-->
//
// In a page four things are marks by their form alone:
//
//	[idle.go `conn.setTimer`](../../stage2-conn-timer/idle.go#L40-L52)  a hunk of the page's step
//	[a folded value](../../shared/suite/head.go)                        a test, by its name
//	[epoll(7)](https://man7.org/linux/man-pages/man7/epoll.7.html)      a page of the manual
//	![what it shows](../diagrams/stage1.svg)\                           a diagram; the next line
//	*its caption*                                                       is its caption
//
// Whoever writes may give any of them in short, as {{figure "hello.stage1.qps"}} or
// {{hunk "idle.go" "conn.setTimer"}}. WriteMarks makes the mark of it, and writes anew what every
// mark holds; Check fails where a text is not what WriteMarks would write. The site is made of the
// same marks, see builder.include.
var markForm = regexp.MustCompile(`(?s)` + strings.Join([]string{
	`\{\{\s*(?<short>[a-z]+)(?<given>(?:\s+(?:"(?:[^"\\]|\\.)*"|[0-9]+))*)\s*\}\}`,
	`<!--(?<name>[a-z]+)(?<argument>(?: [^<>]*?)?)-->.*?<!--/-->`,
	"\\[(?<file>[\\w-]+\\.go) `(?<hunk>[^`\\]\n]+)`\\]\\([^()\\s]*\\)",
	"\\[(?<test>[^\\[\\]`\n]+)\\]\\([^()\\s]*(?:_test\\.go|\\.cases|/suite/[\\w-]+\\.go)\\)",
	`\[(?<man>[a-z0-9_]+\([1-8]\))\]\([^()\s]*\)`,
	`!\[[^\]]*\]\([^()\s]*diagrams/(?<diagram>[\w-]+)\.svg\)\\?\n\*(?<caption>[^*\n]+)\*`,
}, "|"))

var argumentForm = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[0-9]+`)

// A mark is what the program fills in: {"figure", ["hello.stage1.qps"]}.
type mark struct {
	name string
	args []string
}

// parseMark reads what markForm has found.
func parseMark(found string) mark {
	parts := markForm.FindStringSubmatch(found)
	part := func(name string) string { return parts[markForm.SubexpIndex(name)] }
	switch {
	case part("short") != "":
		args := argumentForm.FindAllString(part("given"), -1)
		for i, a := range args {
			if unquoted, err := strconv.Unquote(a); err == nil { // a number is as it is
				args[i] = unquoted
			}
		}
		return mark{part("short"), args}
	case part("file") != "":
		return mark{"hunk", []string{part("file"), part("hunk")}}
	case part("test") != "":
		return mark{"test", []string{part("test")}}
	case part("man") != "":
		return mark{"man", []string{part("man")}}
	case part("diagram") != "":
		return mark{"diagram", []string{part("diagram"), part("caption")}}
	}
	name, argument := part("name"), strings.TrimSpace(part("argument"))
	switch {
	case argument == "":
		return mark{name, nil}
	case name == "figure" || name == "verdict": // "hello.stage5 again/stage5.ratio"
		return mark{name, []string{argument}}
	case name == "cite": // "1,4 27.5 K"
		numbers, value, _ := strings.Cut(argument, " ")
		return mark{name, append(strings.Split(numbers, ","), value)}
	}
	return mark{name, strings.Fields(argument)}
}

// around puts the comments of a mark around what it holds.
func (m mark) around(text string) string {
	argument := strings.Join(m.args, " ")
	if last := len(m.args) - 1; m.name == "cite" {
		argument = strings.Join(m.args[:last], ",") + " " + m.args[last]
	}
	return "<!--" + strings.TrimSpace(m.name+" "+argument) + "-->" + text + "<!--/-->"
}

// replaceMarks calls replace for every mark of a text that is not in code, with the line that it
// begins in, from 1, and joins what comes back.
func replaceMarks(text string, replace func(line int, found string) string) string {
	var out, stretch strings.Builder
	number, first := 0, 1
	end := func() {
		s, from := stretch.String(), 0
		for _, at := range markForm.FindAllStringIndex(s, -1) {
			before := s[:at[0]]
			if inLine := before[strings.LastIndexByte(before, '\n')+1:]; strings.Count(inLine, "`")%2 == 1 {
				continue // in a code span
			}
			out.WriteString(s[from:at[0]])
			out.WriteString(replace(first+strings.Count(before, "\n"), s[at[0]:at[1]]))
			from = at[1]
		}
		out.WriteString(s[from:])
		stretch.Reset()
	}
	for line, fenced := range lines(text) {
		number++
		if !fenced {
			stretch.WriteString(line)
			continue
		}
		end()
		out.WriteString(line)
		first = number + 1
	}
	end()
	return out.String()
}

// withoutMarks is a text without its marks and what they hold, in the same lines.
func withoutMarks(text string) string {
	return replaceMarks(text, func(_ int, found string) string { return strings.Repeat("\n", strings.Count(found, "\n")) })
}

// isLink says whether a mark is one by its form alone.
func isLink(found string) bool { return strings.HasPrefix(found, "[") || strings.HasPrefix(found, "!") }

// plainLink says whether what looks like a mark is an ordinary link: none is a mark in a README, and
// no hunk on a page without a step.
func plainLink(p *page, found string) bool {
	return isLink(found) && (p == nil || p.step == nil && parseMark(found).name == "hunk")
}

// WriteMarks writes anew what the marks of all pages and READMEs hold, and the pictures in docs/data
// that they show. It returns the names of the files that have changed. Of what was just measured it
// leaves in docs/data what the pages and READMEs read.
func WriteMarks(root string) (changed []string, err error) {
	b, err := newBuilder(root)
	if err != nil {
		return nil, err
	}
	err = b.eachMarked(func(name, old, text string) error {
		if text == old {
			return nil
		}
		changed = append(changed, name)
		return os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text), 0o644)
	})
	if err != nil {
		return changed, err
	}
	return changed, prune(root)
}

// checkMarks finds texts and pictures that are not what WriteMarks would write.
func (b *builder) checkMarks() error {
	return b.eachMarked(func(name, text, want string) error {
		var errs []error
		if want != text {
			errs = append(errs, fmt.Errorf("%s: it is not what docs/data and the code say: make docs-readmes writes it", name))
		}
		if !strings.HasSuffix(name, ".md") {
			return errors.Join(errs...)
		}
		for _, at := range lineBegins.FindAllStringIndex(text, -1) {
			errs = append(errs, fmt.Errorf("%s:%d: a line begins with %s, which Markdown takes for a block of HTML: let a word stand before it", name,
				strings.Count(text[:at[0]], "\n")+1, strings.TrimSpace(text[at[0]:at[1]])))
		}
		for _, f := range findTyped(text) {
			errs = append(errs, fmt.Errorf(`%s:%d: %q is typed in: use {{figure "…"}}, or {{cite n "…"}} for what a document says, and make docs-readmes`, name, f.line, f.text))
		}
		return errors.Join(errs...)
	})
}

var (
	// lineBegins is a mark within text at the beginning of a line, or of an item or a quotation.
	lineBegins = regexp.MustCompile(`(?m)^ *(?:(?:[-*+>]|\d+[.)]) +)*<!--(?:figure|cite|verdict) [^<>]*-->`)

	// lineGoesOn is one before which its paragraph has another line.
	lineGoesOn = regexp.MustCompile(`(\S)\n(<!--(?:figure|cite|verdict) [^<>]*-->[^\n]*?<!--/-->[^\s]*)[ \n]`)
)

// eachMarked calls f with each page, README and picture as it is and as it should be.
func (b *builder) eachMarked(f func(name, old, text string) error) error {
	readmes, err := readmeFiles(b.root)
	errs := []error{err}
	one := func(name string, make func(old string) (string, error)) {
		old, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(name)))
		if err != nil && path.Ext(name) == ".md" {
			errs = append(errs, err)
			return
		}
		text, err := make(string(old))
		if err == nil {
			err = f(name, string(old), text)
		}
		errs = append(errs, err)
	}
	for _, name := range readmes {
		one(name, func(old string) (string, error) { return b.marked(name, nil, old) })
	}
	for _, p := range b.pages {
		if err := b.prepare(p); err != nil {
			return err
		}
		one(p.source, func(old string) (string, error) { return b.marked(p.source, p, old) })
	}
	for _, picture := range b.pictures() {
		one(picture.file, func(string) (string, error) { return picture.draw() })
	}
	return errors.Join(errs...)
}

// marked is the text of a file with what its marks should hold. p is its page, nil for a README.
func (b *builder) marked(file string, p *page, text string) (string, error) {
	var errs []error
	text = replaceMarks(text, func(line int, found string) string {
		if plainLink(p, found) {
			return found
		}
		out, err := b.written(file, p, parseMark(found))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", file, line, err))
			return found
		}
		return out
	})
	if p != nil {
		text = pageForm.ReplaceAllString(text, "<!--\n$1\n-->\n")
	}
	for {
		moved := lineGoesOn.ReplaceAllString(text, "$1 $2\n")
		if moved == text {
			return text, errors.Join(errs...)
		}
		text = moved
	}
}

// written is a mark as it stands in a file, with what it holds.
func (b *builder) written(file string, p *page, m mark) (string, error) {
	switch m.name {
	case "ladder":
		table, err := b.ladderTable()
		return m.around(table), err
	case "hunk": // which is explained where the site shows it
		return b.hunkLinks(file, p, m.args)
	}
	html, err := b.include(p, m)
	if err != nil {
		return "", err
	}
	block := func(text string, err error) (string, error) { return m.around("\n\n" + text + "\n\n"), err }
	switch m.name {
	case "figure":
		f, err := b.figure(m.args[0])
		return m.around(escapeMarkdown(f.text)), err
	case "verdict":
		text, err := b.verdict(m.args[0])
		return m.around(escapeMarkdown(text)), err
	case "cite":
		last := len(m.args) - 1
		return m.around(escapeMarkdown(m.args[last]) + "<sup>[" + strings.Join(m.args[:last], ",") + "]</sup>"), nil
	case "test":
		return fmt.Sprintf("[%s](%s)", m.args[0], relative(file, b.tests[m.args[0]].file)), nil
	case "man":
		return fmt.Sprintf("[%s](%s)", m.args[0], manualAddress(m.args[0])), nil
	case "diagram":
		return b.diagramMarkdown(file, m.args[0], m.args[1])
	case "progression":
		return block(b.progressionMarkdown(file))
	case "flame":
		return block(b.flameMarkdown(file, m.args))
	case "gains":
		return block(fmt.Sprintf("![%s](%s)\\\n*%s*", gainsAbout, relative(file, gainsFile), gainsCaption), nil)
	}
	return block(b.asMarkdown(file, html))
}

// relative is the way from one file of the repository to another.
func relative(from, to string) string {
	way, err := filepath.Rel(filepath.FromSlash(path.Dir(from)), filepath.FromSlash(to))
	if err != nil {
		panic(err) // both begin at the root
	}
	return filepath.ToSlash(way)
}

// hunkLinks are links to the lines of hunks, where they stand now or, if they are gone, where they
// stood.
func (b *builder) hunkLinks(file string, p *page, args []string) (string, error) {
	if len(args) < 2 || p == nil || p.step == nil {
		return "", errors.New("a hunk needs a file and a declaration, and a page with step: or stage: at its top")
	}
	var out []string
	for _, name := range args[1:] {
		h, err := p.step.find(args[0], name)
		if err != nil {
			return "", err
		}
		folder, first, last := p.step.place(h)
		anchor := fmt.Sprintf("L%d-L%d", first, last)
		if first == last {
			anchor = fmt.Sprintf("L%d", first)
		}
		out = append(out, fmt.Sprintf("[%s `%s`](%s#%s)", args[0], name, relative(file, folder+"/"+args[0]), anchor))
	}
	return strings.Join(out, " "), nil
}

// place is the stage in which a hunk stands, and its first and last line there.
func (s *Step) place(h *Hunk) (folder string, first, last int) {
	folder = s.To
	if h.Change == "gone" {
		folder = s.From
	}
	for _, r := range h.Runs {
		lines, from := r.new, r.newFirst
		if h.Change == "gone" {
			lines, from = r.old, r.oldFirst
		}
		if len(lines) == 0 {
			continue
		}
		if first == 0 {
			first, last = from, from-1
		}
		last += len(lines)
	}
	return folder, first, last
}

// readmeFiles are the Markdown outside docs/ that has marks.
func readmeFiles(root string) ([]string, error) {
	files, err := fs.Glob(os.DirFS(root), "stage*/README.md")
	return append([]string{"README.md"}, files...), err
}
