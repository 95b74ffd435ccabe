package grade

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	behaviour("conditions", "conditions are read from every line of their field, and are those of their own request", conditions)
	special["bytes read again"] = specialFigure{"request whose handler asks for no field", readAgain}
	special["bytes read again for a field"] = specialFigure{"request whose handler asks for four", readAgainForFields}
}

// library is the parser's package.
const library = "github.com/evanphx/wildcat"

// rereadHead is the size of the head that these figures are counted with: a browser's, say.
const rereadHead = 800

// readAgain is for handlers that ask for nothing: two routes, and one that is not there. A head can be read without a
// loop: what is executed for each more of its fields counts as well.
func readAgain(s *Subject) (float64, error) {
	random := s.random("bytes read again")
	paths := []string{"/", fmt.Sprint("/users/", random.IntN(10_000)), fmt.Sprint("/none/", random.IntN(10_000))}
	rounds, statements, err := s.readAgain(paths, random, 5+random.IntN(7), drawnSize(random))
	if err != nil {
		return 0, err
	}
	_, least, err := s.readAgain(paths, random, 1, rereadHead/8)
	return rounds + max(0, statements-least), err
}

// readAgainForFields is for a file, whose conditions are in four fields: none of them is there.
func readAgainForFields(s *Subject) (float64, error) {
	folder, err := filesIn(map[string]string{"a": "a"})
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	random := s.random("bytes read again for a field")
	rounds, _, err := s.readAgain([]string{"/static/a"}, random, 8, drawnSize(random), "-static", folder)
	return rounds, err
}

// drawnSize is that of a head: with a smaller one, what a look at the table of its fields takes would weigh more.
func drawnSize(random *rand.Rand) int { return rereadHead + random.IntN(rereadHead) }

// readAgain counts the bytes of a judged head that are looked at once more: the times round the loops of the parser, each
// of which takes one byte, and round those of the files of the exercise, whatever they take. The head has as many
// fields and bytes; what is counted is for one of rereadHead bytes. It answers the statements of those files too.
func (s *Subject) readAgain(paths []string, random *rand.Rand, fields, size int, flags ...string) (perHead, statements float64, err error) {
	if s.counting == "" { // else it is built, for the other figure
		binary, err := s.Build("-cover", "-covermode=count", "-coverpkg="+harness.Module+"/work/...,"+library)
		if err != nil {
			return 0, 0, fmt.Errorf("cannot build it to count what is executed: %w", err)
		}
		s.counting = binary
	}
	requests := make([]string, len(paths))
	for i, path := range paths {
		requests[i] = headWith("GET "+path+" HTTP/1.1\r\nHost: a\r\n", "X-"+letters(random, 1+random.IntN(6)), fields, size)
	}
	n := 600 / len(paths) * len(paths)
	var rounds, made [2]int
	for i := range rounds {
		executed, err := s.executedBy(s.counting, func(server *Server) error { return server.exchangeMixed(requests, i*n, random) }, flags...)
		if err != nil {
			return 0, 0, err
		}
		if rounds[i], err = s.countRounds(executed); err != nil {
			return 0, 0, err
		}
		made[i] = s.countStatements(executed)
	}
	perHead = float64(rounds[1]-rounds[0]) / float64(n) * rereadHead / float64(size)
	return perHead, float64(made[1]-made[0]) / float64(n), nil
}

// exchangeMixed has n requests answered, these in turn: some come by themselves, some together, some in two pieces.
func (s *Server) exchangeMixed(requests []string, n int, random *rand.Rand) error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	for i := 0; i < n; {
		var together strings.Builder
		until := min(i+1+random.IntN(4), n)
		for k := i; k < until; k++ {
			together.WriteString(requests[k%len(requests)])
		}
		text := together.String()
		cut := random.IntN(2) * random.IntN(len(text))
		for _, piece := range []string{text[:cut], text[cut:]} {
			if err := c.send(piece); err != nil {
				return err
			}
		}
		for ; i < until; i++ {
			if _, err := c.answer(); err != nil {
				return fmt.Errorf("%s: %w", firstLine(requests[i%len(requests)]), err)
			}
		}
	}
	return nil
}

// headOf goes on from begin with eight fields that nobody asks for, and makes a head of that size.
func headOf(begin string, size int) string { return headWith(begin, "X-Field", 8, size) }

// headWith is headOf with as many fields, whose names begin so.
func headWith(begin, called string, fields, size int) string {
	var b strings.Builder
	b.WriteString(begin)
	for i := range fields {
		name := fmt.Sprintf("%s-%d: ", called, i)
		end := len(begin) + (size-len(begin)-2)*(i+1)/fields
		b.WriteString(name + strings.Repeat("v", end-b.Len()-len(name)-2) + "\r\n")
	}
	return b.String() + "\r\n"
}

// countRounds adds up the times round all loops, those of the library and those of the files of the exercise.
func (s *Subject) countRounds(executed blocks) (int, error) {
	total, err := s.countOwn(executed, roundAt)
	if err != nil {
		return 0, err
	}
	folder := ""
	for at, blocks := range executed {
		name, ok := strings.CutPrefix(at, library+"/")
		if !ok {
			continue
		}
		if folder == "" {
			command := exec.CommandContext(s.Context, "go", "list", "-f", "{{.Dir}}", library)
			command.Dir = s.Root
			out, err := command.Output()
			if err != nil {
				return 0, fmt.Errorf("cannot find %s: %w", library, err)
			}
			folder = strings.TrimSpace(string(out))
		}
		text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		if err != nil {
			return 0, err
		}
		n, err := count(name, text, blocks, roundAt)
		if err != nil {
			return 0, err
		}
		total += n
	}
	if len(executed) == 0 {
		return 0, errors.New("nothing was executed at all")
	}
	return total, nil
}

// roundAt is where a loop's body begins.
func roundAt(node ast.Node) token.Pos {
	switch n := node.(type) {
	case *ast.ForStmt:
		return n.Body.Pos()
	case *ast.RangeStmt:
		return n.Body.Pos()
	}
	return token.NoPos
}

// conditions asks for one file under several, over one connection.
func conditions(s *Subject) error {
	return s.withFiles(map[string]string{"a": "a"}, func(server *Server, _ string) error {
		c, err := server.dial()
		if err != nil {
			return err
		}
		ask := func(fields string) (*harness.Response, error) {
			return c.ask("GET /static/a HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n")
		}
		first, err := ask("")
		if err != nil {
			return err
		}
		tag := first.Field("ETag")
		for _, e := range []struct {
			fields string
			status int
		}{
			{"If-None-Match: \"x\"\r\nIf-None-Match: " + tag + "\r\n", 304},
			{"", 200},
			{"If-None-Match: \"x\"\r\n", 200},
			{"If-Match: \"x\"\r\n", 412},
			{"If-Match: \"x\"\r\nX-Other: 1\r\nif-match: " + tag + "\r\n", 200},
			{"If-Match: \"x\"\r\nIf-Match: \"y\"\r\n", 412},
			{"Accept: */*\r\nAccept: */*\r\n", 200},
		} {
			a, err := ask(e.fields)
			if err != nil {
				return err
			}
			if a.Status != e.status {
				return fmt.Errorf("with %q and the file's tag %s the answer was %d, not %d", e.fields, tag, a.Status, e.status)
			}
		}
		return nil
	})
}
