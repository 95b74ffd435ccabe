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
	"slices"
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
	requests := make([]string, len(paths))
	for i, path := range paths {
		requests[i] = "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"
	}
	executed, err := s.executed(binary, requests, n)
	if err != nil {
		return 0, err
	}
	return s.countOwn(executed, callAt)
}

// callAt is where a call begins.
func callAt(node ast.Node) token.Pos {
	if call, ok := node.(*ast.CallExpr); ok {
		return call.Pos()
	}
	return token.NoPos
}

// executed is what was executed, and how often, in the life of a server that answers n requests: these in turn. The
// binary was built with -cover.
func (s *Subject) executed(binary string, requests []string, n int, flags ...string) (blocks, error) {
	folder, err := os.MkdirTemp("", "ladder-cover-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	server, err := s.start(binary, []string{"GOCOVERDIR=" + folder}, nil, append([]string{"-workers", "1"}, flags...))
	err = lend(server, err, func(server *Server) error {
		c, err := server.dial()
		if err != nil {
			return err
		}
		for i := range n {
			request := requests[i%len(requests)]
			if err := c.send(request); err != nil {
				return err
			}
			if _, err := c.answer(); err != nil {
				return fmt.Errorf("%s: %w", firstLine(request), err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	text, err := exec.CommandContext(s.Context, "go", "tool", "covdata", "textfmt", "-i="+folder, "-o=/dev/stdout").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot read what was executed: %w", err)
	}
	return readBlocks(text)
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

// blocks are those of each file, by its path: the package's, and its name.
type blocks map[string][]block

// readBlocks reads a coverage profile in the format of go tool covdata textfmt.
func readBlocks(profile []byte) (blocks, error) {
	all := blocks{}
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
			return nil, fmt.Errorf("cannot read what was executed: %w", err)
		}
		all[place+".go"] = append(all[place+".go"], b)
	}
	return all, nil
}

// countOwn adds up, over all places in the files that may be changed and in new ones, how often each was executed.
func (s *Subject) countOwn(all blocks, place func(ast.Node) token.Pos) (int, error) {
	total := 0
	for at, executed := range all {
		name := path.Base(at)
		text, own := s.Own[name]
		if _, old := s.Start[name]; !own || strings.HasPrefix(at, library+"/") || old && !s.mayChange(name) {
			continue
		}
		n, err := count(name, text, executed, place)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// count adds up how often the places of a file were executed: those of the nodes for which place has one.
func count(name string, text []byte, executed []block, place func(ast.Node) token.Pos) (total int, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		at := place(node)
		if !at.IsValid() {
			return true
		}
		position := set.Position(at)
		if i := slices.IndexFunc(executed, func(b block) bool { return b.holds(position) }); i >= 0 {
			total += executed[i].count
		}
		return true
	})
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
