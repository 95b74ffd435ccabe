package http1

import "bytes"

var headMethod = []byte("HEAD ")

// HasContentLength reports whether an answer with this status code carries a
// Content-Length: all but 1xx, 204 (RFC 9110, 8.6) and 304, whose length would
// be that of a body that is not made.
func HasContentLength(status int) bool {
	return status >= 200 && status != 204 && status != 304
}

// IsHead reports whether b, the beginning of a request that may have been
// refused before its end, asks for no body in the answer (RFC 9110, 9.3.2).
func IsHead(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimPrefix(b, []byte("\r\n")), headMethod)
}
