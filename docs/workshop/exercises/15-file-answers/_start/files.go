package main

import (
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/http1"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
	"github.com/qps-ladder/qps-ladder/shared/serve"
)

// maxFile is up to which size a file is served, as by the app.
const maxFile = 64 << 20

// timeFormat is the form of a date in HTTP (RFC 9110, 5.6.7), for a time in UTC.
const timeFormat = "Mon, 02 Jan 2006 15:04:05 GMT"

// A file is an open file that has still to be sent, from offset on. Whoever has
// it closes it, once; the zero value is none.
type file struct {
	descriptor int
	offset     int64
	left       int64 // bytes still to be sent, of those that the head announces
	open       bool
}

// close gives the descriptor back, and leaves no file. Without one it does
// nothing.
func (f *file) close(c *netpoll.Counters) {
	if f.open {
		netpoll.Close(c, f.descriptor)
	}
	*f = file{}
}

// files stands between a loop and the app, and answers what is below /static/
// as the app does, byte for byte. But it does not read a file: it opens it, and
// leaves it to the connection. It belongs to a loop.
type files struct {
	app     serve.Handler
	enabled bool
	folder  folder
	opened  file
}

func newFiles(config *serve.Config) *files {
	f := &files{app: config.App, enabled: config.Static != ""}
	if f.enabled {
		f.folder = openFolder(config.Static)
	}
	return f
}

// take hands over the file that the last call of Serve has opened, if it has
// opened one: it is the caller's from here on.
func (f *files) take() file {
	taken := f.opened
	f.opened = file{}
	return taken
}

// Serve implements serve.Handler. An answer whose body is a file has no Body;
// take has the file.
func (f *files) Serve(request *http1.Request, response *http1.Response) {
	name, ok := strings.CutPrefix(request.Path, "/static/")
	if !ok || !f.enabled || request.Method != "GET" && request.Method != "HEAD" {
		f.app.Serve(request, response)
		return
	}
	if name == "" || name[len(name)-1] == '/' {
		name += "index.html"
	}
	descriptor, size, changed, ok := -1, int64(0), time.Time{}, false
	if !hidden(name) {
		descriptor, size, changed, ok = f.folder.open(name)
	}
	if !ok {
		response.Error(404)
		return
	}
	f.opened = file{descriptor: descriptor, left: size, open: true}
	modified := changed.UTC().Truncate(time.Second)
	response.ETag = `"` + strconv.FormatInt(changed.UnixNano(), 36) + "-" + strconv.FormatInt(size, 36) + `"`
	response.LastModified = modified.Format(timeFormat)
	if unchanged(request, response.ETag, modified) {
		response.Status = 304
		f.opened.left = 0
		return
	}
	response.Status = 200
	response.ContentType = "application/octet-stream"
	if known, ok := contentTypes[strings.ToLower(path.Ext(name))]; ok {
		response.ContentType = known
	}
}

// hidden says whether a segment of the name is empty or begins with a dot, which
// "." and ".." do too.
func hidden(name string) bool {
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || segment[0] == '.' {
			return true
		}
	}
	return false
}

// unchanged says whether the client's copy is as good as the file (RFC 9110,
// 13.2.2).
func unchanged(request *http1.Request, etag string, modified time.Time) bool {
	if tags := request.Header("If-None-Match"); tags != "" {
		for tag := range strings.SplitSeq(tags, ",") {
			tag = strings.Trim(tag, " \t")
			if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
		return false
	}
	since, err := time.Parse(timeFormat, request.Header("If-Modified-Since"))
	return err == nil && !modified.After(since)
}

// contentTypes are the app's.
var contentTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".csv":   "text/csv; charset=utf-8",
	".gif":   "image/gif",
	".html":  "text/html; charset=utf-8",
	".ico":   "image/vnd.microsoft.icon",
	".jpeg":  "image/jpeg",
	".jpg":   "image/jpeg",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json",
	".md":    "text/markdown; charset=utf-8",
	".mjs":   "text/javascript; charset=utf-8",
	".pdf":   "application/pdf",
	".png":   "image/png",
	".svg":   "image/svg+xml",
	".txt":   http1.TextPlain,
	".wasm":  "application/wasm",
	".webp":  "image/webp",
	".woff2": "font/woff2",
	".xml":   "application/xml",
}
