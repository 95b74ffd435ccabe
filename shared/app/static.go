package app

import (
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// maxFile is the size up to which a file is served: an answer is held in memory as a whole.
const maxFile = 64 << 20

// timeFormat is the form of a date in HTTP (RFC 9110, 5.6.7), for a time in UTC.
const timeFormat = "Mon, 02 Jan 2006 15:04:05 GMT"

// contentTypes is a table of our own, since the system's differs from machine to machine.
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

// static serves the files of one folder. A file is read anew for every request, on the loop's own
// thread: a disk that is slow holds up that loop.
type static struct {
	root *os.Root // nil if the folder cannot be opened
}

func openStatic(folder string) *static {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return &static{}
	}
	return &static{root: root}
}

func (f *static) close() {
	if f.root != nil {
		f.root.Close()
	}
}

// serve answers with the file of that name, "index.html" when the name is empty or ends in a slash.
// Whatever is no plain file inside the folder is 404, and so are names that begin with a dot. A
// client that has the file already gets 304 (RFC 9110, 13.1).
func (f *static) serve(name string, q *http1.Request, s *http1.Response) {
	if name == "" || name[len(name)-1] == '/' {
		name += "index.html"
	}
	file, info := f.open(name)
	if file == nil {
		s.Error(404)
		return
	}
	defer file.Close()
	FileHead(q, s, name, info.ModTime(), info.Size())
	if s.Status == 304 {
		return
	}
	// The slice is made for this answer, so that nobody writes to it later.
	body := make([]byte, info.Size())
	if _, err := io.ReadFull(file, body); err != nil {
		s.Reset()
		s.Error(500) // it shrank under our hands, or the disk failed
		return
	}
	s.Body, s.Stable = body, true
}

// FileHead writes into s what the answer to q says of a file, apart from its body: status 200 with the content type
// that goes with the name; or 304, when the client has the file already (RFC 9110, 13.1). changed is when the file was
// last modified, size its bytes. It keeps nothing of q; any number of goroutines may call it.
func FileHead(q *http1.Request, s *http1.Response, name string, changed time.Time, size int64) {
	modified := changed.UTC().Truncate(time.Second)
	s.ETag = `"` + strconv.FormatInt(changed.UnixNano(), 36) + "-" + strconv.FormatInt(size, 36) + `"`
	s.LastModified = modified.Format(timeFormat)
	if unchanged(q, s.ETag, modified) {
		s.Status = 304
		return
	}
	s.Status = 200
	s.ContentType = octetStream
	if known, ok := contentTypes[strings.ToLower(path.Ext(name))]; ok {
		s.ContentType = known
	}
}

// open opens a file that may be served; nil if there is none. The name stays inside the folder:
// os.Root sees to it, symbolic links included.
func (f *static) open(name string) (*os.File, fs.FileInfo) {
	if f.root == nil || HiddenFile(name) {
		return nil, nil
	}
	// Looking before opening keeps off a named pipe, which would block the loop until someone writes.
	if info, err := f.root.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, nil
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		file.Close()
		return nil, nil
	}
	return file, info
}

// HiddenFile says whether a segment of the name is empty or begins with a dot, which "." and ".." do too: such a file
// is not served.
func HiddenFile(name string) bool {
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || segment[0] == '.' {
			return true
		}
	}
	return false
}

// unchanged says whether the client's copy is as good as the file. If-None-Match decides alone when it is
// there (RFC 9110, 13.2.2).
func unchanged(q *http1.Request, etag string, modified time.Time) bool {
	if tags := q.Header("If-None-Match"); tags != "" {
		for tag := range strings.SplitSeq(tags, ",") {
			tag = strings.Trim(tag, " \t")
			if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
		return false
	}
	since, err := time.Parse(timeFormat, q.Header("If-Modified-Since"))
	return err == nil && !modified.After(since)
}
