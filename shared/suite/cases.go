package suite

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

//go:embed testdata/*.cases
var caseFiles embed.FS

// Case is one exchange: what a client sends, and everything that must come back.
type Case struct {
	// Name is unique among all cases; File and Line say where it stands.
	Name, File string
	Line       int
	// RFC is the rule that it follows, Why what is at stake.
	RFC, Why string
	// Bytes is what the client sends.
	Bytes []byte
	// Certain is how many of them it takes to make the last answer certain: with one byte less, no
	// correct server can know it. It is len(Bytes) unless the case marks an earlier place.
	Certain int
	// HalfClose says that the client then ends its side of the connection.
	HalfClose bool
	// Answers is all that must come back, in order.
	Answers []Expected
	// Closed says that the server then ends the connection; otherwise it answers further requests.
	Closed bool
}

// Cases returns every conformance case, sorted by file and in each file's order. The slices in them
// are shared: do not write to them.
func Cases() ([]Case, error) {
	files, err := fs.Glob(caseFiles, "testdata/*.cases")
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var all []Case
	names := map[string]bool{}
	for _, file := range files {
		text, err := caseFiles.ReadFile(file)
		if err != nil {
			return nil, err
		}
		cases, err := ParseCases(strings.TrimPrefix(file, "testdata/"), string(text))
		if err != nil {
			return nil, err
		}
		for _, c := range cases {
			if names[c.Name] {
				return nil, fmt.Errorf("%s:%d: a case %q exists already", c.File, c.Line, c.Name)
			}
			names[c.Name] = true
		}
		all = append(all, cases...)
	}
	return all, nil
}

// ParseCases reads cases from text; file is used in messages only. testdata/README.md describes the format.
func ParseCases(file, text string) ([]Case, error) {
	lines := strings.Split(text, "\n")
	var cases []Case
	for first := 0; first < len(lines); {
		end := first + 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "case:") {
			end++
		}
		found, err := parseBlock(file, first+1, lines[first:end])
		if err != nil {
			return nil, err
		}
		cases = append(cases, found...)
		first = end
	}
	return cases, nil
}

// parseBlock reads the lines from one case: to the next, which are several cases if there is an each:.
func parseBlock(file string, first int, lines []string) ([]Case, error) {
	var items []string
	for _, line := range lines {
		if value, ok := strings.CutPrefix(line, "each:"); ok {
			items = append(items, strings.Fields(value)...)
		}
	}
	if items == nil {
		c, err := parseCase(file, first, lines, "")
		if err != nil || c == nil {
			return nil, err
		}
		return []Case{*c}, nil
	}
	var cases []Case
	for _, item := range items {
		c, err := parseCase(file, first, lines, item)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return nil, fmt.Errorf("%s:%d: each: without a case", file, first)
		}
		cases = append(cases, *c)
	}
	return cases, nil
}

func parseCase(file string, first int, lines []string, item string) (*Case, error) {
	p := caseParser{file: file, item: item}
	for i, line := range lines {
		p.line = first + i
		if item != "" {
			line = strings.ReplaceAll(line, "{{it}}", item)
		}
		if err := p.take(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, p.line, err)
		}
	}
	if p.current == nil {
		return nil, nil
	}
	if err := p.finish(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, first, err)
	}
	return p.current, nil
}

type caseParser struct {
	file    string
	line    int
	item    string // of each:
	current *Case
	sending bool // the last key was send:
	marked  bool // {{here}} has been seen
	then    bool // then: has been seen
	// explicit says of each answer whether its Connection field was given.
	explicit []bool
}

func (p *caseParser) take(line string) error {
	if strings.TrimRight(line, " \t\r") != line {
		return fmt.Errorf(`a blank at the end of a line cannot be seen: write \x20`)
	}
	if payload, ok := strings.CutPrefix(line, "|"); ok {
		return p.takeBytes(strings.TrimPrefix(payload, " "))
	}
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	p.sending = false
	key, value, found := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	if !found {
		return fmt.Errorf("want key: value, got %q", line)
	}
	if attribute, ok := strings.CutPrefix(key, "  "); ok {
		return p.takeAttribute(attribute, value)
	}
	if key == "case" {
		name := value
		if p.item != "" {
			name += " (" + p.item + ")"
		}
		p.current = &Case{Name: name, File: p.file, Line: p.line}
		return nil
	}
	if p.current == nil {
		return fmt.Errorf("%q before the first case", key)
	}
	switch key {
	case "each":
	case "rfc":
		p.current.RFC = value
	case "why":
		p.current.Why = strings.TrimSpace(p.current.Why + " " + value)
	case "send":
		if value != "" {
			return fmt.Errorf("the bytes stand in the lines after send:, each behind a bar")
		}
		p.sending = true
	case "shut":
		if value != "after" {
			return fmt.Errorf("want shut: after, got %q", value)
		}
		p.current.HalfClose = true
	case "answer":
		return p.takeAnswer(value)
	case "then":
		if value != "open" && value != "closed" {
			return fmt.Errorf("want then: open or then: closed, got %q", value)
		}
		p.current.Closed = value == "closed"
		p.then = true
	default:
		return fmt.Errorf("unknown key %q", key)
	}
	return nil
}

