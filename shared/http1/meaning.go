package http1

import "math"

// meaning is what the fields that the judge must know have said so far.
type meaning struct {
	hosts     int  // Host fields
	badHost   bool // one of them is not valid
	lengths   int  // Content-Length fields
	badLength *Fault
	length    Span // the first value, as text
	encodings int  // Transfer-Encoding fields
	codings   codings
	continues bool // Expect: 100-continue
	badExpect bool // another expectation
	close     bool // Connection: close
	keepAlive bool // Connection: keep-alive
}

// readField reads the line of a known field, which ends at offset end.
func (j *Judge) readField(b []byte, end int) {
	f, m := &j.fields, &j.meaning
	from, to := f.value, f.valueEnd
	for to > from && isBlank(b[to-1]) {
		to--
	}
	look(f.valueEnd - to)
	value := b[from:to]
	span := Span{int32(from), int32(to)}
	switch f.field {
	case hostField:
		m.hosts++
		m.badHost = m.badHost || !validHost(value)
		if !j.target.absolute {
			j.head.Host = span
		}
	case contentLengthField:
		look(len(value))
		m.lengths++
		if m.lengths == 1 {
			m.length = span
			size, ok := parseLength(value)
			if !ok {
				m.badLength = faultLength
			}
			j.head.ContentLength = size
		} else if m.badLength == nil && string(value) != string(m.length.Of(b)) {
			m.badLength = faultLengths
		}
	case transferEncodingField:
		m.encodings++
		j.head.TransferEncoding = Span{int32(f.line), int32(end)}
		m.codings.read(value)
	case expectField:
		m.readList(value, (*meaning).readExpectation)
	case connectionField:
		m.readList(value, (*meaning).readOption)
	}
}

// readList has each member of a list read, the empty ones too (RFC 9110, 5.6.1).
func (m *meaning) readList(list []byte, read func(*meaning, []byte)) {
	look(len(list))
	from, to := 0, 0 // the member under way, without blanks around it
	for i, c := range list {
		switch {
		case c == ',':
			read(m, list[from:to])
			from, to = i+1, i+1
		case !isBlank(c):
			to = i + 1
		case to == from:
			from, to = i+1, i+1
		}
	}
	read(m, list[from:to])
}

// readExpectation reads a member of Expect, in any case (RFC 9110, 10.1.1). An empty one does not
// count (RFC 9110, 5.6.1.2). No comma in quotes needs care: what has quotes is another expectation.
func (m *meaning) readExpectation(member []byte) {
	switch {
	case len(member) == 0:
	case equalFold(member, "100-continue"):
		m.continues = true
	default:
		m.badExpect = true
	}
}

// readOption reads a connection option, in any case (RFC 9110, 7.6.1). What is no option that
// matters is passed over, malformed or not.
func (m *meaning) readOption(option []byte) {
	switch {
	case equalFold(option, "close"):
		m.close = true
	case equalFold(option, "keep-alive"):
		m.keepAlive = true
	}
}

// judge decides at the end of the head what the whole of it means, the worst fault first, and
// completes the head.
func (j *Judge) judge() *Fault {
	h, m := &j.head, &j.meaning
	if j.major != 1 {
		return faultMajor
	}
	switch {
	case m.hosts > 1:
		return faultHosts
	case m.badHost:
		return faultHost
	case m.hosts == 0 && h.Minor > 0:
		return faultNoHost
	}
	switch {
	case m.badLength != nil:
		return m.badLength
	case m.encodings > 0 && m.lengths > 0:
		return faultBothFramings
	case m.encodings > 0 && h.Minor == 0:
		return faultCodingOld
	case m.encodings > 0 && m.codings.malformed:
		return faultCodings
	case m.codings.other:
		return faultCoding
	}
	h.Headers = j.fields.count
	h.Chunked = m.codings.chunked
	h.KeepAlive = !m.close && (m.keepAlive || h.Minor > 0)
	if h.Minor > 0 { // HTTP/1.0 has no expectations (RFC 9110, 10.1.1)
		if m.badExpect {
			return faultExpectation
		}
		h.ExpectContinue = m.continues && (h.Chunked || h.ContentLength > 0)
	}
	if h.ContentLength > j.maxBody {
		return faultDeclaredSize
	}
	if j.target.connect {
		return faultConnect
	}
	return nil
}

// parseLength reads a Content-Length (RFC 9110, 8.6): digits alone, and below 2^63.
func parseLength(v []byte) (int64, bool) {
	var size uint64
	for _, c := range v {
		if !isDigit(c) || size > (math.MaxInt64-uint64(c-'0'))/10 {
			return 0, false
		}
		size = size*10 + uint64(c-'0')
	}
	return int64(size), len(v) > 0
}

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

// parameters takes, byte by byte, what may follow a word in two places:
//
//	chunk-ext: *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )   (RFC 9112, 7.1.1)
//	a coding:  *( OWS ";" OWS token BWS "=" BWS ( token / quoted-string ) ) OWS   (RFC 9112, 7)
//
// The zero value is ready, for the first; coding makes it the second.
type parameters struct {
	state  parametersState
	coding bool // a parameter needs a value, and blanks may come last
	some   bool // there is a parameter
}

// parametersState is what the next byte belongs to.
type parametersState uint8

const (
	parametersWord   parametersState = iota // blanks before a parameter, or the parameter: none so far
	parametersBlanks                        // the same after a blank
	parametersName1                         // blanks before a name, and its first byte
	parametersName                          // the rest of it
	parametersEquals                        // blanks after it, and "="
	parametersValue1                        // blanks before a value, and its first byte
	parametersValue                         // the rest of a token
	parametersQuoted                        // the inside of a quoted-string
	parametersPair                          // the byte after a backslash in it
)

// take takes one more byte and reports whether it may stand here.
func (p *parameters) take(c byte) bool {
	next := p.state
	switch p.state {
	case parametersWord, parametersBlanks:
		switch {
		case isBlank(c):
			next = parametersBlanks
		case c == ';':
			next = parametersName1
			p.some = true
		default:
			return false
		}
	case parametersName1:
		switch {
		case isBlank(c):
		case is(c, tokenByte):
			next = parametersName
		default:
			return false
		}
	case parametersName, parametersEquals:
		switch {
		case is(c, tokenByte) && p.state == parametersName:
		case isBlank(c):
			next = parametersEquals
		case c == '=':
			next = parametersValue1
		case c == ';' && !p.coding:
			next = parametersName1
		default:
			return false
		}
	case parametersValue1:
		switch {
		case isBlank(c):
		case is(c, tokenByte):
			next = parametersValue
		case c == '"':
			next = parametersQuoted
		default:
			return false
		}
	case parametersValue:
		switch {
		case is(c, tokenByte):
		case isBlank(c):
			next = parametersBlanks
		case c == ';':
			next = parametersName1
		default:
			return false
		}
	case parametersQuoted:
		switch {
		case is(c, quotedByte):
		case c == '"':
			next = parametersWord
		case c == '\\':
			next = parametersPair
		default:
			return false
		}
	case parametersPair:
		if !is(c, valueByte) {
			return false
		}
		next = parametersQuoted
	}
	p.state = next
	return true
}

// whole reports whether they may end here.
func (p *parameters) whole() bool {
	switch p.state {
	case parametersWord, parametersValue:
		return true
	case parametersName:
		return !p.coding
	case parametersBlanks:
		return p.coding
	}
	return false
}
