package http1

// Body takes the framing off one request's body: a number of bytes that the head declared
// (RFC 9112, 6.2), or chunks (RFC 9112, 7.1), whose extensions and trailers are checked and dropped.
// It keeps no reference to the bytes. Reset must be called first. Not for two goroutines at once.
type Body struct {
	verdict    Verdict
	state      bodyState
	chunked    bool
	left       int64 // bytes that the chunks after the one under way may still have
	size       int64 // bytes still to come of the declared body, or of the chunk under way
	line       int   // bytes of the chunk's line so far
	trailer    int   // bytes of the trailer section so far
	extensions parameters
	trailers   fieldLines
	fault      *Fault
}

// bodyState is what the next byte belongs to.
type bodyState uint8

const (
	bodySize1      bodyState = iota // the first digit of chunk-size
	bodySize                        // the others, and the carriage return
	bodyExtension                   // chunk-ext, and the carriage return
	bodyLineFeed                    // the line feed of the chunk's line
	bodyData                        // chunk-data, or a declared body
	bodyDataReturn                  // the carriage return after chunk-data
	bodyDataFeed                    // the line feed
	bodyTrailers                    // trailer-section, and the empty line
)

// Reset makes it ready for the body that follows head h, which must be complete. Chunks with more than
// maxBody bytes together will be refused; a declared size the judge has refused already.
func (b *Body) Reset(h *Head, maxBody int64) {
	*b = Body{left: maxBody, chunked: h.Chunked}
	if !h.Chunked {
		b.state = bodyData
		b.size = h.ContentLength
		if b.size == 0 {
			b.verdict = Complete
		}
	}
}

// Fault says what is wrong. It is valid after Faulty, until Reset.
func (b *Body) Fault() Fault {
	if b.fault == nil {
		return Fault{}
	}
	return *b.fault
}

// Append takes the framing off src, the bytes that follow those it was given before, appends the
// body's bytes to dst, and returns the longer slice and how many bytes of src it has used.
//
// Incomplete means that all of src is used. After Complete the body is whole, and src[used:] begins the
// next request; a request without a body is complete at once, with an empty src too. After Faulty,
// src[used] is the byte that decided. Once complete or faulty the verdict stays, with nothing used.
//
// dst may be a piece of the array that src is in, if it ends where src starts or before: the body then
// moves to the front in place, and a piece that is there already is not copied. Otherwise dst grows
// as append does, with the bytes that have arrived and never with those that were announced.
func (b *Body) Append(dst, src []byte) (out []byte, used int, v Verdict) {
	i := 0
	for b.verdict == Incomplete && i < len(src) {
		if b.state != bodyData {
			i = b.frame(src, i)
			continue
		}
		n := int(min(b.size, int64(len(src)-i)))
		dst = appendInPlace(dst, src[i:i+n])
		i += n
		b.size -= int64(n)
		if b.size == 0 {
			b.state = bodyDataReturn
			if !b.chunked {
				b.verdict = Complete
			}
		}
	}
	return dst, i, b.verdict
}

// appendInPlace appends src, which is not empty, to dst; without a copy if src begins where dst ends.
func appendInPlace(dst, src []byte) []byte {
	if n := len(dst) + len(src); n <= cap(dst) {
		if longer := dst[:n]; &longer[len(dst)] == &src[0] {
			return longer
		}
	}
	return append(dst, src...)
}

// frame takes bytes of src from offset i on that are not the body's own, at least one, and returns the
// offset of the first byte that it has not taken.
func (b *Body) frame(src []byte, i int) int {
	switch b.state {
	case bodyLineFeed:
		if b.size == 0 {
			return b.expect(src, i, '\n', bodyTrailers, faultBareCR)
		}
		return b.expect(src, i, '\n', bodyData, faultBareCR)
	case bodyDataReturn:
		return b.expect(src, i, '\r', bodyDataFeed, faultChunkEnd)
	case bodyDataFeed:
		b.line = 0
		b.extensions = parameters{}
		return b.expect(src, i, '\n', bodySize1, faultChunkEnd)
	case bodyTrailers:
		return b.frameTrailers(src, i)
	}
	return b.frameLine(src, i)
}

// expect takes the one byte that may stand here.
func (b *Body) expect(src []byte, i int, c byte, next bodyState, fault *Fault) int {
	look(1)
	if src[i] != c {
		return b.refuse(i, fault)
	}
	b.state = next
	return i + 1
}

// frameLine takes bytes of the line before a chunk, through the carriage return.
func (b *Body) frameLine(src []byte, i int) int {
	for ; i < len(src); i++ {
		look(1)
		c := src[i]
		digit := b.state < bodyExtension && is(c, hexByte)
		switch {
		case digit:
			b.state = bodySize
		case b.state == bodySize1:
			return b.refuse(i, faultChunkSize)
		case c == '\r' && b.extensions.whole():
			b.state = bodyLineFeed
			b.left -= b.size
			return i + 1
		case b.extensions.take(c):
			b.state = bodyExtension
		case b.state == bodySize:
			return b.refuse(i, faultChunkSize)
		default:
			return b.refuse(i, faultChunkLine)
		}
		if b.line++; b.line > MaxChunkLine {
			return b.refuse(i, faultChunkLineLong)
		}
		if digit && !b.widen(c) {
			return b.refuse(i, faultChunksTooMuch)
		}
	}
	return i
}

// widen adds one digit to the chunk's size, and reports whether the body may be as large as that. More
// digits only make it larger, so that the first one too many is certain.
func (b *Body) widen(c byte) bool {
	if b.size > b.left>>4 {
		return false
	}
	b.size = b.size<<4 | int64(hexValue[c])
	return b.size <= b.left
}

// frameTrailers takes bytes of the trailer section (RFC 9112, 7.1.2).
func (b *Body) frameTrailers(src []byte, i int) int {
	// One byte more than is allowed: the fault is there, and not before.
	end := min(len(src), i+MaxTrailers+1-b.trailer)
	n, got := b.trailers.scan(src, i, end)
	b.trailer += n - i
	switch {
	case got == refused:
		return b.refuse(n, b.trailers.fault)
	case b.trailer > MaxTrailers:
		return b.refuse(n-1, faultTrailersLong)
	case got == allDone:
		b.verdict = Complete
	}
	return n
}

func (b *Body) refuse(i int, fault *Fault) int {
	b.fault = fault
	b.verdict = Faulty
	return i
}
