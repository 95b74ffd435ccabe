package app

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// Options says which routes there are beside the fixed ones.
type Options struct {
	// TestRoutes adds the routes under /test/, which the common suite needs and nobody else wants.
	TestRoutes bool
	// Static is a folder whose files are served under /static/; "" means none.
	Static string
	// StaticMemory is how many bytes of files are held in memory at a time, for all loops together. It
	// is the size of the largest file that is served, too: a larger one gets a 500 that says so.
	StaticMemory int64
}

// App answers requests. Its methods may be called from any number of goroutines at a time.
type App struct {
	options Options
	chains  [maxLayers + 1]handler
	helpers helpers
	pattern pattern
	static  *static

	keptMutex sync.Mutex
	kept      string // deliberately not cloned, see keep
}

// handler is the end of a middleware chain, or the rest of one.
type handler func(q *http1.Request, s *http1.Response)

const (
	allowGet     = "GET, HEAD"
	allowPost    = "POST"
	allowAll     = "GET, HEAD, OPTIONS, POST"
	octetStream  = "application/octet-stream"
	jsonType     = "application/json"
	maxLayers    = 100
	maxBytes     = 16 << 20
	usersPrefix  = "/users/"
	bytesPrefix  = "/bytes/"
	layersPrefix = "/middleware/"
	asyncPrefix  = "/async-middleware/"
	staticPrefix = "/static/"
	testPrefix   = "/test/"
)

// These bodies are shared by every answer: nobody may write to them.
var (
	helloBody  = []byte("Hello, World!")
	statusBody = []byte(`{"status":"ok"}`)
	keptBody   = []byte("kept\n")
)

// New makes an app. It starts nothing and allocates little: the pattern behind /bytes/ and the
// goroutines behind /async-middleware/ come with the first request that needs them. A folder in
// o.Static that cannot be opened is as good as an empty one.
func New(o Options) *App {
	a := &App{options: o}
	a.chains[0] = hello
	for n := 1; n <= maxLayers; n++ {
		a.chains[n] = layer(a.chains[n-1])
	}
	if o.Static != "" {
		a.static = openStatic(o.Static, o.StaticMemory)
	}
	return a
}

// Close ends the goroutines of /async-middleware/, if there are any, and closes the static folder.
// No request may be under way, and none may follow.
func (a *App) Close() {
	a.helpers.close()
	if a.static != nil {
		a.static.close()
	}
}

// Serve writes the answer to q into s, which has been Reset. The answer may hold views of q, so s
// must be sent, or copied, before q's bytes are overwritten. HEAD is answered as GET: leaving out the
// body is the server's part.
//
// It panics for GET /test/panic, if there are test routes. It does not allocate, except for a
// file under /static/, the first requests for /bytes/ and /async-middleware/, and a Scratch that is too small.
func (a *App) Serve(q *http1.Request, s *http1.Response) {
	switch q.Path {
	case "/":
		if get(q, s) {
			hello(q, s)
		}
		return
	case "/api/status":
		if get(q, s) {
			answer(s, jsonType, statusBody)
		}
		return
	case "/api/echo":
		if q.Method == "POST" {
			echo(q, s)
		} else {
			notAllowed(s, allowPost)
		}
		return
	case "*":
		// The judge lets the asterisk through with OPTIONS alone (RFC 9112, 3.2.4).
		s.Status = 204
		s.Allow = allowAll
		return
	}
	if !a.parameters(q, s) {
		s.Error(404)
	}
}

// parameters serves the routes that end in a parameter, and says whether the path is one of them.
func (a *App) parameters(q *http1.Request, s *http1.Response) bool {
	path := q.Path
	if id, ok := strings.CutPrefix(path, usersPrefix); ok {
		if id == "" || strings.IndexByte(id, '/') >= 0 {
			return false
		}
		if get(q, s) {
			user(id, s)
		}
		return true
	}
	if digits, ok := strings.CutPrefix(path, bytesPrefix); ok {
		n, ok := number(digits, maxBytes)
		if ok && get(q, s) {
			answer(s, octetStream, a.pattern.first(n))
		}
		return ok
	}
	if digits, ok := strings.CutPrefix(path, layersPrefix); ok {
		n, ok := number(digits, maxLayers)
		if ok && get(q, s) {
			a.chains[n](q, s)
		}
		return ok
	}
	if digits, ok := strings.CutPrefix(path, asyncPrefix); ok {
		n, ok := number(digits, maxLayers)
		if ok && get(q, s) {
			a.helpers.visit(n)
			hello(q, s)
		}
		return ok
	}
	if name, ok := strings.CutPrefix(path, staticPrefix); ok && a.static != nil {
		if get(q, s) {
			a.static.serve(name, q, s)
		}
		return true
	}
	if name, ok := strings.CutPrefix(path, testPrefix); ok && a.options.TestRoutes {
		return a.test(name, q, s)
	}
	return false
}

