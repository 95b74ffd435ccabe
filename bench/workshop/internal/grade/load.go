package grade

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// load is what a figure is counted with: requests sent in turn over one connection.
type load struct {
	name     string
	requests []request
	pipeline int
	files    map[string]string // below /static/, text by name; nil means that there is no such folder
}

// served starts a server for the load with one worker, and the folder of its files. cleanUp ends both.
func (l load) served(start func(arguments ...string) (*Server, error)) (server *Server, cleanUp func(), err error) {
	arguments := []string{"-workers", "1"}
	remove := func() {}
	if l.files != nil {
		folder, err := filesIn(l.files)
		if err != nil {
			return nil, nil, err
		}
		arguments = append(arguments, "-static", folder)
		remove = func() { os.RemoveAll(folder) }
	}
	if server, err = start(arguments...); err != nil {
		remove()
		return nil, nil, err
	}
	return server, func() { server.Kill(); remove() }, nil
}

// filesIn makes a folder with these files; a name may have folders in it.
func filesIn(files map[string]string) (folder string, err error) {
	if folder, err = os.MkdirTemp("", "ladder-files-"); err != nil {
		return "", err
	}
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err = os.MkdirAll(filepath.Dir(path), 0o777); err == nil {
			err = os.WriteFile(path, []byte(text), 0o666)
		}
		if err != nil {
			os.RemoveAll(folder)
			return "", err
		}
	}
	return folder, nil
}

// request is one of a load, and the body of its answer.
type request struct{ send, body string }

// loads are those that the bench does not have.
var loads = map[string]load{
	// Types of the same length, one after the other.
	"changing types": {requests: []request{
		{echoRequest("text/plain", "changing"), "changing"}, {echoRequest("text/troff", "changing"), "changing"},
		{echoRequest("font/woff2", "changing"), "changing"}, {echoRequest("image/jpeg", "changing"), "changing"},
	}},
	"users":       {requests: users(40)},
	"small files": fileLoad(1_000, 20_000),
	"large files": fileLoad(60_000, 120_000),
}

// fileLoad asks for files whose names and sizes, between these, nobody knows beforehand.
func fileLoad(least, most int) load {
	l := load{files: map[string]string{}}
	for range 8 {
		name, text := strings.ToLower(rand.Text()), fileText(least+mathrand.IntN(most-least))
		l.files[name] = text
		l.requests = append(l.requests, request{fileRequest(name), text})
	}
	return l
}

// fileText is text of that size in which no long piece stands twice, so that none can be in the place of another.
func fileText(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%08x,", uint32(i)*2654435761)
	}
	return b.String()[:size]
}

func users(n int) (all []request) {
	for i := range n {
		id := i * 7919 % 10007
		all = append(all, request{fmt.Sprintf("GET /users/%d HTTP/1.1\r\nHost: a\r\n\r\n", id), fmt.Sprintf(`{"id":"%d"}`, id)})
	}
	return all
}

func loadByName(name string) (load, error) {
	if l, ok := loads[name]; ok {
		l.name, l.pipeline = name, 1
		return l, nil
	}
	w, err := workload.ByName(name)
	if err != nil {
		return load{}, err
	}
	return load{name: name, requests: []request{{string(w.Request), string(w.Body)}}, pipeline: w.Pipeline}, nil
}
