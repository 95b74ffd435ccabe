package workshop

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// mayImport are the packages of the standard library that a solution may use: those of the stages, and what
// helps to keep data. Nothing that opens files, sockets or processes of its own.
var mayImport = map[string]bool{
	"bufio": true, "bytes": true, "cmp": true, "container/heap": true, "container/list": true, "errors": true, "fmt": true,
	"io": true, "iter": true, "maps": true, "math": true, "math/bits": true, "net/http": true, "net/textproto": true, "runtime": true, "slices": true,
	"sort": true, "strconv": true, "strings": true, "sync": true, "sync/atomic": true, "time": true, "unique": true,
	"encoding/binary": true, "hash/maphash": true, "unicode": true, "unicode/utf8": true,
	"github.com/evanphx/wildcat": true,
	"golang.org/x/sys/cpu":       true,
}

// mayImportShared are the packages of this repository that a stage stands on.
var mayImportShared = map[string]bool{"netpoll": true, "http1": true, "serve": true}

// rules checks what can be seen in the source: the bounds of the exercise. start is what was laid out.
func (e *Exercise) rules(folder string, own, start files) (findings []grade.Finding) {
	broken := func(format string, arguments ...any) {
		findings = append(findings, grade.Finding{Check: "bounds", Text: fmt.Sprintf(format, arguments...)})
	}
	for _, name := range slices.Sorted(maps.Keys(start)) {
		text, ok := own[name]
		switch {
		case slices.Contains(e.Files, name):
			if !ok {
				broken("%s is missing", name)
			}
		case !ok:
			broken("%s is missing, and out of bounds", name)
		case !bytes.Equal(text, start[name]):
			broken("%s has changed, and only %s may: put it back", name, list(e.Files))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if bytes.Equal(own[name], start[name]) || filepath.Ext(name) != ".go" {
			continue
		}
		for _, problem := range sourceRules(name, own[name]) {
			broken("%s", problem)
		}
	}
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		switch strings.ToLower(filepath.Ext(entry.Name())) {
		case ".s", ".c", ".cc", ".h", ".syso", ".o", ".a", ".so":
			broken("%s: only Go is built here", entry.Name())
		}
	}
	return findings
}

func list(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// countersOf are the fields of netpoll.Counters that a stage does not write itself.
var countersOf = func() map[string]bool {
	names := map[string]bool{}
	new(netpoll.Counters).Each(func(name string, _ uint64) {
		var field strings.Builder
		for word := range strings.SplitSeq(name, "_") {
			field.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
		names[field.String()] = true
	})
	for _, own := range []string{"Requests", "Handoffs", "Connections"} {
		delete(names, own)
	}
	return names
}()

// sourceRules says what a file does that no solution may.
func sourceRules(name string, text []byte) (problems []string) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil // the compiler will say it better
	}
	at := func(node ast.Node) string {
		position := set.Position(node.Pos())
		return fmt.Sprintf("%s:%d", name, position.Line)
	}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if own, ok := strings.CutPrefix(path, harness.Module+"/shared/"); ok && mayImportShared[own] || mayImport[path] {
			continue
		}
		problems = append(problems, fmt.Sprintf("%s: package %s is out of bounds", at(spec), path))
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if strings.HasPrefix(comment.Text, "//go:linkname") || strings.HasPrefix(comment.Text, "//go:build") {
				problems = append(problems, fmt.Sprintf("%s: %s is out of bounds", at(comment), strings.Fields(comment.Text)[0]))
			}
		}
	}
	writes := func(target ast.Expr) {
		if field, ok := target.(*ast.SelectorExpr); ok && (countersOf[field.Sel.Name] || field.Sel.Name == "counters" || field.Sel.Name == "published") {
			problems = append(problems, fmt.Sprintf("%s: %s counts what shared/netpoll does, and is not yours to write", at(target), field.Sel.Name))
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, target := range n.Lhs {
					writes(target)
				}
			}
		case *ast.IncDecStmt:
			writes(n.X)
		case *ast.CompositeLit:
			if kind, ok := n.Type.(*ast.SelectorExpr); ok && kind.Sel.Name == "Counters" && len(n.Elts) > 0 {
				problems = append(problems, fmt.Sprintf("%s: counters begin at zero", at(n)))
			}
		}
		return true
	})
	return problems
}

// sharedUntouched says whether shared/ is as it was when the exercise was laid out, or else as git has it:
// the counters are there.
func sharedUntouched(root, before string) error {
	now, err := hashFolder(filepath.Join(root, "shared"))
	if err != nil {
		return err
	}
	if now == before || gitClean(root, "shared") {
		return nil
	}
	return errors.New("shared/ has changed since the exercise was laid out, and is out of bounds: git diff shared shows it")
}
