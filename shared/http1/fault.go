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
