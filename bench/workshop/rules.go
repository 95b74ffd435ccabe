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

// mayUse are the names that a solution may use of a package that can do more than is good for one: open files, and
// so see who watches; dial; tell by whom it is called. What was laid out may use more.
var mayUse = map[string][]string{
	"net/http": {"Header", "NoBody", "ReadRequest", "Request", "CanonicalHeaderKey", "DetectContentType", "ParseHTTPVersion",
		"ParseTime", "StatusText", "TimeFormat", "Method*", "Status*"},
	"net/textproto": {"CanonicalMIMEHeaderKey", "MIMEHeader", "NewReader", "Reader", "TrimBytes", "TrimString"},
	"runtime":       {"GOMAXPROCS", "Gosched", "KeepAlive", "LockOSThread", "NumCPU", "UnlockOSThread"},
}

// used says whether mayUse has a name of a package: "Status*" stands for all that begin so.
func used(path, name string) bool {
	return slices.ContainsFunc(mayUse[path], func(may string) bool {
		begin, all := strings.CutSuffix(may, "*")
		return name == may || all && strings.HasPrefix(name, begin)
	})
}

// mayDirect are the directives to the compiler that change nothing but speed. Others hide code from a grader (go:norace,
// line) or leave it out of a build.
var mayDirect = []string{"//go:noinline", "//go:nosplit", "//go:fix", "//go:generate"}

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
		for _, problem := range sourceRules(name, own[name], start[name]) {
			broken("%s", problem)
		}
	}
	if most, n := countersMade(start), countersMade(own); n > most {
		broken("a set of counters of its own: netpoll.Counters are made in %d places, and were in %d", n, most)
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

// countersMade is in how many places there are values of netpoll.Counters, and not only pointers to one.
func countersMade(f files) (n int) {
	for name, text := range f {
		if filepath.Ext(name) != ".go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			continue // the compiler will say it better
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if pointer, ok := node.(*ast.StarExpr); ok && isCounters(pointer.X) {
				return false
			}
			if e, ok := node.(ast.Expr); ok && isCounters(e) {
				n++
				return false
			}
			return true
		})
	}
	return n
}

func isCounters(e ast.Expr) bool {
	kind, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok || kind.Sel.Name != "Counters" {
		return false
	}
	_, ok = kind.X.(*ast.Ident)
	return ok
}

// waits are the functions that let a loop stand still, and says the ones that write where the server's own lines go.
var (
	waits = map[string]bool{"time.Sleep": true, "time.After": true, "time.Tick": true, "runtime.LockOSThread": true}
	says  = map[string]bool{"print": true, "println": true, "fmt.Print": true, "fmt.Printf": true, "fmt.Println": true}
)

// callsOf counts the calls of functions that are named in a file, by name: "time.Sleep".
func callsOf(text []byte) map[string]int {
	n := map[string]int{}
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return n
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if e, ok := node.(ast.Expr); ok {
			n[nameOf(e)]++
		}
		return true
	})
	return n
}

// importsOf are the packages that a file imports; none if there is no such file.
func importsOf(text []byte) map[string]bool {
	paths := map[string]bool{}
	if file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ImportsOnly); err == nil {
		for _, spec := range file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			paths[path] = true
		}
	}
	return paths
}

// nameOf is "time.Sleep" or "println", and "" of other expressions.
func nameOf(e ast.Expr) string {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if from, ok := e.X.(*ast.Ident); ok {
			return from.Name + "." + e.Sel.Name
		}
	}
	return ""
}

// isDirective says whether the first word of a comment is one to the compiler.
func isDirective(word string) bool {
	return strings.HasPrefix(word, "//go:") || word == "//line" || strings.HasPrefix(word, "/*line")
}

