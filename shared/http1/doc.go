// Package http1 is the contract between a server and the application, and the one judge of what
// may pass between them: the limits and the grammar of HTTP/1.1 (RFC 9110, RFC 9112) and of the
// addresses in it (RFC 3986).
//
// [Judge] reads a request's head and [Body] its body. Both take the bytes as they arrive, resume
// where they stopped, and give the same answer however the bytes were cut: the first fault in
// byte order decides, at the byte that makes it certain. Neither allocates, apart from a body
// that outgrows the slice it is appended to.
//
// At one byte, grammar comes before limits: a byte that may not stand where it stands is 400, even
// if it is also the first one past a limit. What a well-formed head means is judged at its last
// byte, in this order: version (505), Host (400), framing (400), transfer coding (501),
// expectation (417), declared size (413), CONNECT (405).
//
// Nothing in this package may be used by two goroutines at once, except what is constant.
//
// Neither sockets nor deadlines belong here: they are the stages' own. Nor do routes: package app has them.
package http1

// The limits of a request. The limit itself passes; the first byte beyond it is the fault.
const (
	// MaxHead is the most bytes a head may have, from the first byte of the request line through
	// the empty line that ends it. An empty line before the request line does not count. Beyond: 431.
	MaxHead = 8192
	// MaxHeaders is the most field lines a head may have. Beyond: 431.
	MaxHeaders = 64
	// MaxTarget is the most bytes a request target may have. Beyond: 414.
	MaxTarget = 4096
	// MaxChunkLine is the most bytes the line before a chunk may have, without its CRLF. Beyond: 400.
	MaxChunkLine = 256
	// MaxTrailers is the most bytes the trailer section may have, from the end of the last chunk's
	// line through the empty line that ends the body. Beyond: 431.
	MaxTrailers = 8192
)

// Verdict is what a scanner makes of the bytes it has seen.
type Verdict uint8

const (
	// Incomplete: no fault so far, and more bytes are needed.
	Incomplete Verdict = iota
	// Complete: all there, and valid.
	Complete
	// Faulty: no bytes that follow can make it valid.
	Faulty
)

// String gives the verdict's name in lower case.
func (v Verdict) String() string {
	switch v {
	case Incomplete:
		return "incomplete"
	case Complete:
		return "complete"
	case Faulty:
		return "faulty"
	}
	return "unknown"
}
