package site

import (
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"os"
	"path"
	"strings"
)

// codeName is the page that lists the code which stands beside no chapter.
const codeName = "code.html"

// codeFolders are listed there: what all stages share. The tests of each stage come behind them.
var codeFolders = []string{"shared/netpoll", "shared/http1", "shared/app", "shared/serve"}

// code is that page. Each file that it lists becomes a page.
func (b *builder) code() ([]byte, error) {
	var out strings.Builder
	out.WriteString("<h1>Code beside the chapters</h1><p>What all six stages share, and the tests of each. The stages themselves stand beside the chapters.</p>")
	list := func(title string, files []string) {
		fmt.Fprintf(&out, `<h2>%s</h2><ul class="chapter-list">`, title)
		for _, file := range files {
			fmt.Fprintf(&out, `<li><a href="%s"><code>%s</code></a></li>`, html.EscapeString(b.source(file)), html.EscapeString(file))
		}
		out.WriteString("</ul>")
	}
	for _, folder := range codeFolders {
		files, err := fs.Glob(os.DirFS(b.root), folder+"/*.go")
		if err != nil {
			return nil, err
		}
		var code []string
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				code = append(code, file)
			}
		}
		list(folder, code)
	}
	var tests []string
	for _, stage := range b.stages {
		tests = append(tests, path.Join(stage, "stage_test.go"))
	}
	list("Tests of the stages", tests)
	v := view{Title: "Code", Body: template.HTML(out.String()), Site: b.chapters(nil), Rungs: b.rungs(nil)}
	return v.page()
}
