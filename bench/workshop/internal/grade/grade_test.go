package grade

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/topology"
)

func limit(v float64) *float64 { return &v }

func TestFigureAgainstItsLimit(t *testing.T) {
	for _, c := range []struct {
		check Check
		value float64
		holds bool
		text  string
	}{
		{Check{Figure: "reads", Of: "hello", AtMost: limit(1.05)}, 1.05, true, "reads per request (hello): 1.05"},
		{Check{Figure: "reads", Of: "hello", AtMost: limit(1.05)}, 1.06, false, "reads per request (hello): 1.06, must be at most 1.05"},
		{Check{Figure: "reads", Of: "hello", AtMost: limit(0)}, 0, true, "reads per request (hello): 0.00"},
		{Check{Figure: "reads", Of: "browser", AtLeast: limit(1.95)}, 1.95, true, "reads per request (browser): 1.95"},
		{Check{Figure: "reads", Of: "browser", AtLeast: limit(1.95)}, 1, false, "reads per request (browser): 1.00, must be at least 1.95"},
		{Check{Figure: "calls made", AtMost: limit(512)}, 65836.4, false, "calls made per answer in the files of this exercise: 65836, must be at most 512"},
	} {
		c.check.Look = "there"
		f := c.check.judge(c.value)
		require.Equal(t, Finding{Check: c.check.Name(), Holds: c.holds, Text: c.text, Look: "there"}, f)
	}
	require.Equal(t, "reads of hello", Check{Figure: "reads", Of: "hello"}.Name())
	require.Equal(t, "order", Check{Behaviour: "order"}.Name())
}

// TestCounterAndWitness shows that the larger of both counts, and that a counter that says too little is found.
func TestCounterAndWitness(t *testing.T) {
	for name, c := range map[string]struct {
		counted float64
		seen    map[string]float64
		value   float64
		honest  bool
	}{
		"both the same":                   {1, map[string]float64{writes: 1}, 1, true},
		"a turn that is under way":        {1, map[string]float64{writes: 1.04}, 1.04, true},
		"the counter says more":           {3, map[string]float64{writes: 1}, 3, true},
		"the counter says nothing":        {0, map[string]float64{writes: 2}, 2, false},
		"the counter says a little less":  {1.8, map[string]float64{writes: 2}, 2, false},
		"nobody could watch":              {1, nil, 1, true},
		"the other calls are not its own": {1, map[string]float64{writes: 1, reads: 9}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Subject{measured: map[string]perRequest{"hello": {counters: map[string]float64{"writes": c.counted}, calls: c.seen}}}
			findings := s.Run(Check{Figure: "writes", Of: "hello", AtMost: limit(1.5)})
			require.Equal(t, c.value <= 1.5, findings[0].Holds)
			require.Equal(t, map[string]float64{"writes of hello": c.value}, s.Values())
			if c.honest {
				require.Len(t, findings, 1)
				return
			}
			require.Len(t, findings, 2)
			require.Equal(t, "honest counters", findings[1].Check)
			require.False(t, findings[1].Holds)
		})
	}
}

