package main

import (
	"net/http"
	"strconv"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// headWriter writes the heads of answers, straight into the buffer that is sent.
// It belongs to a loop.
type headWriter struct {
	date      []byte        // the Date field, made once a second
	dateUntil time.Duration // when it becomes wrong, by the loop's clock
}

// newHeadWriter makes one without a date: the first answer makes it.
func newHeadWriter() headWriter { return headWriter{} }

// appendHead appends the head of response to dst: the status line, the fields
// in alphabetical order, and the empty line.
func (c *conn) appendHead(dst []byte, response *http1.Response) []byte {
	w := &c.loop.headWriter
	if response.Status == 200 {
		dst = append(dst, "HTTP/1.1 200 OK\r\n"...)
	} else {
		dst = append(dst, "HTTP/1.1 "...)
		dst = strconv.AppendInt(dst, int64(response.Status), 10)
		dst = append(dst, ' ')
		dst = append(dst, http1.StatusText(response.Status)...)
		dst = append(dst, "\r\n"...)
	}
	dst = appendUnlessEmpty(dst, "Allow: ", response.Allow)
	switch {
	case response.Close:
		dst = append(dst, "Connection: close\r\n"...)
	case response.KeepAlive:
		dst = append(dst, "Connection: keep-alive\r\n"...)
	}
	if http1.HasContentLength(response.Status) {
		dst = append(dst, "Content-Length: "...)
		dst = strconv.AppendInt(dst, int64(response.ContentLength()), 10)
		dst = append(dst, "\r\n"...)
	}
	dst = appendUnlessEmpty(dst, "Content-Type: ", response.ContentType)
	if c.loop.now >= w.dateUntil {
		w.renewDate(c.loop.now)
	}
	dst = append(dst, w.date...)
	dst = appendUnlessEmpty(dst, "ETag: ", response.ETag)
	dst = appendUnlessEmpty(dst, "Last-Modified: ", response.LastModified)
	return append(dst, "Server: qps-ladder\r\n\r\n"...)
}

func appendUnlessEmpty(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, name...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// renewDate formats the date. It is right until the next full second, by the
// clock that the loop reads once a turn.
func (w *headWriter) renewDate(now time.Duration) {
	wall := time.Now().UTC()
	w.date = append(w.date[:0], "Date: "...)
	w.date = wall.AppendFormat(w.date, http.TimeFormat)
	w.date = append(w.date, "\r\n"...)
	w.dateUntil = now + time.Second - time.Duration(wall.Nanosecond())
}
