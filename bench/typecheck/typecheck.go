// Package typecheck tells whether Go code compiles, without compiling it: variants of the
// stages are many, and type checking one takes some milliseconds where a build takes a second.
//
// Only tests import it. A build whose program is run is package harness's.
package typecheck

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// Checker checks packages that import what the repository's module can. Not for two goroutines
// at once.
type Checker struct {
	ctx     context.Context
	root    string
	files   *token.FileSet
	imports types.Importer
	exports map[string]string // import path to the file with the compiler's export data
}

// New prepares for packages of the repository at root: with the go command, the packages that
// those of the patterns import are compiled, unless the build cache has them. ctx bounds the
// Checker too.
func New(ctx context.Context, root string, patterns ...string) (*Checker, error) {
	c := &Checker{ctx: ctx, root: root, files: token.NewFileSet(), exports: map[string]string{}}
	c.imports = importer.ForCompiler(c.files, "gc", c.open)
	return c, c.list(append([]string{"-deps"}, patterns...)...)
}

// list asks the go command for export data.
func (c *Checker) list(arguments ...string) error {
	cmd := exec.CommandContext(c.ctx, "go", append([]string{"list", "-export", "-f", "{{.ImportPath}} {{.Export}}"}, arguments...)...)
	cmd.Dir = c.root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if path, file, _ := strings.Cut(lines.Text(), " "); file != "" {
			c.exports[path] = file
		}
	}
	return nil
}

// open finds the export data of a package, which the patterns of New need not have had.
func (c *Checker) open(path string) (io.ReadCloser, error) {
	if c.exports[path] == "" {
		if err := c.list(path); err != nil {
			return nil, err
		}
	}
	if c.exports[path] == "" {
		return nil, fmt.Errorf("no export data of %s", path)
	}
	return os.Open(c.exports[path])
}

// Check type-checks the package main of the given files, by name; what is no part of a build on
// this system is left out. The error has all that is wrong, a line each.
func (c *Checker) Check(files map[string][]byte) error {
	system := build.Default
	system.JoinPath = func(parts ...string) string { return parts[len(parts)-1] }
	system.OpenFile = func(name string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files[name])), nil }
	var parsed []*ast.File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if ours, err := system.MatchFile("", name); err != nil {
			return err
		} else if !ours {
			continue
		}
		file, err := parser.ParseFile(c.files, name, files[name], parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, file)
	}
	var wrong []error
	settings := types.Config{
		Importer: c.imports, Sizes: types.SizesFor("gc", runtime.GOARCH),
		Error: func(err error) { wrong = append(wrong, err) },
	}
	pkg, err := settings.Check("main", c.files, parsed, nil)
	if len(wrong) == 0 && err != nil {
		return err
	}
	if len(wrong) == 0 && pkg.Scope().Lookup("main") == nil {
		return errors.New("function main is undeclared in the main package")
	}
	return errors.Join(wrong...)
}
