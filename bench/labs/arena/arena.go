// Package arena is a lab: what a request's memory costs, by who provides it.
package arena

import (
	"bytes"
	"sync"
)

// A Request is what a server keeps while it serves one: the head, as what it was read into is used
// again; where things are in it; and the answer.
type Request struct {
	Head   []byte
	Target []byte  // in Head
	Fields []Field // in Head
	Answer []byte
}

// A Field is a name and a value, both within a head.
type Field struct{ Name, Value []byte }

const (
	mostFields = 16  // as many as a browser sends
	mostAnswer = 512 // a head and a small body
)

// room returns how many fields in, a head, has, and how long its answer is to be expected.
func room(in []byte) (fields, answer int) {
	return bytes.Count(in, []byte("\n")) - 2, min(2*len(in)+64, mostAnswer)
}

// Handle answers a request. It is called through a variable, as handlers are, so the compiler has to
// assume that r is kept: no request is on a stack.
var Handle = func(r *Request) {
	r.Answer = append(r.Answer, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"...)
	r.Answer = append(r.Answer, r.Target...)
	for i := range r.Fields {
		r.Answer = append(r.Answer, '\n')
		r.Answer = append(r.Answer, r.Fields[i].Name...)
	}
}

// parse finds target and fields in r.Head, which is whole and valid. r has room, or append makes some.
func parse(r *Request) {
	line, rest, _ := bytes.Cut(r.Head, []byte("\r\n"))
	line = line[bytes.IndexByte(line, ' ')+1:]
	r.Target = line[:bytes.IndexByte(line, ' ')]
	for {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		if len(line) == 0 {
			return
		}
		colon := bytes.IndexByte(line, ':')
		r.Fields = append(r.Fields, Field{line[:colon], bytes.TrimSpace(line[colon+1:])})
	}
}

// Heap asks the heap for everything, no more than the head needs, and leaves it to the collector.
func Heap(in []byte, send func([]byte)) {
	fields, answer := room(in)
	r := &Request{
		Head:   bytes.Clone(in),
		Fields: make([]Field, 0, fields),
		Answer: make([]byte, 0, answer),
	}
	parse(r)
	Handle(r)
	send(r.Answer)
}

// Block asks the heap once for all but the head: a request with its fields and answer in one piece,
// whose size the compiler has to know.
func Block(in []byte, send func([]byte)) {
	b := new(struct {
		Request
		fields [mostFields]Field
		answer [mostAnswer]byte
	})
	b.Head = bytes.Clone(in)
	b.Fields = b.fields[:0]
	b.Answer = b.answer[:0]
	parse(&b.Request)
	Handle(&b.Request)
	send(b.Answer)
}

// renew makes r one for another head, in the memory that it has.
func (r *Request) renew(in []byte) {
	r.Head = append(r.Head[:0], in...)
	r.Fields = r.Fields[:0]
	r.Answer = r.Answer[:0]
}

var pool = sync.Pool{New: func() any { return new(Request) }}

// Pool lends a request, with the memory that it has grown to, out of a pool that all threads share.
func Pool(in []byte, send func([]byte)) {
	r := pool.Get().(*Request)
	r.renew(in)
	parse(r)
	Handle(r)
	send(r.Answer)
	pool.Put(r)
}

// A FreeList lends requests out of a list that belongs to one thread: no lock, and the last one that
// came back goes out first, as it is still in the cache.
type FreeList struct{ free []*Request }

// mostFree is how many a list keeps.
const mostFree = 64

// Serve serves one request.
func (l *FreeList) Serve(in []byte, send func([]byte)) {
	var r *Request
	if n := len(l.free); n > 0 {
		r = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		r = new(Request)
	}
	r.renew(in)
	parse(r)
	Handle(r)
	send(r.Answer)
	if len(l.free) < mostFree {
		l.free = append(l.free, r)
	}
}

// A Slab hands out values of one type from a block, and takes all of them back at once. Go's collector
// has to know where pointers are: so there is one slab for each type, where C++ has bytes for all.
type Slab[T any] struct {
	block  []T
	used   int
	poison func(*T) // spoils what is taken back; nil: nothing is spoiled
}

// Take returns n zero values, which are the caller's until Reset.
func (s *Slab[T]) Take(n int) []T {
	if s.used+n > len(s.block) {
		s.block = make([]T, max(2*len(s.block), n)) // who has the old block keeps it alive
		s.used = 0
	}
	taken := s.block[s.used : s.used+n : s.used+n]
	s.used += n
	clear(taken)
	return taken
}

// Reset takes everything back.
func (s *Slab[T]) Reset() {
	if s.poison != nil {
		for i := range s.block[:s.used] {
			s.poison(&s.block[i])
		}
	}
	s.used = 0
}

// An Arena has the memory of one request after the other, of whatever shape they are. It belongs to one
// thread.
type Arena struct {
	requests Slab[Request]
	fields   Slab[Field]
	bytes    Slab[byte]
}

// NewArena returns one with room for the requests of browsers.
func NewArena() *Arena {
	return &Arena{
		requests: Slab[Request]{block: make([]Request, 1)},
		fields:   Slab[Field]{block: make([]Field, 2*mostFields)},
		bytes:    Slab[byte]{block: make([]byte, 4096)},
	}
}

// Poison makes what outlives its request visible: after each one its bytes are 0xDB and its pointers nil.
func (a *Arena) Poison() {
	a.requests.poison = func(r *Request) { *r = Request{} }
	a.fields.poison = func(f *Field) { *f = Field{} }
	a.bytes.poison = func(b *byte) { *b = 0xDB }
}

// Serve serves one request, and then throws away all that it had. Nothing of it may be used later: the
// next request has the same memory.
func (a *Arena) Serve(in []byte, send func([]byte)) {
	fields, answer := room(in)
	r := &a.requests.Take(1)[0]
	r.Head = append(a.bytes.Take(len(in))[:0], in...)
	r.Fields = a.fields.Take(fields)[:0]
	r.Answer = a.bytes.Take(answer)[:0]
	parse(r)
	Handle(r)
	send(r.Answer)
	a.requests.Reset()
	a.fields.Reset()
	a.bytes.Reset()
}