func (p *caseParser) takeBytes(payload string) error {
	if !p.sending {
		return fmt.Errorf("bytes without a send: before them")
	}
	c := p.current
	before, after, marked := strings.Cut(payload, "{{here}}")
	var err error
	if c.Bytes, err = expand(c.Bytes, before); err != nil {
		return err
	}
	if !marked {
		return nil
	}
	if p.marked {
		return fmt.Errorf("{{here}} twice")
	}
	p.marked = true
	c.Certain = len(c.Bytes)
	c.Bytes, err = expand(c.Bytes, after)
	return err
}

func (p *caseParser) takeAnswer(value string) error {
	words := strings.Fields(value)
	if len(words) == 0 {
		return fmt.Errorf("an answer: without a status")
	}
	status, err := strconv.Atoi(words[0])
	if err != nil || phrases[status] == "" {
		return fmt.Errorf("unknown status %q", words[0])
	}
	e := Expected{Status: status}
	if status >= 400 {
		e = standardError(status)
	}
	for _, word := range words[1:] {
		switch word {
		case "hello":
			e = Hello()
		case "head":
			e.Bodiless = true
		default:
			return fmt.Errorf("unknown word %q", word)
		}
	}
	p.current.Answers = append(p.current.Answers, e)
	p.explicit = append(p.explicit, false)
	return nil
}

func (p *caseParser) takeAttribute(key, value string) error {
	if p.current == nil || len(p.current.Answers) == 0 {
		return fmt.Errorf("%q without an answer before it", key)
	}
	last := len(p.current.Answers) - 1
	e := &p.current.Answers[last]
	switch key {
	case "connection":
		e.Connection = value
		p.explicit[last] = true
		if value == "none" {
			e.Connection = ""
		}
	case "type":
		e.Type = value
	case "allow":
		e.Allow = value
	case "body":
		body, err := expand(nil, value)
		if err != nil {
			return err
		}
		e.Body = string(body)
	case "length":
		n, err := strconv.Atoi(value)
		if err != nil || n <= 0 {
			return fmt.Errorf("bad length %q", value)
		}
		e.Length = n
	default:
		return fmt.Errorf("unknown property %q of an answer", key)
	}
	return nil
}

// finish checks the case that ends here and fills in what it left to the defaults.
func (p *caseParser) finish() error {
	c := p.current
	switch {
	case c.Name == "" || c.RFC == "" || c.Why == "":
		return fmt.Errorf("case %q needs a name, an rfc: line and a why: line", c.Name)
	case !p.then:
		return fmt.Errorf("case %q needs a then: line", c.Name)
	case len(c.Bytes) == 0 && !c.HalfClose:
		return fmt.Errorf("case %q sends nothing", c.Name)
	case c.HalfClose && !c.Closed:
		return fmt.Errorf("case %q: after a half-close the server closes too", c.Name)
	case len(c.Answers) == 0 && !c.HalfClose:
		return fmt.Errorf("case %q: without an answer and without shut: nothing can be awaited", c.Name)
	}
	if !p.marked {
		c.Certain = len(c.Bytes)
	}
	// The last answer before the server closes by itself says so.
	if last := len(c.Answers) - 1; c.Closed && !c.HalfClose && !p.explicit[last] {
		c.Answers[last].Connection = "close"
	}
	return nil
}

// expand appends payload to dst: Go's escapes are replaced, and these, whose text is a Go string:
//
//	{{repeat "text" n}}  the text n times
//	{{fill "text" n}}    the text again and again until dst is n bytes long
func expand(dst []byte, payload string) ([]byte, error) {
	for payload != "" {
		text, rest, found := strings.Cut(payload, "{{")
		literal, err := unquote(text)
		if err != nil {
			return nil, err
		}
		dst = append(dst, literal...)
		if !found {
			break
		}
		call, rest, found := strings.Cut(rest, "}}")
		if !found {
			return nil, fmt.Errorf("{{ without }}")
		}
		payload = rest
		if dst, err = expandCall(dst, call); err != nil {
			return nil, fmt.Errorf("{{%s}}: %w", call, err)
		}
	}
	return dst, nil
}

func expandCall(dst []byte, call string) ([]byte, error) {
	name, arguments, _ := strings.Cut(call, " ")
	quoted, err := strconv.QuotedPrefix(arguments)
	if err != nil {
		return nil, fmt.Errorf("want a quoted text")
	}
	text, err := strconv.Unquote(quoted)
	if err != nil || text == "" {
		return nil, fmt.Errorf("want a text that is not empty")
	}
	n, err := strconv.Atoi(strings.TrimSpace(arguments[len(quoted):]))
	if err != nil || n < 0 || n > maxAnswerBody {
		return nil, fmt.Errorf("want a number of 0 or more after the text")
	}
	switch name {
	case "repeat":
		return append(dst, strings.Repeat(text, n)...), nil
	case "fill":
		if missing := n - len(dst); missing < 0 || missing%len(text) != 0 {
			return nil, fmt.Errorf("%d bytes are missing, which is not a multiple of %d", missing, len(text))
		}
		return append(dst, strings.Repeat(text, (n-len(dst))/len(text))...), nil
	}
	return nil, fmt.Errorf("unknown helper %q", name)
}

// unquote replaces Go's escapes; a quotation mark stands for itself.
func unquote(text string) ([]byte, error) {
	var out []byte
	for text != "" {
		c, multibyte, tail, err := strconv.UnquoteChar(text, 0)
		if err != nil {
			return nil, fmt.Errorf("bad escape in %q", text)
		}
		if multibyte {
			out = append(out, string(c)...)
		} else {
			out = append(out, byte(c))
		}
		text = tail
	}
	return out, nil
}
