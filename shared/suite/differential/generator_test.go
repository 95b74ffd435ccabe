package differential

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// generator makes inputs: valid requests, one behind the other, most of them damaged somewhere. The same seed makes the same.
type generator struct {
	*rand.Rand
}

func newGenerator(seed, number uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, number))}
}

// oneIn is true once in n times.
func (g generator) oneIn(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

// small is a number below limit, more often a small one.
func (g generator) small(limit int) int { return g.IntN(1 + g.IntN(limit)) }

func (g generator) input() *input {
	in := &input{shut: g.oneIn(4), late: g.oneIn(5), sips: g.oneIn(10)}
	for range 1 + g.small(8) {
		in.bytes = append(in.bytes, g.request()...)
	}
	if !g.oneIn(5) {
		for range 1 + g.small(4) {
			in.bytes = g.damage(in.bytes)
		}
	}
	if in.late && g.oneIn(20) {
		// These stay valid: a server need not read without end what comes after a fault.
		in.bytes = slices.Concat(g.moreThanSocketsHold(in.sips), in.bytes)
	}
	in.cuts = g.cuts(len(in.bytes))
	if g.oneIn(6) {
		in.urgent = g.Uint64() & g.Uint64()
	}
	return in
}

// moreThanSocketsHold is a request, or some, whose answers have to wait until the client reads. Through a small window the server
// would soon stop reading, and a client that sends much without reading would wait for it for ever: then it is one short request.
func (g generator) moreThanSocketsHold(sips bool) (requests []byte) {
	if sips || g.oneIn(2) {
		return fmt.Appendf(nil, "GET /bytes/%d HTTP/1.1\r\nHost: a\r\n\r\n", 3<<20+g.IntN(4<<20))
	}
	for i := range 6 {
		content := bytes.Repeat([]byte{byte('a' + i)}, 800_000+g.IntN(200_000))
		requests = fmt.Appendf(requests, "POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(content), content)
	}
	return requests
}

func (g generator) cuts(length int) []int {
	if length < 2 || g.oneIn(3) {
		return nil
	}
	n := 1 + g.small(12)
	if g.oneIn(40) {
		n = 200
	}
	cuts := make([]int, n)
	for i := range cuts {
		cuts[i] = 1 + g.IntN(length-1)
	}
	slices.Sort(cuts)
	return slices.Compact(cuts)
}

// request is a valid request.
func (g generator) request() []byte {
	method, path := "GET", g.path()
	var content []byte
	if g.oneIn(3) {
		method = pick(g, "POST", "POST", "POST", "HEAD", "HEAD", "OPTIONS", "PUT", "DELETE", "BREW", "get")
	}
	if method == "POST" {
		path = pick(g, "/api/echo", "/api/echo", "/api/echo", path)
	}
	if method == "POST" || g.oneIn(10) {
		content = g.content()
	}
	host := pick(g, "a", "a", "example.org", "example.org:8080", "[::1]:80", "192.0.2.1", "")
	target := path
	switch {
	case method == "OPTIONS" && g.oneIn(2):
		target = "*"
	case g.oneIn(8):
		target = pick(g, "http", "HTTP", "https") + "://" + pick(g, "b", "b:1", "[::2]", "example.net") + strings.TrimPrefix(path, pick(g, "", "/"))
	}
	version := "HTTP/1.1"
	if g.oneIn(10) {
		version = pick(g, "HTTP/1.0", "HTTP/1.0", "HTTP/1.2", "HTTP/1.9")
	}
	fields := []string{pick(g, "Host: ", "Host: ", "host:", "HOST:\t ") + host}
	for range g.small(5) {
		fields = append(fields, g.field())
	}
	if g.oneIn(100) {
		for range g.IntN(64) {
			fields = append(fields, g.field())
		}
	}
	if g.oneIn(12) {
		fields = append(fields, "Connection: "+pick(g, "keep-alive", "keep-alive", "Keep-Alive", "close", "Close, te", "upgrade"))
	}
	var body []byte
	switch {
	case content == nil:
		if g.oneIn(20) {
			fields = append(fields, "Content-Length: 0")
		}
	case version == "HTTP/1.0" || g.oneIn(2):
		fields = append(fields, fmt.Sprintf("Content-Length: %d", len(content)))
		body = content
	default:
		fields = append(fields, pick(g, "Transfer-Encoding: chunked", "transfer-encoding:chunked", "Transfer-Encoding: Chunked"))
		body = g.chunked(content)
	}
	if content != nil && g.oneIn(8) {
		fields = append(fields, "Expect: 100-continue")
	}
	if g.oneIn(3) {
		g.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	}
	var b bytes.Buffer
	if g.oneIn(20) {
		b.WriteString("\r\n")
	}
	fmt.Fprintf(&b, "%s %s %s\r\n%s\r\n\r\n%s", method, target, version, strings.Join(fields, "\r\n"), body)
	return b.Bytes()
}

func (g generator) path() string {
	path := pick(g, "/", "/", "/", "/api/status", "/users/42", "/users/"+g.word(), "/users/a%22%5c%0Ab", "/users/%C3%A9",
		fmt.Sprintf("/bytes/%d", g.small(2000)), fmt.Sprintf("/bytes/%d", g.small(100_000)), "/bytes/01", "/bytes/16777217",
		"/middleware/3", "/async-middleware/2", "/nowhere", "/api/echo", "/%61pi/status", "//", "/users/", "/users/1/2", "/test/panic",
		"/static/small.txt", "/static/large.bin", "/static/", "/static/nowhere", "/static/.hidden", "/static/a/../small.txt")
	if g.oneIn(6) {
		path += "?" + pick(g, "", "q=1", "a=b&c=%20", "/?:@")
	}
	return path
}

func (g generator) word() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
	b := make([]byte, 1+g.small(20))
	for i := range b {
		b[i] = letters[g.IntN(len(letters))]
	}
	return string(b)
}

func (g generator) field() string {
	return pick(g, "Accept: */*", "User-Agent: "+g.word(), "Cookie: a=b; c="+g.word(), "X-"+g.word()+": "+g.word(), "X-Empty:", "X-Blank: \t ",
		"Content-Type: text/plain", "Content-Type: application/json; charset=utf-8", "Content-Type:", "X-Latin: caf\xe9", "X-Tab: a\tb",
		"If-None-Match: \"x\"", "If-None-Match: *", "If-Modified-Since: Fri, 31 Dec 2100 23:59:59 GMT", "Accept-Encoding: gzip, br", "X-Long: "+strings.Repeat("x", g.small(2000)))
}

func (g generator) content() []byte {
	b := make([]byte, g.small(pick(g, 10, 100, 1000, 1000, 30_000)))
	if g.oneIn(2) {
		for i := range b {
			b[i] = byte(g.Uint32())
		}
		return b
	}
	// A body that looks like requests, to be found out if anybody reads it as one.
	for i := 0; i < len(b); {
		i += copy(b[i:], "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	}
	return b
}

func (g generator) chunked(content []byte) []byte {
	var b bytes.Buffer
	for len(content) > 0 {
		n := 1 + g.small(len(content))
		fmt.Fprintf(&b, pick(g, "%x", "%X", "0%x", "%04x"), n)
		if g.oneIn(6) {
			b.WriteString(pick(g, ";a", ";a=b", "; a = \"b;\\\"\"", ";x;y"))
		}
		fmt.Fprintf(&b, "\r\n%s\r\n", content[:n])
		content = content[n:]
	}
	b.WriteString(pick(g, "0", "0", "00", "0;last"))
	b.WriteString("\r\n")
	for range g.small(3) {
		b.WriteString(g.field() + "\r\n")
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// snippets are bytes that mean something somewhere in a request.
var snippets = []string{
	"\r", "\n", "\r\n", "\r\n\r\n", "\n\n", "\x00", "\x7f", "\x80", "\xff", " ", "\t", ":", ";", ",", "\"", "\\", "%", "%00", "%zz", "#", "?", "*", "/", "..", "=",
	"0", "1", "f", "-1", "+1", "0x10", "18446744073709551616", "1048576", "1048577", "fffff", "100000", "100001",
	"Content-Length: 5\r\n", "Content-Length: 5, 5\r\n", "Content-Length: 6\r\n", "Content-Length: +5\r\n", "Content-Length:\r\n", "Content-Length : 5\r\n",
	"Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked, chunked\r\n",
	"Transfer-Encoding:\r\n", "Transfer-Encoding: \x0bchunked\r\n", "Host: b\r\n", "Host:\r\n", "Host: a b\r\n", " folded\r\n", "\tfolded\r\n", ": nameless\r\n", "nameless\r\n",
	"Expect: 100-continue\r\n", "Expect: more\r\n", "Connection: close\r\n", "Connection: keep-alive\r\n",
	"HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/1.10", "HTTP/0.9", "http/1.1", "GET ", "HEAD ", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"http://", "a@b", "[::", "0\r\n\r\n", "5\r\nabcde\r\n",
}

// damage changes b in one place.
func (g generator) damage(b []byte) []byte {
	if len(b) == 0 {
		return []byte(pick(g, snippets...))
	}
	at, length := g.place(b), 1+g.small(30)
	end := min(at+length, len(b))
	switch g.IntN(9) {
	case 0: // flip
		b = slices.Clone(b)
		b[at] ^= 1 << g.IntN(8)
		return b
	case 1: // insert
		return slices.Concat(b[:at], []byte(pick(g, snippets...)), b[at:])
	case 2: // delete
		return slices.Concat(b[:at], b[end:])
	case 3: // duplicate
		return slices.Concat(b[:end], b[at:])
	case 4: // reorder: two neighbouring lines, or pieces
		if lines := bytes.SplitAfter(b, []byte("\n")); len(lines) > 2 && g.oneIn(2) {
			i := g.IntN(len(lines) - 1)
			lines[i], lines[i+1] = lines[i+1], lines[i]
			return bytes.Join(lines, nil)
		}
		next := min(end+length, len(b))
		return slices.Concat(b[:at], b[end:next], b[at:end], b[next:])
	case 5: // split a line
		return slices.Concat(b[:at], []byte(pick(g, "\r\n", "\r\n", "\r\n ", "\n", "\r")), b[at:])
	case 6: // join two lines
		if i := bytes.Index(b[at:], []byte("\r\n")); i >= 0 {
			return slices.Concat(b[:at+i], []byte(pick(g, "", "", " ", "\r", "\n")), b[at+i+2:])
		}
		return b[:at]
	case 7: // replace a byte
		b = slices.Clone(b)
		b[at] = byte(g.Uint32())
		return b
	default: // cut off
		return b[:at]
	}
}

// place is an offset into b, more often in one of the first heads than in the middle of a large body.
func (g generator) place(b []byte) int {
	if g.oneIn(3) {
		return g.IntN(len(b))
	}
	return g.IntN(min(len(b), 400))
}
