package main

import (
	"os"
	"strings"

	"github.com/qps-ladder/qps-ladder/shared/app"
	"github.com/qps-ladder/qps-ladder/shared/http1"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
	"github.com/qps-ladder/qps-ladder/shared/serve"
)

// maxFile is up to which size a file is served. For a larger one the app says
// that it is too large.
const maxFile = 64 << 20

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
	root    *os.Root // nil if the folder cannot be opened
	folder  folder
	opened  file
}

func newFiles(config *serve.Config) *files {
	f := &files{app: config.App, enabled: config.Static != ""}
	if f.enabled {
		f.root, _ = os.OpenRoot(config.Static)
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
	real, info, ok := app.FindFile(f.root, name)
	if !ok || info.Size() > maxFile {
		f.app.Serve(request, response)
		return
	}
	descriptor, size, changed, ok := f.folder.open(real)
	if !ok {
		response.Error(404) // it has gone in between
		return
	}
	app.FileHead(request, response, name, changed, size)
	if response.Status == 412 { // an answer of its own, and no file
		closeFile(descriptor)
		return
	}
	f.opened = file{descriptor: descriptor, left: size, open: true}
	if response.Status == 304 {
		f.opened.left = 0
	}
}