// TestSameWatched: small differences are a matter of time, larger ones of knowing who looks.
func TestSameWatched(t *testing.T) {
	small, large := load{name: "hello", requests: []request{{"", "x"}}}, load{name: "body64k", requests: []request{{"", strings.Repeat("x", 64<<10)}}}
	counted := func(name string, n float64) map[string]float64 { return map[string]float64{name: n} }
	for name, c := range map[string]struct {
		load load
		m    perRequest
		says string
	}{
		"nobody could watch":   {small, perRequest{counters: counted("reads", 7)}, ""},
		"the same":             {small, perRequest{counters: counted("reads", 1), watched: counted("reads", 1.02)}, ""},
		"a read more":          {small, perRequest{counters: counted("reads", 1), watched: counted("reads", 2)}, "reads of hello are 1.00 per request, and 2.00"},
		"a timer less":         {small, perRequest{counters: counted("timerfd_settimes", 2), watched: counted("reads", 0)}, "timerfd_settimes of hello are 2.00"},
		"writes of large ones": {large, perRequest{counters: counted("writes", 1), watched: counted("writes", 3)}, ""},
		"copies of large ones": {large, perRequest{counters: counted("body_bytes_copied", 65536), watched: counted("writes", 0)}, "of body64k it copies 65536 bytes"},
		"files":                {small, perRequest{wrote: 0, watched: counted("reads", 0), watchedWrote: 9000}, "it writes 0 bytes per request from files or to events, and 9000"},
		"files, not known":     {small, perRequest{wrote: -1, watched: counted("reads", 0), watchedWrote: 9000}, ""},
	} {
		err := c.m.sameWatched(c.load)
		if c.says == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.says, name)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	require.True(t, KnownFigure("hand-offs"))
	require.True(t, KnownFigure("calls made"))
	require.False(t, KnownFigure("hops"))
	require.True(t, KnownBehaviour("order"))
	require.False(t, KnownBehaviour("speed"))
	findings := new(Subject).Run(Check{Figure: "writes", Of: "nothing of the kind", AtMost: limit(1)})
	require.Len(t, findings, 1)
	require.False(t, findings[0].Holds, "a load that does not exist is no success")
}

const measured = `rounds: 24
hello: {median: 0.99, low: 0.97, high: 1.02, verdict: cannot tell}
router_percent: 1.6
ceiling: 1.016
conclusion: |
  one two three four five six seven eight nine ten one two three four five six seven eight nine ten
  one two three four five six seven eight nine ten
`

// TestMeasurementFile changes one thing at a time in a file that is in order.
func TestMeasurementFile(t *testing.T) {
	for name, c := range map[string]struct{ old, new, says string }{
		"as it is":                   {"", "", ""},
		"slower, and it is":          {"low: 0.97, high: 1.02, verdict: cannot tell", "low: 0.98, high: 0.999, verdict: slower", ""},
		"too few rounds":             {"rounds: 24", "rounds: 5", "six or more"},
		"not filled in":              {"median: 0.99", "median: 0", "hello is not filled in"},
		"a median outside":           {"median: 0.99", "median: 1.03", "does not lie between low and high"},
		"no interval":                {"low: 0.97", "low: 0", "does not lie between low and high"},
		"no ratio that can be":       {"high: 1.02", "high: 21", "is no ratio"},
		"within the noise floor":     {"low: 0.97, high: 1.02", "low: 0.98, high: 0.999", ""},
		"a wish":                     {"verdict: cannot tell", "verdict: faster", `does not say "faster"`},
		"an end that is 1 exactly":   {"high: 1.02, verdict: cannot tell", "high: 1, verdict: slower", `does not say "slower"`},
		"a verdict of another kind":  {"verdict: cannot tell", "verdict: good", `the verdict is "good"`},
		"no share":                   {"router_percent: 1.6", "router_percent: 0", "router_percent is 0"},
		"a ceiling from elsewhere":   {"ceiling: 1.016", "ceiling: 1.26", "ceiling is 1.26"},
		"a ceiling that was rounded": {"ceiling: 1.016", "ceiling: 1.02", ""},
		"few words":                  {"one two three four five six seven eight nine ten one", "one", "conclusion has 20 words"},
		"a field too much":           {"rounds: 24", "rounds: 24\nspeed: 9", "speed"},
		"no yaml":                    {"rounds: 24", "rounds: [", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			text := measured
			if c.old != "" {
				require.Contains(t, text, c.old)
				text = strings.Replace(text, c.old, c.new, 1)
			}
			s := &Subject{Own: map[string][]byte{answersFile: []byte(text)}}
			f := s.Run(Check{Behaviour: "router-measured"})[0]
			require.Equal(t, c.says == "", f.Holds, f.Text)
			require.Contains(t, f.Text, c.says)
			require.NotContains(t, f.Text, "\n")
		})
	}
	same := map[string][]byte{answersFile: []byte(measured)}
	require.Contains(t, (&Subject{Own: same, Start: same}).Run(Check{Behaviour: "router-measured"})[0].Text, "still as it was laid out")
	require.Contains(t, new(Subject).Run(Check{Behaviour: "router-measured"})[0].Text, "is missing")
}

