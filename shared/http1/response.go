package http1

import (
	"bytes"
	"strconv"
	"time"
)

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

// HasContentLength reports whether an answer with this status code carries a
// Content-Length: all but 1xx, 204 (RFC 9110, 8.6) and 304, whose length would
// be that of a body that is not made.
func HasContentLength(status int) bool {
	return status >= 200 && status != 204 && status != 304
}

// IsHead reports whether b, the beginning of a request that may have been
// refused before its end, asks for no body in the answer (RFC 9110, 9.3.2).
func IsHead(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimPrefix(b, []byte("\r\n")), []byte("HEAD "))
}

// statusText has the reason phrases of RFC 9110, 15 and of RFC 6585 (428, 429, 431, 511).
var statusText = [600]string{
	100: "Continue",
	101: "Switching Protocols",
	200: "OK",
	201: "Created",
	202: "Accepted",
	203: "Non-Authoritative Information",
	204: "No Content",
	205: "Reset Content",
	206: "Partial Content",
	300: "Multiple Choices",
	301: "Moved Permanently",
	302: "Found",
	303: "See Other",
	304: "Not Modified",
	305: "Use Proxy",
	307: "Temporary Redirect",
	308: "Permanent Redirect",
	400: "Bad Request",
	401: "Unauthorized",
	402: "Payment Required",
	403: "Forbidden",
	404: "Not Found",
	405: "Method Not Allowed",
	406: "Not Acceptable",
	407: "Proxy Authentication Required",
	408: "Request Timeout",
	409: "Conflict",
	410: "Gone",
	411: "Length Required",
	412: "Precondition Failed",
	413: "Content Too Large",
	414: "URI Too Long",
	415: "Unsupported Media Type",
	416: "Range Not Satisfiable",
	417: "Expectation Failed",
	421: "Misdirected Request",
	422: "Unprocessable Content",
	426: "Upgrade Required",
	428: "Precondition Required",
	429: "Too Many Requests",
	431: "Request Header Fields Too Large",
	500: "Internal Server Error",
	501: "Not Implemented",
	502: "Bad Gateway",
	503: "Service Unavailable",
	504: "Gateway Timeout",
	505: "HTTP Version Not Supported",
	511: "Network Authentication Required",
}

// errorBodies has the body of Response.Error for each status that has a phrase.
var errorBodies = func() (bodies [600][]byte) {
	for code, text := range statusText {
		if text != "" {
			bodies[code] = []byte(strconv.Itoa(code) + " " + text + "\n")
		}
	}
	return bodies
}()

// StatusText is the reason phrase of a status code, "Not Found" for 404; "" if it has none.
func StatusText(code int) string {
	if code < 0 || code >= len(statusText) {
		return ""
	}
	return statusText[code]
}

// errorBody is the constant body of a status; one without a phrase is named by its number alone.
func errorBody(code int) []byte {
	if code >= 0 && code < len(errorBodies) && errorBodies[code] != nil {
		return errorBodies[code]
	}
	return []byte(strconv.Itoa(code) + "\n")
}

// AppendNoRoom appends the whole answer for a client that there is no room for: 503, which closes.
// input is the beginning of its request, if it has sent any: HEAD gets no body. It is what every
// stage would answer, made where none of them has taken the connection.
func AppendNoRoom(dst, input []byte) []byte {
	dst = append(dst, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 24\r\nContent-Type: "+TextPlain+"\r\nDate: "...)
	dst = time.Now().UTC().AppendFormat(dst, "Mon, 02 Jan 2006 15:04:05 GMT")
	dst = append(dst, "\r\nServer: "+ServerName+"\r\n\r\n"...)
	if IsHead(input) {
		return dst
	}
	return append(dst, "503 Service Unavailable\n"...)
}
