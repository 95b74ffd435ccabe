package site

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// escapeMarkdown escapes what Markdown would take for more than text. Square brackets are let
// through: no interval is followed by what would make a link of it.
var escapeMarkdown = strings.NewReplacer(`\`, `\\`, `*`, `\*`, "`", "\\`", `<`, `&lt;`, "\n", " ").Replace

// asMarkdown writes the HTML that an include makes as Markdown for a file: its paragraphs, lists and
// tables, and what stands in them. What else it has is left out, its text is kept.
func (b *builder) asMarkdown(file, fragment string) (string, error) {
	d := xml.NewDecoder(strings.NewReader("<div>" + fragment + "</div>"))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var (
		blocks  []string
		text    strings.Builder // of the paragraph, item or cell
		rows    [][]string
		numbers bool     // the table's columns but the first are numbers
		span    int      // of the cell
		links   []string // that are open
		code    bool
		anchor  string // of the section that begins
	)
	take := func() string {
		t := strings.TrimSpace(text.String())
		text.Reset()
		return t
	}
	attribute := func(e xml.StartElement, name string) string {
		if i := slices.IndexFunc(e.Attr, func(a xml.Attr) bool { return a.Name.Local == name }); i >= 0 {
			return e.Attr[i].Value
		}
		return ""
	}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(blocks, "\n\n"), nil
		}
		if err != nil {
			return "", err
		}
		switch t := token.(type) {
		case xml.CharData:
			if code {
				text.Write(t)
			} else {
				text.WriteString(escapeMarkdown(string(t)))
			}
		case xml.StartElement:
			switch t.Name.Local {
			case "div":
				numbers = slices.Contains(strings.Fields(attribute(t, "class")), "numbers")
			case "section":
				anchor = fmt.Sprintf(`<a id="%s"></a>`, attribute(t, "id"))
			case "table":
				rows = nil
			case "tr":
				rows = append(rows, nil)
			case "th", "td":
				text.Reset()
				span, _ = strconv.Atoi(attribute(t, "colspan"))
			case "p":
				text.Reset()
				text.WriteString(anchor)
				anchor = ""
			case "li":
				text.Reset()
			case "strong", "b":
				text.WriteString("**")
			case "code":
				text.WriteString("`")
				code = true
			case "br":
				text.WriteString("<br>")
			case "small", "sup":
				text.WriteString("<" + t.Name.Local + ">")
			case "a":
				text.WriteString("[")
				links = append(links, attribute(t, "href"))
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "table":
				blocks = append(blocks, markdownTable(rows, numbers))
			case "th", "td":
				row := &rows[len(rows)-1]
				*row = append(*row, take())
				for ; span > 1; span-- {
					*row = append(*row, "")
				}
			case "p":
				blocks = append(blocks, take())
			case "li":
				blocks = append(blocks, "- "+take())
			case "ol", "ul": // its items are lines next to each other
				from := len(blocks)
				for from > 0 && strings.HasPrefix(blocks[from-1], "- ") {
					from--
				}
				blocks = append(blocks[:from], strings.Join(blocks[from:], "\n"))
			case "strong", "b":
				text.WriteString("**")
			case "code":
				text.WriteString("`")
				code = false
			case "small", "sup":
				text.WriteString("</" + t.Name.Local + ">")
			case "a":
				last := len(links) - 1
				fmt.Fprintf(&text, "](%s)", b.sourceOf(file, links[last]))
				links = links[:last]
			}
		}
	}
}

// markdownTable is a table whose first row is its head.
func markdownTable(rows [][]string, numbers bool) string {
	var out strings.Builder
	for i, row := range rows {
		for _, cell := range row {
			out.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		out.WriteString("|\n")
		if i > 0 {
			continue
		}
		for column := range row {
			if numbers && column > 0 {
				out.WriteString("| ---: ")
			} else {
				out.WriteString("| --- ")
			}
		}
		out.WriteString("|\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// sourceOf is a link of the site as one between files of the repository: to the chapter that a page
// is made of.
func (b *builder) sourceOf(file, href string) string {
	to, anchor, found := strings.Cut(href, "#")
	if i := slices.IndexFunc(b.pages, func(p *page) bool { return p.out == to }); i >= 0 {
		to = relative(file, b.pages[i].source)
	}
	if found {
		to += "#" + anchor
	}
	return to
}
