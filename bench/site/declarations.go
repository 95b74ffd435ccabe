package site

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// A declaration is one top-level declaration of a Go file with its comment, the
// unit in which diffs are shown: a reader thinks in functions, not in runs of
// three lines.
type declaration struct {
	name  string // "loop.take" for a method, "imports", or the name of what is declared
	lines []string
	first int // number of the first line, from 1
}

// text is the declaration as it stands in the file.
func (d *declaration) text() string {
	if d == nil {
		return ""
	}
	return strings.Join(d.lines, "\n") + "\n"
}

// splitDeclarations cuts a Go file into its top-level declarations. Comments
// that belong to none go with the declaration behind them.
func splitDeclarations(file, source string) ([]declaration, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", file, err)
	}
	lines := strings.Split(strings.TrimSuffix(source, "\n"), "\n")
	line := func(p token.Pos) int { return set.Position(p).Line }

	out := []declaration{{name: "package", first: 1}}
	end := line(parsed.Name.End()) // the last line that belongs to a declaration
	out[0].lines = lines[:end]
	for _, d := range parsed.Decls {
		first := end + 1
		for first < len(lines) && strings.TrimSpace(lines[first-1]) == "" {
			first++
		}
		end = line(d.End())
		out = append(out, declaration{name: declarationName(d), lines: lines[first-1 : end], first: first})
	}
	return out, nil
}

func declarationName(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		receiver := d.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		if name, ok := receiver.(*ast.Ident); ok {
			return name.Name + "." + d.Name.Name
		}
		return d.Name.Name
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return "imports"
		}
		switch spec := d.Specs[0].(type) {
		case *ast.TypeSpec:
			return spec.Name.Name
		case *ast.ValueSpec:
			return spec.Names[0].Name
		}
	}
	return "?"
}

// lastName is a declaration's name without its receiver.
func lastName(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// pairDeclarations says which declaration of the new file has come of which of
// the old one, by index, -1 for none. Where a method has changed its receiver,
// likeness decides.
func pairDeclarations(old, new []declaration) (oldOf []int) {
	oldOf = slices.Repeat([]int{-1}, len(new))
	taken := make([]bool, len(old))
	pair := func(fits func(a, b *declaration) bool) {
		type candidate struct {
			i, j     int
			likeness float64
		}
		var all []candidate
		for j := range new {
			for i := range old {
				if oldOf[j] < 0 && !taken[i] && fits(&old[i], &new[j]) {
					all = append(all, candidate{i, j, likeness(old[i].lines, new[j].lines)})
				}
			}
		}
		slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.likeness, a.likeness) })
		for _, c := range all {
			if oldOf[c.j] < 0 && !taken[c.i] {
				oldOf[c.j], taken[c.i] = c.i, true
			}
		}
	}
	pair(func(a, b *declaration) bool { return lastName(a.name) == lastName(b.name) })
	// A new name for much the same thing.
	pair(func(a, b *declaration) bool {
		const muchTheSame = 0.5
		return min(len(a.lines), len(b.lines)) > 3 && likeness(a.lines, b.lines) >= muchTheSame
	})
	return oldOf
}

// likeness is the share of lines that two declarations have in common, 0 to 1.
func likeness(a, b []string) float64 {
	have := map[string]int{}
	for _, l := range a {
		have[strings.TrimSpace(l)]++
	}
	common := 0
	for _, l := range b {
		if l = strings.TrimSpace(l); have[l] > 0 {
			have[l]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b))
}
