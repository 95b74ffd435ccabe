package http1

// ServerName is the Server field of every answer.
const ServerName = "qps-ladder"

// TextPlain is the content type of error bodies and of plain text.
const TextPlain = "text/plain; charset=utf-8"

// Continue is the whole interim answer that asks a client for its body (RFC 9110, 15.2.1). It is
// constant: nobody may write to it.
var Continue = []byte("HTTP/1.1 100 Continue\r\n\r\n")

// Response is a handler's answer. A server sends the status line "HTTP/1.1 200 OK" and then, as far
// as they are set, these fields in alphabetical order: Allow, Connection, Content-Length,
// Content-Type, Date, ETag, Last-Modified, Server. 204 and 304 carry no Content-Length
// (RFC 9110, 8.6).
type Response struct {
	// Status is the status code.
	Status int
	// Allow, ContentType, ETag and LastModified are the fields of these names; "" means none.
	Allow, ContentType, ETag, LastModified string
	// Body is the body. A server answers HEAD without it, but with its length.
	Body []byte
	// Length is the length of the body for an answer to HEAD that was made without one, in bytes.
	Length int
	// Stable says that nobody ever writes to Body again, so it may be sent by reference at any time.
	// A body that is not stable is a view: it lives until the request's bytes are overwritten, and is
	// copied if it has to wait.
	Stable bool
	// Close says that the connection is closed after this answer.
	Close bool
	// KeepAlive says that the answer has "Connection: keep-alive": for an HTTP/1.0 client, which would
	// otherwise take it that the connection closes (RFC 9112, 9.3). The server sets it, not the handler.
	KeepAlive bool
	// Scratch is room that a handler may append a body to, as r.Scratch = append(r.Scratch, …) and
	// r.Body = r.Scratch. It is used again for the next answer, so such a body is a view.
	Scratch []byte
}

// Reset empties the response for the next answer, and keeps the room of Scratch.
func (r *Response) Reset() {
	*r = Response{Scratch: r.Scratch[:0]}
}

// ContentLength is the value of the answer's Content-Length: how many bytes its body has, or would
// have (RFC 9110, 8.6).
func (r *Response) ContentLength() int { return max(len(r.Body), r.Length) }

// Error makes r the short answer of its status, "404 Not Found\n" as plain text. The body is
// stable; for a status without a reason phrase it is made anew. Fields other than ContentType stay.
func (r *Response) Error(status int) {
	r.Status = status
	r.ContentType = TextPlain
	r.Body = errorBody(status)
	r.Stable = true
}
