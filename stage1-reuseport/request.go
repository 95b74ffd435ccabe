package main

import (
	"bufio"
	"io"
	"net/http"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// requestReader turns heads into requests, with the standard library's parser.
// It belongs to a loop: the readers are reset for each head, not made anew.
type requestReader struct {
	head   headReader
	buffer *bufio.Reader
}

func newRequestReader() requestReader {
	return requestReader{buffer: bufio.NewReader(nil)}
}

// parse makes request from a head that has been judged. net/http.ReadRequest
// copies method, target and every header into strings and a map of their own.
// (To a Pragma it adds a Cache-Control, which no handler here asks for.)
func (c *conn) parse(request *http1.Request, head *http1.Head, b []byte) http1.Fault {
	reader := &c.loop.reader
	reader.head.reset(head, b)
	reader.buffer.Reset(&reader.head)
	parsed, err := http.ReadRequest(reader.buffer)
	if err != nil {
		// The judge is the stricter of the two, so this is not reached.
		return http1.Fault{Status: 400, Reason: err.Error()}
	}
	*request = http1.Request{
		Method:  parsed.Method,
		Target:  parsed.RequestURI,
		Path:    parsed.URL.Path,
		Query:   parsed.URL.RawQuery,
		Host:    parsed.Host,
		Minor:   head.Minor,
		Headers: parsed.Header,
	}
	if head.Form != http1.OriginForm {
		request.Target = string(head.Target.Of(b))
		request.Host = string(head.Host.Of(b))
	}
	return http1.Fault{}
}

// headReader reads a head out in up to four pieces, which leave out what the
// library would judge anew, by rules of its own: the authority of a target that
// has one, and Transfer-Encoding (how long a body is has been decided already).
type headReader struct {
	pieces [4][]byte
	next   int
}

func (r *headReader) reset(head *http1.Head, b []byte) {
	r.next = 0
	r.pieces = [4][]byte{}
	b = b[:head.Length]
	from := head.Start
	if head.Form != http1.OriginForm {
		r.pieces[0] = b[from:head.Target.Start]
		from = int(head.Path.Start)
		if head.Path.Len() == 0 {
			r.pieces[1] = []byte(head.DefaultPath())
			from = int(head.Target.End)
			if head.Query.Len() > 0 {
				from = int(head.Query.Start) - 1
			}
		}
	}
	if line := head.TransferEncoding; line.Len() > 0 {
		r.pieces[2] = b[from:line.Start]
		from = int(line.End)
	}
	r.pieces[3] = b[from:]
}

// Read implements io.Reader.
func (r *headReader) Read(p []byte) (int, error) {
	for r.next < len(r.pieces) && len(r.pieces[r.next]) == 0 {
		r.next++
	}
	if r.next == len(r.pieces) {
		return 0, io.EOF
	}
	n := copy(p, r.pieces[r.next])
	r.pieces[r.next] = r.pieces[r.next][n:]
	return n, nil
}
