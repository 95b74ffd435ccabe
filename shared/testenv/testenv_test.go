package testenv

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// A slow test that .ci/run does not name would never run, and neither would one that has another name now.
func TestCIRunsWhatIsSlow(t *testing.T) {
	var want []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != root && (name == "work" || strings.HasPrefix(name, ".")) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, _ := filepath.Rel(root, filepath.Dir(path))
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && callsSlow(f.Body) {
				want = append(want, "./"+filepath.ToSlash(folder)+" "+f.Name.Name)
			}
		}
		return nil
	})
	require.NoError(t, err)
	script, err := os.ReadFile(filepath.Join(root, ".ci/run"))
	require.NoError(t, err)
	var got []string
	for _, line := range regexp.MustCompile(`(?m)^slow (\./\S+ Test\w+)$`).FindAllSubmatch(script, -1) {
		got = append(got, string(line[1]))
	}
	require.ElementsMatch(t, want, got)
}

func callsSlow(body *ast.BlockStmt) (calls bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			x, ok := s.X.(*ast.Ident)
			calls = calls || ok && x.Name == "testenv" && s.Sel.Name == "Slow"
		}
		return true
	})
	return calls
}

func TestBrowser(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct {
		value         string
		skips, failed bool
	}{{"", true, false}, {"required", false, true}} {
		t.Setenv(browserVariable, c.value)
		var inner fake
		done := make(chan struct{})
		go func() {
			defer close(done)
			Browser(&inner)
		}()
		<-done
		require.Equal(t, c.skips, inner.skipped)
		require.Equal(t, c.failed, inner.failed)
	}
}

// fake notes how a test was ended, which ends its goroutine.
type fake struct {
	testing.TB
	skipped, failed bool
}

func (f *fake) Helper()      {}
func (f *fake) Skip(...any)  { f.skipped = true; runtime.Goexit() }
func (f *fake) Fatal(...any) { f.failed = true; runtime.Goexit() }
