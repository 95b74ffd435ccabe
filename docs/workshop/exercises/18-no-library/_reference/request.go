package main

import (
	"bytes"
	"strings"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// requestReader turns heads into requests without a copy: its strings are views
// into the read buffer. It belongs to a loop.
type requestReader struct {
	fields fieldLines
	path   []byte // the last path that had escapes, decoded
}

func newRequestReader() requestReader { return requestReader{} }

// parse makes request from a head that has been judged: there is nothing left to
// check, and everything but the fields has been found already.
func (c *conn) parse(request *http1.Request, head *http1.Head, b []byte) http1.Fault {
	reader := &c.loop.reader
	reader.fields.reset(b[head.HeaderStart:head.Length])
	*request = http1.Request{
		Method:  http1.View(head.Method.Of(b)),
		Target:  http1.View(head.Target.Of(b)),
		Path:    http1.View(head.Path.Of(b)),
		Query:   http1.View(head.Query.Of(b)),
		Host:    http1.View(head.Host.Of(b)),
		Minor:   head.Minor,
		Headers: &reader.fields,
	}
	if head.Escaped {
		reader.path = http1.AppendDecoded(reader.path[:0], head.Path.Of(b))
		request.Path = http1.View(reader.path)
	}
	if request.Path == "" {
		request.Path = head.DefaultPath()
	}
	return http1.Fault{}
}

// fieldLines are the field lines of the present request, and the empty line
// behind them. They are looked at when a handler asks for a field: most ask for
// none.
type fieldLines struct {
	lines  []byte
	values []string // what Values has handed out for the present request
}

func (f *fieldLines) reset(lines []byte) {
	f.lines = lines
	clear(f.values)
	f.values = f.values[:0]
}

// Get implements http1.Headers.
func (f *fieldLines) Get(name string) string {
	if name == "Host" || name == "Transfer-Encoding" {
		return ""
	}
	for rest := f.lines; len(rest) > 2; {
		end := bytes.IndexByte(rest, '\n')
		line := rest[:end-1]
		rest = rest[end+1:]
		colon := bytes.IndexByte(line, ':')
		if colon == len(name) && strings.EqualFold(http1.View(line[:colon]), name) {
			return strings.Trim(http1.View(line[colon+1:]), " \t")
		}
	}
	return ""
}

// Values implements http1.Headers.
func (f *fieldLines) Values(name string) []string {
	if name == "Host" || name == "Transfer-Encoding" {
		return nil
	}
	from := len(f.values)
	for rest := f.lines; len(rest) > 2; {
		end := bytes.IndexByte(rest, '\n')
		line := rest[:end-1]
		rest = rest[end+1:]
		colon := bytes.IndexByte(line, ':')
		if colon == len(name) && strings.EqualFold(http1.View(line[:colon]), name) {
			f.values = append(f.values, strings.Trim(http1.View(line[colon+1:]), " \t"))
		}
	}
	return f.values[from:len(f.values):len(f.values)]
}