// TestWrittenAgainstMeasured holds the file that is in order against what was measured.
func TestWrittenAgainstMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		measured map[string][]Measured
		says     string
	}{
		"nothing is known": {nil, ""},
		"as measured":      {map[string][]Measured{"hello": {{24, 0.9873, 0.9671, 1.0189}}}, ""},
		"the first of two": {map[string][]Measured{"hello": {{24, 0.99, 0.97, 1.02}, {20, 1.5, 1.4, 1.6}}}, ""},
		"not yet":          {map[string][]Measured{}, "was not measured with hello yet"},
		"invented":         {map[string][]Measured{"hello": {{24, 1.051, 1.03, 1.07}}}, "what was measured is 1.051 (1.030 to 1.070), and not 0.99"},
		"fewer rounds":     {map[string][]Measured{"hello": {{7, 0.99, 0.97, 1.02}}}, "there were 7"},
	} {
		s := &Subject{Own: map[string][]byte{answersFile: []byte(measured)}, Measured: c.measured}
		if err := routerMeasured(s); c.says == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.says, name)
		}
	}
}

func TestCountCalls(t *testing.T) {
	s := &Subject{
		Own: map[string][]byte{
			"own.go":   []byte("package main\n\nfunc f() {\n\tg(h())\n\tif x {\n\t\th()\n\t}\n}\n"),
			"new.go":   []byte("package main\n\nfunc n() { append(nil, 1) }\n"),
			"other.go": []byte("package main\n\nfunc o() { f() }\n"),
			"notes.md": []byte("f()"),
		},
		Start: map[string][]byte{"own.go": nil, "other.go": nil},
		Files: []string{"own.go"},
	}
	const at = "github.com/x/y/work/z/"
	profile := "mode: count\n" +
		at + "own.go:3.10,5.7 2 100\n" + // two calls in one line
		at + "own.go:5.7,7.3 1 7\n" + // one in a branch
		at + "new.go:3.10,3.29 1 5\n" + // a file that is new counts too
		at + "other.go:3.10,3.16 1 1000\n" + // one that is out of bounds does not
		"github.com/x/y/shared/http1/own.go:4.2,4.20 1 5000\n" // nor does one of another package that has the same name
	executed, err := readBlocks([]byte(profile))
	require.NoError(t, err)
	n, err := s.countOwn(executed, callAt)
	require.NoError(t, err)
	require.Equal(t, 2*100+7+5, n)
	_, err = readBlocks([]byte(at + "own.go:three 1 1\n"))
	require.Error(t, err)
}

func TestCountRounds(t *testing.T) {
	text := []byte("package main\n\nfunc f() {\n\tfor x() {\n\t\ty()\n\t}\n\tfor range z {\n\t}\n\ty()\n}\n")
	const at = "github.com/x/y/work/z/"
	executed, err := readBlocks([]byte("mode: count\n" +
		at + "own.go:3.10,4.10 1 3\n" +
		at + "own.go:4.10,6.3 1 300\n" + // each round of the first
		at + "own.go:7.14,8.3 0 50\n" + // and of the second
		at + "own.go:9.2,9.5 1 3\n" +
		library + "/own.go:4.10,6.3 1 9\n")) // a file of the same name, and not of the exercise
	require.NoError(t, err)
	n, err := (&Subject{Own: map[string][]byte{"own.go": text}}).countOwn(executed, roundAt)
	require.NoError(t, err)
	require.Equal(t, 350, n)
	head := headOf("GET / HTTP/1.1\r\nHost: a\r\n", rereadHead)
	require.Len(t, head, rereadHead)
	require.Equal(t, 8, strings.Count(head, "\r\nX-Field-"))
	require.True(t, strings.HasSuffix(head, "v\r\n\r\n"))
}

