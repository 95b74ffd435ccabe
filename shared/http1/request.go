package http1

import "unsafe"

// Headers gives a request's header fields by name.
type Headers interface {
	// Get returns the first value of the field with this canonical name ("Content-Type"), without
	// the blanks around it, or "" if there is none. Host and Transfer-Encoding are never there: the
	// first is Request.Host, the second is about the connection and not the request.
	Get(canonicalName string) string
	// Values returns the value of each line of the field, in the order of the request, each as Get
	// returns it; none if there is no such field. A line may have no value: "" is one of the
	// values. For a field that is a list, all lines together are the list (RFC 9110, 5.3). The
	// slice is the request's, as the strings are: not to be changed, nor kept when the handler
	// returns.
	Values(canonicalName string) []string
}

// Request is a judged request, as a handler gets it.
//
// Its strings and its body may be views into a connection's read buffer, which the next request
// overwrites: a handler must not keep them after it returns. strings.Clone makes a string to keep.
type Request struct {
	// Method is case-sensitive (RFC 9110, 9.1).
	Method string
	// Target is the request target as it was sent.
	Target string
	// Path is decoded once and never empty: "/" for an absolute-form without a path, "*" for
	// AsteriskForm.
	Path string
	// Query is what follows the question mark, not decoded; "" if there is none.
	Query string
	// Host is the authority that counts (see Head.Host).
	Host string
	// Minor is 0 for HTTP/1.0, else 1.
	Minor uint8
	// Body is the whole body, without its framing; empty if there is none.
	Body []byte
	// Headers holds the header fields; nil means none.
	Headers Headers
}

// Header returns the first value of the field with this canonical name ("Content-Type"), or "".
func (r *Request) Header(name string) string {
	if r.Headers == nil {
		return ""
	}
	return r.Headers.Get(name)
}

// Values returns the value of each line of the field with this canonical name, as Headers.Values
// does.
func (r *Request) Values(name string) []string {
	if r.Headers == nil {
		return nil
	}
	return r.Headers.Values(name)
}

// View is b as a string that shares its memory. It is valid as long as nobody
// writes to b: for a view into a read buffer, until the request is answered.
// strings.Clone makes a string to keep.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