// sourceRules says what a file does that no solution may. start is the same file as it was laid out; nil if there was none.
func sourceRules(name string, text, start []byte) (problems []string) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil // the compiler will say it better
	}
	at := func(node ast.Node) string {
		// As it lies there, whatever a line directive says.
		position := set.PositionFor(node.Pos(), false)
		return fmt.Sprintf("%s:%d", name, position.Line)
	}
	broken := func(node ast.Node, format string, arguments ...any) {
		problems = append(problems, at(node)+": "+fmt.Sprintf(format, arguments...))
	}
	laid := importsOf(start)
	limited := map[string]string{} // by the name that it has here: the path of a package in mayUse
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if mayUse[path] != nil {
			limited[path[strings.LastIndex(path, "/")+1:]] = path
		}
		if laid[path] {
			continue // whoever has not got rid of it yet has done nothing wrong
		}
		if own, ok := strings.CutPrefix(path, harness.Module+"/shared/"); ok && mayImportShared[own] || mayImport[path] {
			if spec.Name != nil {
				broken(spec, "package %s is called by its own name here", path)
			}
			continue
		}
		broken(spec, "package %s is out of bounds", path)
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			directive := strings.Fields(comment.Text)[0]
			if isDirective(directive) && !slices.Contains(mayDirect, directive) && !bytes.Contains(start, []byte(directive)) {
				broken(comment, "%s is out of bounds", directive)
			}
		}
	}
	// isField says whether e is one of the counters that a stage does not write, or all of them.
	isField := func(e ast.Expr) (string, bool) {
		field, ok := ast.Unparen(e).(*ast.SelectorExpr)
		if !ok {
			return "", false
		}
		name := field.Sel.Name
		return name, countersOf[name] || name == "counters" || name == "published"
	}
	writes := func(target ast.Expr) {
		if field, ok := isField(target); ok {
			broken(target, "%s counts what shared/netpoll does, and is not yours to write", field)
		}
	}
	before := callsOf(start)
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, target := range n.Lhs {
					writes(target)
				}
			}
			for _, value := range n.Rhs {
				if field, ok := isField(value); ok && field == "counters" {
					broken(value, "counters are not copied")
				}
			}
		case *ast.RangeStmt:
			for _, target := range []ast.Expr{n.Key, n.Value} {
				if n.Tok == token.ASSIGN && target != nil {
					writes(target)
				}
			}
		case *ast.IncDecStmt:
			writes(n.X)
		case *ast.UnaryExpr:
			// A pointer to one would be written through, by sync/atomic for instance.
			if field, ok := isField(n.X); ok && n.Op == token.AND && countersOf[field] {
				broken(n, "%s counts what shared/netpoll does, and is not yours to write", field)
			}
		case *ast.CompositeLit:
			if isCounters(n.Type) && len(n.Elts) > 0 {
				broken(n, "counters begin at zero")
			}
		case *ast.CallExpr:
			if says[nameOf(n.Fun)] && before[nameOf(n.Fun)] == 0 {
				broken(n, "%s writes into what the server says, which is looked at: take it out again", nameOf(n.Fun))
			}
		case *ast.SelectorExpr:
			from, _, _ := strings.Cut(nameOf(n), ".")
			switch path := limited[from]; {
			case path != "" && !used(path, n.Sel.Name) && before[nameOf(n)] == 0:
				broken(n, "%s is out of bounds", nameOf(n))
			case n.Sel.Name == "Admin" && !bytes.Contains(start, []byte(".Admin")):
				broken(n, "Admin: whether somebody looks at the counters is nothing to go by")
			case waits[nameOf(n)] && before[nameOf(n)] == 0:
				broken(n, "%s: a loop that waits lets all its clients wait", nameOf(n))
			case n.Sel.Name == "Poison" && before[nameOf(n)] == 0 && !bytes.Contains(start, []byte(".Poison")):
				broken(n, "Poison is for the graders to switch")
			}
		}
		return true
	})
	return append(problems, poisonWritten(file, at)...)
}

// poisonWritten says where the flag is set that has a request's bytes overwritten: it is only read.
func poisonWritten(file *ast.File, at func(ast.Node) string) (problems []string) {
	ast.Inspect(file, func(node ast.Node) bool {
		if assign, ok := node.(*ast.AssignStmt); ok {
			for _, target := range assign.Lhs {
				if field, ok := ast.Unparen(target).(*ast.SelectorExpr); ok && field.Sel.Name == "Poison" {
					problems = append(problems, at(target)+": Poison is for the graders to switch")
				}
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
