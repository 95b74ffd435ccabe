package site

import (
	"html"
	"html/template"
	"regexp"
	"slices"
	"strings"
)

var (
	// explainedTerm is a term of the glossary, with its anchor and what it says.
	explainedTerm = regexp.MustCompile(`(?s)<p id="([^"]+)"><strong>(.+?)\.</strong>(.*?)</p>`)
	emphasis      = regexp.MustCompile(`<em>([^<]+)</em>`)
	anyLink       = regexp.MustCompile(`</?a\b[^>]*>`)
)

var summary = regexp.MustCompile(`(?s)<summary>.*?</summary>`)

// plainSummaries takes the links out of what folds and unfolds: a click there can mean one thing
// only.
func plainSummaries(body string) string {
	return summary.ReplaceAllStringFunc(body, func(found string) string {
		return anyLink.ReplaceAllString(found, "")
	})
}

// explainTerms makes the emphasised terms of all pages links to the glossary that say what it says:
// a term is emphasised where it is used in the sense of one.
func (b *builder) explainTerms() {
	i := slices.IndexFunc(b.pages, func(p *page) bool { return p.out == "glossary.html" })
	if i < 0 {
		return
	}
	links := map[string]string{} // by the term in small letters
	for _, found := range explainedTerm.FindAllStringSubmatch(string(b.pages[i].body), -1) {
		says := strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(found[3], ""))), " ")
		for name := range strings.SplitSeq(found[2], ", ") {
			links[strings.ToLower(name)] = `<a data-term="` + html.EscapeString(says) + `" href="glossary.html#` + found[1] + `">`
		}
	}
	explain := slices.Delete(slices.Clone(b.pages), i, i+1)
	for _, e := range b.exercises {
		explain = append(explain, e.page)
	}
	for _, p := range explain {
		p.body = template.HTML(plainSummaries(emphasis.ReplaceAllStringFunc(string(p.body), func(found string) string {
			if link := links[strings.ToLower(emphasis.FindStringSubmatch(found)[1])]; link != "" {
				return link + found + "</a>"
			}
			return found
		})))
	}
}
