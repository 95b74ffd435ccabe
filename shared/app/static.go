package app

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// maxLinks is how many symbolic links a name may lead through, as in the kernel:
// path_resolution(7).
const maxLinks = 40

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

// static serves the files of one folder. What it looks at and reads, it does on the loop's own
// thread: a disk that is slow holds up that loop.
type static struct {
	root   *os.Root // nil if the folder cannot be opened
	memory *fileMemory
}

func openStatic(folder string, memory int64) *static {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return &static{}
	}
	return &static{root: root, memory: newFileMemory(memory, root.OpenFile)}
}

func (f *static) close() {
	if f.root != nil {
		f.root.Close()
	}
}

// serve answers with the file of that name, "index.html" when the name is empty or ends in a slash.
// A file that is not there, or not to be seen, is 404. For HEAD, and when a condition ends the
// matter (FileHead), the file is looked at but neither opened nor read.
func (f *static) serve(name string, q *http1.Request, s *http1.Response) {
	if name == "" || name[len(name)-1] == '/' {
		name += "index.html"
	}
	for range 2 { // once more if the file changes under our hands
		real, info, ok := FindFile(f.root, name)
		if !ok {
			s.Error(404)
			return
		}
		size := info.Size()
		if size > f.memory.most {
			tooLarge(s, size, f.memory.most)
			return
		}
		FileHead(q, s, name, info.ModTime(), size)
		if s.Status != 200 {
			return
		}
		if q.Method == "HEAD" {
			s.Length = int(size)
			return
		}
		if s.Body, ok = f.memory.read(real, info); ok {
			s.Stable = true
			return
		}
		s.Reset()
	}
	s.Error(500)
}

// tooLarge says that a file is larger than what may be held of all files. That is 500 (RFC 9110,
// 15.6.1), with what is to be done as its content (RFC 9110, 15.6): the fault is the server's and
// lasts. 413 is about what a client sends, 503 would pass by itself, 501 is about methods, and 507
// is WebDAV's, about storing. Conditions do not count for it (RFC 9110, 13.2.1).
func tooLarge(s *http1.Response, size, most int64) {
	s.Error(500)
	s.Body = fmt.Appendf(nil, "500 Internal Server Error\nThis file has %d bytes, and this server holds %d of its files in memory: it needs -static-memory %d or more.\n",
		size, most, size)
}

// FileHead writes into s what the answer to q says of a file, apart from its body: status 200 with
// the content type that goes with the name; or, when one of q's conditions says so (RFC 9110,
// 13.1), 304 with nothing more to come, or the whole of a 412. changed is when the file was last
// modified, size its bytes. It keeps nothing of q; any number of goroutines may call it.
func FileHead(q *http1.Request, s *http1.Response, name string, changed time.Time, size int64) {
	etag := `"` + strconv.FormatInt(changed.UnixNano(), 36) + "-" + strconv.FormatInt(size, 36) + `"`
	// A date in the future becomes that of the answer (RFC 9110, 8.8.2.1).
	if now := time.Now(); changed.After(now) {
		changed = now
	}
	modified := changed.UTC().Truncate(time.Second)
	if s.Status = precondition(q, etag, modified); s.Status == 412 {
		s.Error(412)
		return
	}
	s.ETag = etag
	s.LastModified = modified.Format(dateFormats[0])
	if s.Status == 304 {
		return
	}
	s.ContentType = octetStream
	if known, ok := contentTypes[strings.ToLower(path.Ext(name))]; ok {
		s.ContentType = known
	}
}

// FindFile says which file a name below /static/ means: a plain file inside the folder, which root
// has open. It opens nothing. real is the name without symbolic links, which are followed; info is
// the file's. ok is false if there is no such file, or if it is not to be seen: a segment of the
// name is empty or begins with a dot, or a link leads to such a segment. root may be nil; any
// number of goroutines may call it.
func FindFile(root *os.Root, name string) (real string, info fs.FileInfo, ok bool) {
	if root == nil {
		return "", nil, false
	}
	rest := strings.Split(name, "/") // the segments still to be walked
	for _, segment := range rest {
		if segment == "" || segment[0] == '.' {
			return "", nil, false
		}
	}
	var walked []string // those behind us: no link is among them
	for links := 0; len(rest) > 0; {
		segment := rest[0]
		rest = rest[1:]
		switch {
		case segment == "" || segment == ".": // of a link: they change nothing
			continue
		case segment == "..":
			if len(walked) == 0 {
				return "", nil, false
			}
			walked = walked[:len(walked)-1]
			info = nil // a folder, and no file to serve
			continue
		case segment[0] == '.':
			return "", nil, false
		}
		real = strings.Join(append(walked, segment), "/")
		var err error
		if info, err = root.Lstat(real); err != nil {
			return "", nil, false
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := root.Readlink(real)
			if links++; err != nil || links > maxLinks || strings.HasPrefix(target, "/") {
				return "", nil, false
			}
			rest = slices.Concat(strings.Split(target, "/"), rest)
		case info.IsDir():
			walked = append(walked, segment)
		case len(rest) > 0:
			return "", nil, false // no folder, though something is to be below it
		}
	}
	return real, info, info != nil && info.Mode().IsRegular()
}
