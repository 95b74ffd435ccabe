package http1

// AllowedMethods is the Allow field of an answer about the server as a whole (RFC 9110, 10.2.1):
// every method that some route takes, in alphabetical order.
const AllowedMethods = "GET, HEAD, OPTIONS, POST"

// Fault says why a request is refused. After every fault the connection is closed, since nobody
// knows where the next request would begin.
type Fault struct {
	// Status is the answer's status code, 400 to 505.
	Status int
	// Reason is one constant line for people; it is not sent.
	Reason string
	// Allow is the answer's Allow field, given with 405 only.
	Allow string
}

// Response makes r the answer to the fault: a short text body, the Allow field, and Close set.
func (f Fault) Response(r *Response) {
	r.Error(f.Status)
	r.Allow = f.Allow
	r.Close = true
}

// Every fault there is. Scanners hand out pointers to these, so that a fault costs no allocation.
var (
	// At the byte: grammar.
	faultBareCR        = &Fault{Status: 400, Reason: "carriage return without a line feed"}
	faultBareLF        = &Fault{Status: 400, Reason: "line feed without a carriage return"}
	faultEmptyLines    = &Fault{Status: 400, Reason: "more than one empty line before the request line"}
	faultMethod        = &Fault{Status: 400, Reason: "the method is not a token"}
	faultNoTarget      = &Fault{Status: 400, Reason: "the request target is empty or begins like none of the four forms"}
	faultAsterisk      = &Fault{Status: 400, Reason: "the request target * is for OPTIONS alone"}
	faultScheme        = &Fault{Status: 400, Reason: "the request target is not a URI with an authority"}
	faultAuthority     = &Fault{Status: 400, Reason: "the authority in the request target is not valid"}
	faultTargetByte    = &Fault{Status: 400, Reason: "a byte in the request target that RFC 3986 does not allow there"}
	faultEscape        = &Fault{Status: 400, Reason: "a percent sign in the request target without two hexadecimal digits"}
	faultVersion       = &Fault{Status: 400, Reason: "the HTTP version is malformed"}
	faultBlankFirst    = &Fault{Status: 400, Reason: "a blank at the start of a field line"}
	faultName          = &Fault{Status: 400, Reason: "a field name is empty or not a token"}
	faultNoColon       = &Fault{Status: 400, Reason: "a field line without a colon"}
	faultBlankInName   = &Fault{Status: 400, Reason: "a blank before a field's colon"}
	faultValue         = &Fault{Status: 400, Reason: "a control byte in a field value"}
	faultChunkSize     = &Fault{Status: 400, Reason: "the chunk size is not hexadecimal"}
	faultChunkLine     = &Fault{Status: 400, Reason: "a byte in a chunk's line that does not belong there"}
	faultChunkLineLong = &Fault{Status: 400, Reason: "the line before a chunk is too long"}
	faultChunkEnd      = &Fault{Status: 400, Reason: "a chunk's data is not followed by CRLF"}

	// At the byte: limits.
	faultTargetLong    = &Fault{Status: 414, Reason: "the request target is too long"}
	faultHeadLong      = &Fault{Status: 431, Reason: "the head is too long"}
	faultHeaders       = &Fault{Status: 431, Reason: "too many header fields"}
	faultTrailersLong  = &Fault{Status: 431, Reason: "the trailer section is too long"}
	faultChunksTooMuch = &Fault{Status: 413, Reason: "the chunks hold more than is accepted"}

	// At the end of the head: meaning.
	faultMajor        = &Fault{Status: 505, Reason: "the HTTP version is not 1"}
	faultNoHost       = &Fault{Status: 400, Reason: "no Host field"}
	faultHosts        = &Fault{Status: 400, Reason: "more than one Host field"}
	faultHost         = &Fault{Status: 400, Reason: "the Host field is not a host with an optional port"}
	faultLength       = &Fault{Status: 400, Reason: "the Content-Length is not one number below 2^63"}
	faultLengths      = &Fault{Status: 400, Reason: "Content-Length fields that differ"}
	faultBothFramings = &Fault{Status: 400, Reason: "Content-Length beside Transfer-Encoding"}
	faultCodingOld    = &Fault{Status: 400, Reason: "Transfer-Encoding in HTTP/1.0"}
	faultCodings      = &Fault{Status: 400, Reason: "the Transfer-Encoding is malformed, or chunked is not its last coding"}
	faultCoding       = &Fault{Status: 501, Reason: "a transfer coding other than chunked"}
	faultExpectation  = &Fault{Status: 417, Reason: "an expectation other than 100-continue"}
	faultDeclaredSize = &Fault{Status: 413, Reason: "the declared body is larger than is accepted"}
	faultConnect      = &Fault{Status: 405, Reason: "CONNECT is for proxies", Allow: AllowedMethods}
)
