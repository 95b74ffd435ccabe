package grade

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// load is what a figure is counted with: requests sent in turn over one connection.
type load struct {
	name     string
	requests []request
	pipeline int
	socket   bool              // they are messages over a WebSocket, which come back
	files    map[string]string // below /static/, text by name; nil means that there is no such folder
}

// served starts a server for the load, and the folder of its files. cleanUp ends both.
func (l load) served(workers int, start func(arguments ...string) (*Server, error)) (server *Server, cleanUp func(), err error) {
	arguments := []string{"-workers", strconv.Itoa(workers)}
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

// loads are those that the bench does not have. What can be drawn is.
var loads = map[string]func(*rand.Rand) load{
	// Types of the same length, one after the other.
	"changing types": func(random *rand.Rand) load {
		var l load
		for i, n := 0, 2+random.IntN(20); i < 4; i++ {
			kind, body := "text/"+letters(random, n), letters(random, 1+random.IntN(200))
			l.requests = append(l.requests, request{echoRequest(kind, body), body})
		}
		return l
	},
	"users":        func(random *rand.Rand) load { return load{requests: users(random, differentRequests)} },
	"any requests": func(random *rand.Rand) load { return load{requests: anyRequests(random, differentRequests)} },
	"small files":  func(random *rand.Rand) load { return fileLoad(random, 1_000, 20_000) },
	"large files":  func(random *rand.Rand) load { return fileLoad(random, 60_000, 120_000) },
}

// differentRequests is how many there are before the first comes again: more than a server counts, so that none is
// answered from what was kept of the one before.
const differentRequests = 4096

// anyRequests are of all routes that need nothing else, in any form, with any fields.
func anyRequests(random *rand.Rand, n int) (all []request) {
	for range n {
		id := strconv.Itoa(random.IntN(1_000_000))
		host := letters(random, 1+random.IntN(20))
		var fields strings.Builder
		for range random.IntN(12) {
			fmt.Fprintf(&fields, "X-%s: %s\r\n", letters(random, 1+random.IntN(12)), letters(random, random.IntN(40)))
		}
		query := []string{"", "?" + letters(random, 8)}[random.IntN(2)]
		get := func(path, body string) request {
			return request{"GET " + path + query + " HTTP/1.1\r\nHost: " + host + "\r\n" + fields.String() + "\r\n", body}
		}
		body := letters(random, 1+random.IntN(3000))
		all = append(all, []request{
			get("/", greeting), get("/api/status", `{"status":"ok"}`),
			get("/users/"+id, `{"id":"`+id+`"}`), get("http://"+host+"/users/"+id, `{"id":"`+id+`"}`),
			{fmt.Sprintf("POST /api/echo%s HTTP/1.1\r\n%sContent-Type: text/%s\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s",
				query, fields.String(), host, host, len(body), body), body},
		}[random.IntN(5)])
	}
	return all
}

func letters(random *rand.Rand, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('a' + random.IntN(26))
	}
	return string(text)
}

// fileLoad asks for files whose names and sizes, between these, nobody knows beforehand.
func fileLoad(random *rand.Rand, least, most int) load {
	l := load{files: map[string]string{}}
	for range 8 {
		name, text := letters(random, 26), fileText(least+random.IntN(most-least))
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

func users(random *rand.Rand, n int) (all []request) {
	for range n {
		id := random.IntN(100_000)
		all = append(all, request{fmt.Sprintf("GET /users/%d HTTP/1.1\r\nHost: a\r\n\r\n", id), fmt.Sprintf(`{"id":"%d"}`, id)})
	}
	return all
}

// load is one of the grader's own, drawn, or one of the bench.
func (s *Subject) load(name string) (load, error) {
	if draw, ok := loads[name]; ok {
		l := draw(s.random(name))
		l.name, l.pipeline = name, 1
		return l, nil
	}
	l, err := loadByName(name)
	if err != nil || l.socket {
		return l, err
	}
	// Each with a host of its own, of the same length.
	one, random := l.requests[0], s.random(name)
	l.requests = nil
	for range differentRequests {
		send := strings.Replace(one.send, "Host: 127.0.0.1:", "Host: "+letters(random, 9)+":", 1)
		l.requests = append(l.requests, request{send, one.body})
	}
	return l, nil
}

// loadByName is a workload of the bench.
func loadByName(name string) (load, error) {
	w, err := workload.ByName(name)
	if err != nil {
		return load{}, err
	}
	return load{name: name, requests: []request{{string(w.Request), string(w.Body)}}, pipeline: w.Pipeline}, nil
}
