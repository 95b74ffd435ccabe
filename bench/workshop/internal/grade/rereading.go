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
	special["bytes read again for a field"] = specialFigure{"request whose handler asks for fields", readAgainForFields}
}

// library is the parser's package.
const library = "github.com/evanphx/wildcat"

// rereadHead is the size of the head that these figures are counted with: a browser's, say.
const rereadHead = 800

// readAgain is for handlers that ask for nothing. A head can be read without a loop: what is executed for each more of
// its fields counts as well.
func readAgain(s *Subject) (float64, error) {
	large, err := s.readAgain(s.askForNothing(func(sizes *rand.Rand) (fields, size int) { return 1 + sizes.IntN(11), drawnSize(sizes) }))
	if err != nil {
		return 0, err
	}
	small, err := s.readAgain(s.askForNothing(func(*rand.Rand) (fields, size int) { return 1, leastHead }))
	if err != nil {
		return 0, err
	}
	return rereadHead*max(large.share, small.share) + max(0, large.statements-small.statements), nil
}

// askForNothing are requests of all kinds, the same for each way to draw the sizes of their heads.
func (s *Subject) askForNothing(head func(*rand.Rand) (fields, size int)) (requests []string) {
	random, sizes := s.random("bytes read again"), s.random("sizes of heads")
	for range rereadRequests {
		n := random.IntN(10_000)
		pick := func(from ...string) string { return from[random.IntN(len(from))] }
		path := pick("/", "/api/status", fmt.Sprint("/users/", n), fmt.Sprint("/bytes/", n%100), fmt.Sprint("/none/", n)) + pick("", "?q")
		body := ""
		begin := pick("GET "+path, "GET http://a"+path, "DELETE "+path) + pick(" HTTP/1.1\r\n", " HTTP/1.0\r\nConnection: keep-alive\r\n")
		if random.IntN(5) == 0 {
			begin, body = "POST /none HTTP/1.1\r\nContent-Length: 4\r\n", "body"
		}
		fields, size := head(sizes)
		requests = append(requests, headWith(begin+"Host: a\r\n", "X-"+letters(random, 1+random.IntN(4)), fields, size)+body)
	}
	return requests
}

// readAgainForFields is for a file, whose conditions are in four fields, mostly not there, and for an upload, whose type
// is in one.
func readAgainForFields(s *Subject) (float64, error) {
	folder, err := filesIn(map[string]string{"a": "a"})
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	random := s.random("bytes read again for a field")
	var requests []string
	sizes := 0
	for range rereadRequests {
		begin, body := "GET /static/a HTTP/1.1\r\nHost: a\r\n", ""
		switch random.IntN(4) {
		case 0:
			begin += "If-None-Match: \"x\"\r\n"
		case 1:
			begin, body = "POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\nContent-Length: 4\r\n", "body"
		}
		size := drawnSize(random)
		sizes += size
		requests = append(requests, headWith(begin, "X-"+letters(random, 1+random.IntN(4)), 1+random.IntN(7), size)+body)
	}
	again, err := s.readAgain(requests, "-static", folder)
	// What comes beside one reading has nothing to do with the size of the head.
	return again.rounds - float64(sizes)/rereadRequests + rereadHead, err
}

const (
	rereadRequests = 600
	leastHead      = 120 // has room for all that a request begins with
)

// drawnSize is that of a head.
func drawnSize(random *rand.Rand) int { return 2*leastHead + random.IntN(2*rereadHead) }

// again is what is done for a request beside judging it.
type again struct {
	rounds     float64 // bytes that are looked at once more
	share      float64 // the same, of all that was sent
	statements float64 // of the files of the exercise
}

// readAgain counts the bytes of judged heads that are looked at once more: the times round the loops of the parser, each
// of which takes one byte, and round those of the files of the exercise, whatever they take. A head that is judged
// twice is read again as well.
func (s *Subject) readAgain(requests []string, flags ...string) (a again, err error) {
	const judge = harness.Module + "/shared/http1"
	if s.counting == "" { // else it is built, for the other figure
		binary, err := s.Build("-cover", "-covermode=atomic", "-coverpkg="+strings.Join([]string{harness.Module + "/work/...", library, judge}, ","))
		if err != nil {
			return a, fmt.Errorf("cannot build it to count what is executed: %w", err)
		}
		s.counting = binary
	}
	judged, size := 0, 0
	for sign, some := range map[int][]string{-1: nil, 1: requests} {
		executed, err := s.executedBy(s.counting, func(server *Server) error {
			return server.exchangeMixed(some, s.random("exchange"))
		}, append([]string{"-workers", "2"}, flags...)...)
		if err != nil {
			return a, err
		}
		n, err := s.countRounds(executed)
		if err != nil {
			return a, err
		}
		a.rounds += float64(sign * n)
		a.statements += float64(sign * s.countStatements(executed))
		if n, err = s.countIn(executed, "shared/http1", "Judge.judge"); err != nil {
			return a, err
		}
		judged += sign * n
	}
	for _, request := range requests {
		size += len(request)
	}
	n := float64(len(requests))
	a.rounds = (a.rounds + (float64(judged)/n-1)*float64(size)) / n
	a.share = a.rounds * n / float64(size)
	a.statements /= n
	return a, nil
}

// exchangeMixed has requests answered, over one of several connections: some come by themselves, some together, some in
// two pieces.
func (s *Server) exchangeMixed(requests []string, random *rand.Rand) error {
	clients, err := s.some(random)
	if err != nil {
		return err
	}
	for len(requests) > 0 {
		c := clients[random.IntN(len(clients))]
		n := min(1+random.IntN(4), len(requests))
		text := strings.Join(requests[:n], "")
		cut := random.IntN(2) * random.IntN(len(text))
		for _, piece := range []string{text[:cut], text[cut:]} {
			if err := c.send(piece); err != nil {
				return err
			}
		}
		for _, request := range requests[:n] {
			if _, err := c.answer(); err != nil {
				return fmt.Errorf("%s: %w", firstLine(request), err)
			}
		}
		requests = requests[n:]
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
