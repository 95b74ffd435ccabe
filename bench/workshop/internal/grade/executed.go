package grade

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"strings"
)

func init() {
	special["calls made"] = specialFigure{"answer in the files of this exercise", callsMade}
}

// Builder builds the subject once more, with these flags of go build, and answers where it is.
type Builder func(flags ...string) (binary string, err error)

// callsMade counts how many function calls, append included, the files of the exercise make for an answer:
// from the coverage counters of a build of its own, so that it is exact and has nothing to do with time.
func callsMade(s *Subject) (float64, error) {
	return s.callsFor([]string{"/", "/api/status", "/users/42", "/bytes/100"})
}

func (s *Subject) callsFor(paths []string) (float64, error) {
	n := 4000 / len(paths) * len(paths)
	binary, err := s.Build("-cover", "-covermode=count")
	if err != nil {
		return 0, fmt.Errorf("cannot build it to count what is executed: %w", err)
	}
	var runs [2]int
	for i := range runs {
		if runs[i], err = s.executedCalls(binary, paths, i*n); err != nil {
			return 0, err
		}
	}
	if runs[1] == 0 {
		return 0, errors.New("nothing of them is executed at all")
	}
	return float64(runs[1]-runs[0]) / float64(n), nil
}

// executedCalls is how many calls the files make in a server's life that answers n requests.
func (s *Subject) executedCalls(binary string, paths []string, n int) (int, error) {
	folder, err := os.MkdirTemp("", "ladder-cover-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	server, err := s.start(binary, []string{"GOCOVERDIR=" + folder}, nil, []string{"-workers", "1"})
	err = lend(server, err, func(server *Server) error {
		c, err := server.dial()
		if err != nil {
			return err
		}
		for i := range n {
			if err := c.send("GET " + paths[i%len(paths)] + " HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
				return err
			}
			if _, err := c.answer(); err != nil {
				return fmt.Errorf("GET %s: %w", paths[i%len(paths)], err)
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	text, err := exec.CommandContext(s.Context, "go", "tool", "covdata", "textfmt", "-i="+folder, "-o=/dev/stdout").Output()
	if err != nil {
		return 0, fmt.Errorf("cannot read what was executed: %w", err)
	}
	return s.countCalls(text)
}

// block is a piece of code between two places, and how often it was executed.
type block struct {
	from, to token.Position // line and column only
	count    int
}

func (b block) holds(p token.Position) bool {
	return !before(p, b.from) && before(p, b.to)
}

func before(a, b token.Position) bool {
	return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column
}

// countCalls adds up, over all calls in the files that may be changed and in new ones, how often each was made.
func (s *Subject) countCalls(profile []byte) (int, error) {
	blocks := map[string][]block{}
	scanner := bufio.NewScanner(bytes.NewReader(profile))
	for scanner.Scan() {
		// path/file.go:10.2,12.3 2 400
		place, rest, ok := strings.Cut(scanner.Text(), ".go:")
		if !ok {
			continue
		}
		var b block
		var statements int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from.Line, &b.from.Column, &b.to.Line, &b.to.Column, &statements, &b.count); err != nil {
			return 0, fmt.Errorf("cannot read what was executed: %w", err)
		}
		name := path.Base(place) + ".go"
		blocks[name] = append(blocks[name], b)
	}
	total := 0
	for name, text := range s.Own {
		if _, old := s.Start[name]; old && !s.mayChange(name) || path.Ext(name) != ".go" {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return 0, err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				at := set.Position(call.Pos())
				for _, b := range blocks[name] {
					if b.holds(at) {
						total += b.count
						break
					}
				}
			}
			return true
		})
	}
	return total, nil
}

func (s *Subject) mayChange(name string) bool {
	for _, file := range s.Files {
		if file == name {
			return true
		}
	}
	return false
}
