package typecheck

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	c, err := New(t.Context(), "../..", "./shared/http1")
	require.NoError(t, err)
	check := func(text string) error {
		return c.Check(map[string][]byte{
			"main.go": []byte("package main\n" + text), "x_test.go": []byte("no Go"), "README.md": nil,
			"main_plan9.go": []byte("package main\nfunc main() {}"), "never.go": []byte("//go:build ignore\n\npackage main\nfunc main() {}"),
		})
	}
	const own = "import \"github.com/qps-ladder/qps-ladder/shared/http1\"\n"
	require.NoError(t, check(own+"func main() { var j http1.Judge; j.Reset(1) }"))
	require.NoError(t, check("import \"encoding/csv\"\nfunc main() { _ = csv.ErrQuote }"), "nothing of those that were asked for imports it")
	for text, want := range map[string]string{
		own + "func main() {}":                                      "imported and not used",
		own + "func main() { var j http1.Judge; j.Reset() }":        "not enough arguments",
		own + "func main() { http1.Nothing() }":                     "undefined: http1.Nothing",
		"func main() { unused := 1 }":                               "declared and not used",
		"func main() { return 1 }\nfunc f() int { }":                "missing return",
		"func main() {":                                             "expected '}'",
		"import \"no/such/package\"\nfunc main() { _ = package.x }": "main.go",
		"func other() {}":                                           "main is undeclared",
	} {
		require.ErrorContains(t, check(text), want, text)
	}
}
