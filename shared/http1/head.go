package http1

// Span is a piece of a buffer, as two offsets: it stays right when the buffer moves in memory.
type Span struct {
	// Start is the offset of the first byte, End that of the first byte after it.
	Start, End int32
}

// Of gives the piece of b that the span means: a view, not a copy.
func (s Span) Of(b []byte) []byte { return b[s.Start:s.End] }

// Len is the number of bytes in the span.
func (s Span) Len() int { return int(s.End - s.Start) }

// TargetForm is the form of a request target (RFC 9112, 3.2). The fourth one, authority-form, comes
// with CONNECT alone, which is always a fault here.
type TargetForm uint8

const (
	// OriginForm is a path and perhaps a query: "/where?q=now".
	OriginForm TargetForm = iota
	// AbsoluteForm is a whole URI with an authority: "http://www.example.org/pub/".
	AbsoluteForm
	// AsteriskForm is "*", or with OPTIONS a whole URI with neither path nor query, which means
	// the same (RFC 9112, 3.2.4).
	AsteriskForm
)

// String gives the form's name as RFC 9112 writes it.
func (f TargetForm) String() string {
	switch f {
	case OriginForm:
		return "origin-form"
	case AbsoluteForm:
		return "absolute-form"
	case AsteriskForm:
		return "asterisk-form"
	}
	return "unknown"
}

// Head is what the judge found out about a valid head. All offsets count from the first byte that
// the judge was given. A codec that builds a Request from it need not check anything again.
type Head struct {
	// Start is where the request line begins: 2 if an empty line came before it (RFC 9112, 2.2), else 0.
	Start int
	// Length is the number of bytes from offset 0 through the empty line that ends the head.
	Length int
	// Method and Target are the first two parts of the request line.
	Method, Target Span
	// Path is the target's path as sent, with its escapes. It is empty in an absolute-form that has
	// none, which means "/", and in AsteriskForm, where DefaultPath gives "*".
	Path Span
	// Query is what follows the question mark, without it; empty also if there is none.
	Query Span
	// Host is the authority that counts: the host and port of an absolute-form target without its
	// user information, else the value of the Host field. It may be empty.
	Host Span
	// HeaderStart is where the first field line begins; where there is none, the empty line.
	HeaderStart int
	// Headers is the number of field lines, 0 to MaxHeaders.
	Headers int
	// TransferEncoding is the whole line of that field with its CRLF; empty if there is none. There
	// is never more than one: two always make a fault.
	TransferEncoding Span
	// ContentLength is the declared size of the body in bytes; 0 if none is declared.
	ContentLength int64
	// Minor is the version's second digit, 0 or 1; HTTP/1.2 to 1.9 count as 1 (RFC 9110, 2.5).
	Minor uint8
	// Form is the form of the target.
	Form TargetForm
	// Escaped says that the path has at least one %XX.
	Escaped bool
	// KeepAlive says that the client lets the connection live on after this request (RFC 9112, 9.3).
	KeepAlive bool
	// Chunked says that the body comes in chunks (RFC 9112, 7.1).
	Chunked bool
	// ExpectContinue says that the client waits for 100 before it sends the body: asked for in
	// HTTP/1.1, with a body to come (RFC 9110, 10.1.1).
	ExpectContinue bool
}

// DefaultPath is the path that an empty Path stands for: "*" in AsteriskForm, else "/".
func (h *Head) DefaultPath() string {
	if h.Form == AsteriskForm {
		return "*"
	}
	return "/"
}

// AppendDecoded appends path to dst with each %XX decoded, once (RFC 3986, 2.4), and returns the
// longer slice. dst may be path[:0]: decoding never gets longer. A % that no two hexadecimal digits
// follow, which a judged path does not have, is kept as it is.
func AppendDecoded(dst, path []byte) []byte {
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' && i+2 < len(path) && class[path[i+1]]&hexByte != 0 && class[path[i+2]]&hexByte != 0 {
			c = hexValue[path[i+1]]<<4 | hexValue[path[i+2]]
			i += 2
		}
		dst = append(dst, c)
	}
	return dst
}
