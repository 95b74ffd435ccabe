package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Mix builds a stage with some of its files taken from another, into folder. The
// stages have the same files, so that what one step changed can be put into a
// stage before or after it. The sources themselves are not touched: the compiler
// is told to read the other files in their place.
func Mix(ctx context.Context, root, folder, base, from string, files []string) (Server, error) {
	if len(files) == 0 {
		return Server{}, errors.New("no files given: for example --files request.go,head.go")
	}
	replace := map[string]string{}
	for _, name := range files {
		switch {
		case filepath.Base(name) != name || !strings.HasSuffix(name, ".go"):
			return Server{}, fmt.Errorf("%q is no file of a stage: write its name alone, such as request.go", name)
		case strings.HasSuffix(name, "_test.go"):
			return Server{}, fmt.Errorf("%s is a test: it is no part of the server", name)
		}
		source := filepath.Join(root, from, name)
		if _, err := os.Stat(source); err != nil {
			return Server{}, fmt.Errorf("%s has no file %s: it has %s", from, name, strings.Join(sources(root, from), ", "))
		}
		replace[filepath.Join(root, base, name)] = source
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return Server{}, err
	}
	path := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		return Server{}, err
	}
	s := Server{Name: "mix", Path: filepath.Join(folder, "mix"), Admin: true}
	cmd := exec.CommandContext(ctx, "go", "build", "-gcflags=-e", "-overlay", path, "-o", s.Path, "./"+base)
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return Server{}, ctx.Err()
		}
		return Server{}, fmt.Errorf("%s with %s of %s does not compile: %s", short(base), strings.Join(files, ", "), short(from), missing(string(text), err))
	}
	return s, nil
}

// sources are the files that make a stage's server.
func sources(root, stage string) (out []string) {
	all, _ := filepath.Glob(filepath.Join(root, stage, "*.go"))
	for _, path := range all {
		if name := filepath.Base(path); !strings.HasSuffix(name, "_test.go") {
			out = append(out, name)
		}
	}
	return out
}

var (
	noMember = regexp.MustCompile(`(\S+) undefined \(type (\S+) has no field or method (\w+)`)
	noName   = regexp.MustCompile(`undefined: (\w+)`)
	twice    = regexp.MustCompile(`(?:method )?(\S+) (?:already declared|redeclared)`)
)

// missing says what a compiler's output is about: which methods and names the
// files want from each other and do not get.
func missing(text string, err error) string {
	var lacks, doubles []string
	add := func(list *[]string, what string) {
		if !slices.Contains(*list, what) {
			*list = append(*list, what)
		}
	}
	for line := range strings.Lines(text) {
		if m := noMember.FindStringSubmatch(line); m != nil {
			add(&lacks, strings.TrimPrefix(m[2], "*")+"."+m[3])
		} else if m := noName.FindStringSubmatch(line); m != nil {
			add(&lacks, m[1])
		} else if m := twice.FindStringSubmatch(line); m != nil {
			add(&doubles, m[1])
		}
	}
	var parts []string
	if len(lacks) > 0 {
		parts = append(parts, "missing "+strings.Join(lacks, ", "))
	}
	if len(doubles) > 0 {
		parts = append(parts, "declared twice: "+strings.Join(doubles, ", "))
	}
	parts = append(parts, compilerError(text, err))
	return strings.Join(parts, "; ")
}
