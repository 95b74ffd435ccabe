package main

import (
	"net/http"
	"strconv"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// headWriter writes the heads of answers, with the standard library's headers.
// It belongs to a loop; the map is cleared for each answer, not made anew.
type headWriter struct {
	header http.Header
	writer sliceWriter
}

func newHeadWriter() headWriter {
	return headWriter{header: make(http.Header)}
}

// appendHead appends the head of response to dst: the status line, the fields
// in alphabetical order (http.Header.Write sorts them), and the empty line.
func (c *conn) appendHead(dst []byte, response *http1.Response) []byte {
	w := &c.loop.headWriter
	header := w.header
	clear(header)
	header.Set("Server", "qps-ladder")
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	if http1.HasContentLength(response.Status) {
		header.Set("Content-Length", strconv.Itoa(response.ContentLength()))
	}
	switch {
	case response.Close:
		header.Set("Connection", "close")
	case response.KeepAlive:
		header.Set("Connection", "keep-alive")
	}
	setUnlessEmpty(header, "Allow", response.Allow)
	setUnlessEmpty(header, "Content-Type", response.ContentType)
	setUnlessEmpty(header, "ETag", response.ETag)
	setUnlessEmpty(header, "Last-Modified", response.LastModified)

	w.writer.b = append(dst, "HTTP/1.1 "...)
	w.writer.b = strconv.AppendInt(w.writer.b, int64(response.Status), 10)
	w.writer.b = append(w.writer.b, ' ')
	w.writer.b = append(w.writer.b, http1.StatusText(response.Status)...)
	w.writer.b = append(w.writer.b, "\r\n"...)
	header.Write(&w.writer) // a sliceWriter does not fail
	dst = append(w.writer.b, "\r\n"...)
	w.writer.b = nil
	return dst
}

func setUnlessEmpty(header http.Header, name, value string) {
	if value != "" {
		// Not Set: it would spell ETag as Etag.
		header[name] = []string{value}
	}
}

// A sliceWriter appends what is written to it.
type sliceWriter struct{ b []byte }

// Write implements io.Writer.
func (w *sliceWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}

// WriteString implements io.StringWriter, which http.Header.Write looks for.
func (w *sliceWriter) WriteString(s string) (int, error) {
	w.b = append(w.b, s...)
	return len(s), nil
}
