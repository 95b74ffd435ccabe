package main

import (
	"strings"

	"github.com/evanphx/wildcat"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// requestReader turns heads into requests without a copy: its strings are views
// into the read buffer. It belongs to a loop.
type requestReader struct {
	parser  *wildcat.HTTPParser
	headers headerViews
	path    []byte // the last path that had escapes, decoded
}

func newRequestReader() requestReader {
	// One slot more than a head may have fields, as wildcat grows the array when
	// it has filled the last one.
	parser := wildcat.NewSizedHTTPParser(http1.MaxHeaders + 1)
	return requestReader{parser: parser, headers: headerViews{parser: parser}}
}

// parse makes request from a head that has been judged. wildcat trusts its
// input, which is why it sees only heads that are complete and valid: a field
// line that begins with a blank would make it panic or merge lines, a bare line
// feed would make it swallow a line.
func (c *conn) parse(request *http1.Request, head *http1.Head, b []byte) http1.Fault {
	reader := &c.loop.reader
	if _, err := reader.parser.Parse(b[head.Start:]); err != nil {
		// The judge is the stricter of the two, so this is not reached.
		return http1.Fault{Status: 400, Reason: err.Error()}
	}
	reader.headers.limit(head.Headers)
	*request = http1.Request{
		Method:  http1.View(reader.parser.Method),
		Target:  http1.View(reader.parser.Path),
		Path:    http1.View(head.Path.Of(b)),
		Query:   http1.View(head.Query.Of(b)),
		Host:    http1.View(head.Host.Of(b)),
		Minor:   head.Minor,
		Headers: &reader.headers,
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

// headerViews finds fields in the parser's array, which is in the order of the
// request and small enough that looking at each beats a map.
type headerViews struct {
	parser *wildcat.HTTPParser
	count  int
	values []string // what Values has handed out for the present request
}

// limit says how many fields the present request has. The parser leaves those
// of an earlier, longer request in the array: Get does not look at them, and the
// buffers that they point into shall not be kept alive.
func (h *headerViews) limit(count int) {
	if count < h.count {
		clear(h.parser.Headers[count:h.count])
	}
	h.count = count
	clear(h.values)
	h.values = h.values[:0]
}

// Get implements http1.Headers.
func (h *headerViews) Get(name string) string {
	if name == "Host" || name == "Transfer-Encoding" { // no fields to a handler
		return ""
	}
	for i := range h.count {
		field := &h.parser.Headers[i]
		if len(field.Name) == len(name) && strings.EqualFold(http1.View(field.Name), name) {
			// wildcat leaves trailing blanks, and the carriage return of an empty value.
			return strings.TrimRight(http1.View(field.Value), " \t\r")
		}
	}
	return ""
}

// Values implements http1.Headers.
func (h *headerViews) Values(name string) []string {
	if name == "Host" || name == "Transfer-Encoding" {
		return nil
	}
	from := len(h.values)
	for i := range h.count {
		field := &h.parser.Headers[i]
		if len(field.Name) == len(name) && strings.EqualFold(http1.View(field.Name), name) {
			h.values = append(h.values, strings.TrimRight(http1.View(field.Value), " \t\r"))
		}
	}
	return h.values[from:len(h.values):len(h.values)]
}
