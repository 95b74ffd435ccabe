package site

import (
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
)

// bookName is the page that has the text of all others, one behind the other, to be printed.
const bookName = "book.html"

var (
	anyID   = regexp.MustCompile(`( id="|url\(#|aria-describedby="| for=")`)
	anyHref = regexp.MustCompile(` href="([^"#:]*)(?:#([^"]*))?"`)
)

// book is that page. Pages use the same identifiers, so each gets its own before them.
func (b *builder) book() ([]byte, error) {
	var out strings.Builder
	part := func(page string) string { return strings.TrimSuffix(page, ".html") }
	for _, p := range b.pages {
		body := anyID.ReplaceAllString(string(p.body), "${1}"+part(p.out)+"--")
		body = anyHref.ReplaceAllStringFunc(body, func(found string) string {
			to := anyHref.FindStringSubmatch(found)
			file, place := to[1], to[2]
			switch {
			case strings.HasPrefix(place, "d-") && file == "": // code, which stands beside the page
				return fmt.Sprintf(` href="%s#%s"`, p.out, place)
			case file == "":
				file = p.out
			case !slices.ContainsFunc(b.pages, func(x *page) bool { return x.out == file }):
				return found
			}
			if place == "" {
				return fmt.Sprintf(` href="#%s"`, part(file))
			}
			return fmt.Sprintf(` href="#%s--%s"`, part(file), place)
		})
		fmt.Fprintf(&out, `<section class="part" id="%s">%s</section>`, part(p.out), body)
	}
	v := view{Title: "All of it", Body: template.HTML(out.String()), Site: b.chapters(nil), Rungs: b.rungs(nil), Mine: b.mine.any()}
	return v.page()
}