func TestCacheLinesThatMeet(t *testing.T) {
	require.True(t, meet([]uint64{64, 72}, []uint64{120, 300}))
	require.False(t, meet([]uint64{64, 72}, []uint64{128, 136}))
	require.False(t, meet([]uint64{0, 63}, []uint64{64, 127}))
}

func TestLibraryIsFound(t *testing.T) {
	s := &Subject{Own: map[string][]byte{"request.go": []byte("package main\n\nimport \"github.com/evanphx/wildcat\"\n")}}
	require.False(t, s.Run(Check{Behaviour: "no-library"})[0].Holds)
	s.Own["request.go"] = []byte("package main\n\n// No github.com/evanphx/wildcat any more.\n")
	require.True(t, s.Run(Check{Behaviour: "no-library"})[0].Holds)
}

// TestRequestsDiffer: what answers from the latest heads that it has seen must not find one of them.
func TestRequestsDiffer(t *testing.T) {
	for _, name := range []string{"hello", "browser", "users", "any requests"} {
		l, err := (&Subject{Seed: 3}).load(name)
		require.NoError(t, err)
		seen := map[string]bool{}
		for _, r := range l.requests {
			seen[r.send] = true
		}
		require.Greater(t, len(seen), countedRequests, name)
		other, err := (&Subject{Seed: 4}).load(name)
		require.NoError(t, err)
		require.False(t, seen[other.requests[0].send], name)
	}
}

// TestCallsAreFound counts what functions are executed by where their bodies begin.
func TestCallsAreFound(t *testing.T) {
	const text = "package p\n\nfunc Send() {\n\tprint()\n}\n\nfunc (v *Vector) Send() {\n\tprint()\n}\n\nfunc (o Other) Send() {\n\tprint()\n}\n"
	executed, err := readBlocks([]byte("p.go:3.13,5.2 1 5\np.go:7.25,9.2 1 70\np.go:11.24,13.2 1 900\n"))
	require.NoError(t, err)
	n, err := count("p.go", []byte(text), executed["p.go"], func(node ast.Node) token.Pos { return beginOf(node, []string{"Send", "Vector.Send"}) })
	require.NoError(t, err)
	require.Equal(t, 75, n)
	for _, names := range callOf {
		for _, name := range names {
			require.True(t, netpollHas(t, name), "shared/netpoll has no %s", name)
		}
	}
}

func netpollHas(t *testing.T, name string) (has bool) {
	paths, err := filepath.Glob("../../../../shared/netpoll/*_linux.go")
	require.NoError(t, err)
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			has = has || beginOf(d, []string{name}).IsValid()
		}
	}
	return has
}

func TestFileLoads(t *testing.T) {
	const piece = 16
	text := fileText(1 << 20)
	require.Len(t, text, 1<<20)
	seen := map[string]int{}
	for i := 0; i+piece <= len(text); i += piece / 2 {
		before, twice := seen[text[i:i+piece]]
		require.False(t, twice, "the same %d bytes at %d and at %d", piece, before, i)
		seen[text[i:i+piece]] = i
	}
	a, b := loads["small files"](rand.New(rand.NewPCG(1, 0))), loads["small files"](rand.New(rand.NewPCG(2, 0)))
	require.NotEqual(t, a.requests, b.requests, "a server that knows sizes or names must not pass")
	folder, err := filesIn(map[string]string{"a": "1", "b/c": "2"})
	require.NoError(t, err)
	defer os.RemoveAll(folder)
	got, err := os.ReadFile(filepath.Join(folder, "b", "c"))
	require.NoError(t, err)
	require.Equal(t, "2", string(got))
}

// speaks accepts connections, reads a request, and answers with the next of the texts; then it closes.
func speaks(t *testing.T, answers ...string) (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			buffer := make([]byte, 4096)
			for _, answer := range answers {
				if _, err := c.Read(buffer); err != nil {
					break
				}
				io.WriteString(c, answer)
			}
			c.Close()
		}
	}()
	return listener.Addr().String()
}

