package http1

import "time"

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