// test serves what the common suite needs to see how a server treats a bad handler.
func (a *App) test(name string, q *http1.Request, s *http1.Response) bool {
	switch name {
	case "panic":
		if get(q, s) {
			panic("app: GET /test/panic panics, as it should")
		}
	case "keep":
		if get(q, s) {
			// What a handler must never do: the suite has it do so to show that a test mode catches it.
			a.keptMutex.Lock()
			a.kept = q.Header("X-Keep")
			a.keptMutex.Unlock()
			answer(s, http1.TextPlain, keptBody)
		}
	case "kept":
		if get(q, s) {
			a.keptMutex.Lock()
			s.Scratch = append(s.Scratch[:0], a.kept...)
			a.keptMutex.Unlock()
			answer(s, http1.TextPlain, s.Scratch)
			s.Stable = false
		}
	default:
		return false
	}
	return true
}

// get says whether q asks for GET or HEAD; if not, it answers that nothing else is allowed.
func get(q *http1.Request, s *http1.Response) bool {
	if q.Method == "GET" || q.Method == "HEAD" {
		return true
	}
	notAllowed(s, allowGet)
	return false
}

func notAllowed(s *http1.Response, allow string) {
	s.Error(405)
	s.Allow = allow
}

// answer is 200 with a body that nobody ever writes to.
func answer(s *http1.Response, contentType string, body []byte) {
	s.Status = 200
	s.ContentType = contentType
	s.Body = body
	s.Stable = true
}

func hello(_ *http1.Request, s *http1.Response) {
	answer(s, http1.TextPlain, helloBody)
}

func echo(q *http1.Request, s *http1.Response) {
	contentType := q.Header("Content-Type")
	if contentType == "" {
		contentType = octetStream
	}
	answer(s, contentType, q.Body)
	s.Stable = false
}

func user(id string, s *http1.Response) {
	body := append(s.Scratch[:0], `{"id":`...)
	body = appendJSON(body, id)
	body = append(body, '}')
	s.Scratch = body
	answer(s, jsonType, body)
	s.Stable = false
}

// number reads a decimal number from 0 to most, without sign and without leading zeros.
func number(digits string, most int) (int, bool) {
	if digits == "" || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	n := 0
	for i := range len(digits) {
		digit := digits[i] - '0'
		if digit > 9 {
			return 0, false
		}
		if n = n*10 + int(digit); n > most {
			return 0, false
		}
	}
	return n, true
}

// patternDigits are as many as a prime, 61: no power of two is a multiple, so that a body with a block
// missing or doubled does not look right by chance.
const patternDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxy"

// leastPattern is what the first request for /bytes/ makes, at least.
const leastPattern = 64 << 10

// pattern is the body of /bytes/. It grows with what is asked for, to powers of two: 16 MiB made for
// the sake of 64 KiB would change how often the garbage collector runs. What was handed out stays as
// it is for ever.
type pattern struct {
	made  atomic.Pointer[[]byte]
	mutex sync.Mutex
}

// first is the pattern's first n bytes.
func (p *pattern) first(n int) []byte {
	if made := p.made.Load(); made != nil && n <= len(*made) {
		return (*made)[:n:n]
	}
	return p.grow(n)[:n:n]
}

func (p *pattern) grow(n int) []byte {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	size := leastPattern
	if made := p.made.Load(); made != nil {
		if n <= len(*made) {
			return *made // another loop was faster
		}
		size = len(*made)
	}
	for size < n {
		size *= 2
	}
	made := make([]byte, 0, size)
	for len(made) < size {
		made = append(made, patternDigits[:min(len(patternDigits), size-len(made))]...)
	}
	p.made.Store(&made)
	return made
}