func TestClient(t *testing.T) {
	const good = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!"
	long := strings.Repeat("0123456789", 10)
	for name, c := range map[string]struct {
		answers []string
		do      func(*connection) error
		says    string
	}{
		"good":         {[]string{good}, (*connection).hello, ""},
		"status":       {[]string{"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"}, (*connection).hello, "the answer was 404, not 200"},
		"body":         {[]string{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbye"}, (*connection).hello, `the body was "bye", not "Hello, World!"`},
		"cut short":    {[]string{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbye"}, (*connection).hello, "the server closed the connection"},
		"nothing":      {[]string{""}, (*connection).hello, "the server closed the connection"},
		"something":    {[]string{good + "HTTP/1.1 200 OK"}, func(c *connection) error { return firstOf(c.hello(), c.ends()) }, "instead of the end of the connection came"},
		"the end":      {[]string{good}, func(c *connection) error { return firstOf(c.hello(), c.ends()) }, ""},
		"another body": {[]string{good}, func(c *connection) error { c.send("x"); return c.expect(200, greeting+"!") }, "the body was"},
		"differs late": {[]string{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + long[:80] + "X" + long[81:]}, func(c *connection) error { c.send("x"); return c.expect(200, long) }, "from byte 80 of 100 on"},
		"of a load": {[]string{good, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}, func(c *connection) error {
			return drive([]*connection{c}, load{name: "hello", requests: []request{{helloRequest, greeting}}, pipeline: 1}, 3)
		}, "request 2 of hello: the body was"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := dial(speaks(t, c.answers...))
			require.NoError(t, err)
			defer conn.Close()
			err = c.do(conn)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
		})
	}
}

// What a figure is counted over is not shown in full: a warm-up that fills the terminal says nothing.
func TestShow(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, c := range map[string]struct {
		check Check
		lines int
		whole bool
	}{
		"figure":    {Check{Figure: "timerfd_settime", Of: "echo"}, limitsOfFigure.lines, false},
		"behaviour": {Check{Behaviour: "types"}, limitsOfBehaviour.lines, true},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			stop := Show(&out, c.check)
			for range 1000 {
				showBytes(1, ">", long)
			}
			stop()
			showBytes(1, ">", "nobody looks any more")
			require.Equal(t, c.lines+1, strings.Count(out.String(), "\n"))
			require.Contains(t, out.String(), fmt.Sprintf("… and %d pieces more", 1000-c.lines))
			require.Equal(t, c.whole, strings.Contains(out.String(), long))
			require.Equal(t, !c.whole, strings.Contains(out.String(), "… and 760 bytes more"))
			require.NotContains(t, out.String(), "nobody")
		})
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestUntil(t *testing.T) {
	conn, err := dial(speaks(t, ""))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.until(50 * time.Millisecond)
	require.ErrorContains(t, err, "it is still open")
	require.NoError(t, conn.send("x"))
	_, err = conn.until(answerLimit)
	require.NoError(t, err)
}

// TestAllDescribed holds each behaviour to a line for the result.
func TestAllDescribed(t *testing.T) {
	require.NotEmpty(t, behaviours)
	for name := range behaviours {
		require.NotEmpty(t, described[name], name)
	}
	var both []string
	for name := range special {
		if _, ok := figures[name]; ok {
			both = append(both, name)
		}
	}
	require.Empty(t, both, "a figure is counted in one way")
}

// TestMachines asks what -pin asks, which is the reference of exercise 25 too, about all machines and many more.
func TestMachines(t *testing.T) {
	for _, q := range machines() {
		read := func(name string) string { return q.Files[name] }
		require.Equal(t, q.want, topology.Place(q.Allowed, q.Loops, read), q.name)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		q := randomMachine(random)
		answer := topology.Place(q.Allowed, q.Loops, func(name string) string { return q.Files[name] })
		require.Zero(t, q.flaws(answer), "%d loops, of %v: %v\n%v", q.Loops, q.Allowed, answer, q.Files)
	}
}
