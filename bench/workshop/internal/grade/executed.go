package grade

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	special["calls made"] = specialFigure{"answer in the files of this exercise", callsMade}
	special["statements executed"] = specialFigure{"answer in the files of this exercise", statementsMade}
}

// Builder builds the subject once more, with these flags of go build, and answers where it is.
type Builder func(flags ...string) (binary string, err error)

// callsMade counts how many function calls, append included, the files of the exercise make for an answer:
// from the coverage counters of a build of its own, so that it is exact and has nothing to do with time.
func callsMade(s *Subject) (float64, error) {
	e, err := s.perAnswer("any answer", s.anyAnswer)
	return e.calls, err
}

// statementsMade counts statements in the same way: a loop without a call is work too.
func statementsMade(s *Subject) (float64, error) {
	e, err := s.perAnswer("any answer", s.anyAnswer)
	return e.statements, err
}

// anyAnswer are paths with numbers and sizes that nobody knows beforehand, in any order.
func (s *Subject) anyAnswer() (paths []string) {
	random := s.random("any answer")
	for range 10 {
		paths = append(paths, "/", "/api/status",
			fmt.Sprintf("/users/%d", random.IntN(100_000)), fmt.Sprintf("/bytes/%d", 1+random.IntN(2000)))
	}
	random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	return paths
}

// executions are what the files of the exercise execute for an answer.
type executions struct{ calls, statements float64 }

// perAnswer counts both, once for each name.
func (s *Subject) perAnswer(name string, paths func() []string) (e executions, err error) {
	s.mutex.Lock()
	e, ok := s.executions[name]
	s.mutex.Unlock()
	if ok {
		return e, nil
	}
	all := paths()
	n := max(1, 4000/len(all)) * len(all)
	binary, err := s.Build("-cover", "-covermode=count")
	if err != nil {
		return e, fmt.Errorf("cannot build it to count what is executed: %w", err)
	}
	requests := make([]string, len(all))
	for i, path := range all {
		requests[i] = "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n"
	}
	var calls, statements [2]int
	for i := range calls {
		executed, err := s.executed(binary, requests, i*n)
		if err != nil {
			return e, err
		}
		if calls[i], err = s.countOwn(executed, callAt); err != nil {
			return e, err
		}
		statements[i] = s.countStatements(executed)
	}
	if calls[1] == 0 {
		return e, errors.New("nothing of them is executed at all")
	}
	e = executions{float64(calls[1]-calls[0]) / float64(n), float64(statements[1]-statements[0]) / float64(n)}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.executions == nil {
		s.executions = map[string]executions{}
	}
	s.executions[name] = e
	return e, nil
}

// countStatements adds up the statements that were executed in the files that may be changed and in new ones.
func (s *Subject) countStatements(all blocks) (total int) {
	for at, executed := range all {
		if s.graded(at) {
			for _, b := range executed {
				total += b.statements * b.count
			}
		}
	}
	return total
}

// graded says whether a file is one that may be changed, or a new one. It goes by the path, not the name alone:
// shared/http1 has a head.go too. The exercise is all that is built below work/.
func (s *Subject) graded(at string) bool {
	name := path.Base(at)
	_, own := s.Own[name]
	_, old := s.Start[name]
	return own && strings.Contains(at, "/work/") && (!old || slices.Contains(s.Files, name))
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
	return s.executedBy(binary, func(server *Server) error {
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
	}, flags...)
}

// executedBy is what was executed in the life of a server that is used so.
func (s *Subject) executedBy(binary string, use func(*Server) error, flags ...string) (blocks, error) {
	folder, err := os.MkdirTemp("", "ladder-cover-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	server, err := s.start(binary, []string{"GOCOVERDIR=" + folder}, nil, append([]string{"-workers", "1"}, flags...))
	if err = lend(server, err, use); err != nil {
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
	from, to   token.Position // line and column only
	statements int
	count      int
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
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.from.Line, &b.from.Column, &b.to.Line, &b.to.Column, &b.statements, &b.count); err != nil {
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
		if !s.graded(at) {
			continue
		}
		name := path.Base(at)
		n, err := count(name, s.Own[name], executed, place)
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

// callOf has the functions of shared/netpoll of which each call is one more of a counter.
var callOf = map[string][]string{
	"reads":            {"Receive"},
	"writes":           {"Send", "Vector.Send"},
	"epoll_ctls":       {"Poller.Add", "Poller.Modify", "Poller.Remove"},
	"eventfd_writes":   {"Poller.Wake"},
	"timerfd_creates":  {"NewTimer"},
	"timerfd_settimes": {"SetTimer"},
}

// counted holds what shared/netpoll was called for against the counters that the server shows: whatever set of them
// a call was given, it is executed.
func counted(s *Subject) error {
	const folder = "shared/netpoll"
	binary, err := s.Build("-cover", "-covermode=atomic", "-coverpkg="+harness.Module+"/"+folder)
	if err != nil {
		return fmt.Errorf("cannot build it to count what is executed: %w", err)
	}
	var shown map[string]uint64
	executed, err := s.executedBy(binary, func(server *Server) error {
		l, err := s.load("any requests")
		if err != nil {
			return err
		}
		const clients, each = 60, 20
		for i := range clients {
			c, err := server.dial()
			if err != nil {
				return err
			}
			l.requests = l.requests[each:]
			if err := drive([]*connection{c}, l, each); err != nil {
				return err
			}
			if i%2 == 0 {
				c.Close()
			}
		}
		r, err := server.Settle(s.Context)
		shown = map[string]uint64{}
		r.Total.Each(func(name string, value uint64) { shown[name] = value })
		return err
	}, "-workers", "2")
	if err != nil {
		return err
	}
	for _, counter := range slices.Sorted(maps.Keys(callOf)) {
		total, err := s.countIn(executed, folder, callOf[counter]...)
		if err != nil {
			return err
		}
		// What is done for the stop comes behind the reading, and a loop's poller is made before there are counters.
		const slack = 100
		if n := int(shown[counter]); total > n+n/20+slack {
			return fmt.Errorf("the counters say %d %s, but the functions for it were called %d times", n, counter, total)
		}
	}
	return nil
}

// countIn adds up how often these functions of a folder of the repository were called.
func (s *Subject) countIn(executed blocks, folder string, functions ...string) (total int, err error) {
	for at, blocks := range executed {
		name, ok := strings.CutPrefix(at, harness.Module+"/"+folder+"/")
		if !ok {
			continue
		}
		text, err := os.ReadFile(filepath.Join(s.Root, folder, name))
		if err != nil {
			return 0, err
		}
		n, err := count(name, text, blocks, func(node ast.Node) token.Pos { return beginOf(node, functions) })
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// beginOf is where the body of one of these functions begins: "Send", or "Vector.Send" for a method.
func beginOf(node ast.Node, functions []string) token.Pos {
	f, ok := node.(*ast.FuncDecl)
	if !ok || f.Body == nil || len(f.Body.List) == 0 {
		return token.NoPos
	}
	name := f.Name.Name
	if f.Recv != nil {
		kind := f.Recv.List[0].Type
		if pointer, ok := kind.(*ast.StarExpr); ok {
			kind = pointer.X
		}
		if of, ok := kind.(*ast.Ident); ok {
			name = of.Name + "." + name
		}
	}
	if !slices.Contains(functions, name) {
		return token.NoPos
	}
	return f.Body.List[0].Pos()
}
