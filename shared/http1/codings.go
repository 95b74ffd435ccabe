package http1

// codings reads Transfer-Encoding fields (RFC 9112, 6.1 and 7). Chunked is the one coding that is
// known here; it must be the last, and once.
type codings struct {
	chunked   bool // the last coding is chunked
	other     bool // there is another coding
	malformed bool // a list is malformed or empty, or goes on after chunked
}

// read reads one field's value, a list of codings. Empty elements of a list do not count
// (RFC 9110, 5.6.1), but a list needs one that is not.
func (l *codings) read(v []byte) {
	found := false
	for i := 0; i < len(v) && !l.malformed; {
		look(1)
		if v[i] == ',' || isBlank(v[i]) {
			i++
			continue
		}
		found = true
		i = l.readOne(v, i)
	}
	l.malformed = l.malformed || !found
}

// readOne reads the coding that begins at offset i, and returns where it ends.
func (l *codings) readOne(v []byte, i int) int {
	from := i
	for i < len(v) && is(v[i], tokenByte) {
		i++
	}
	name := v[from:i]
	p := parameters{coding: true}
	for i < len(v) && (v[i] != ',' || !p.whole()) && p.take(v[i]) {
		i++
	}
	look(min(i+2, len(v)) - from)
	ended := p.whole() && (i == len(v) || v[i] == ',')
	chunked := len(name) == len("chunked") && equalFold(name, "chunked")
	// Chunked has no parameters: a sender that gives it some means what we do not know.
	l.malformed = l.malformed || len(name) == 0 || !ended || l.chunked || chunked && p.some
	l.chunked = chunked
	l.other = l.other || !chunked
	return i
}
