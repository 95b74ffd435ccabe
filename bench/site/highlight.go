package site

import (
	"html"
	"slices"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

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
