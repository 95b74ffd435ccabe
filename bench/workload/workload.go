// Package workload names what a server can be driven with: the request, what
// the right answer is, over how many connections, and how many at once.
//
// It sends nothing: package load does. How long and how often is package run's.
package workload

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// Workload is one named way of driving a server. It is read-only.
type Workload struct {
	Name    string
	Summary string // one line, for people

	// Opening is a request that makes a WebSocket of a connection, once, when it is new; nil means that there is none. Request is a
	// message then, and Body the frame that comes back, byte for byte. No Reconnect, no Status, no ContentType.
	Opening []byte

	Request []byte // one whole request
	Status  int    // of the right answer
	Body    []byte // of the right answer, compared byte by byte

	// ContentType is the media type of the right answer, without parameters; "" for any.
	ContentType string

	Connections int  // that send, for the whole run
	Pipeline    int  // requests sent at once on a connection; the next go out when all are answered
	Reconnect   bool // a new connection for every request
	Idle        int  // further connections that send one request at the start and then stay quiet

	// File is the name of a file with Body that the server must be given, below -static; "" is none.
	File string

	// Wanted is the number of connections, idle ones among them, that the workload is named
	// after when this machine cannot hold so many; else 0. Alias is its name with that number.
	Wanted int
	Alias  string
}

// Total is how many connections are open at once.
func (w Workload) Total() int { return w.Connections + w.Idle }

// Hello is the request that the ladder is told with.
const Hello = "hello"

const greeting = "Hello, World!"

// host stands in every request, whatever the target: a server must not care,
// and the bytes on the wire stay the same from run to run.
const host = "127.0.0.1:8080"

// All returns the workloads in the order in which people should read them.
func All() []Workload {
	all := []Workload{
		get(Hello, "GET /, 100 connections", "/", []byte(greeting)),
		with(get("pipelined", "GET /, 16 requests at once on each connection", "/", []byte(greeting)), func(w *Workload) { w.Pipeline = 16 }),
		get("json", "GET /api/status", "/api/status", []byte(`{"status":"ok"}`)),
		echo(),
		get("params", "GET /users/42", "/users/42", []byte(`{"id":"42"}`)),
		browser(),
		get("body2k", "GET /bytes/2048", "/bytes/2048", stable("/bytes/2048")),
		get("body8k", "GET /bytes/8192", "/bytes/8192", stable("/bytes/8192")),
		get("body64k", "GET /bytes/65536", "/bytes/65536", stable("/bytes/65536")),
		file(),
		with(get("churn", "a new connection for every GET /", "/", []byte(greeting)), func(w *Workload) {
			w.Request = []byte("GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n")
			w.Reconnect = true
		}),
		with(get("c1", "GET / over one connection: latency", "/", []byte(greeting)), func(w *Workload) { w.Connections = 1 }),
		with(get("c1000", "GET / over 1,000 connections", "/", []byte(greeting)), func(w *Workload) { w.Connections = 1000 }),
		with(get(eightThousand, "GET / over 8,000 connections", "/", []byte(greeting)), func(w *Workload) { w.Connections = 8000 }),
		crowd("c10000", most(), func(n string) string { return "GET / over " + n + " connections" }, func(w *Workload, n int) { w.Connections = n }),
		with(get("idle1k", "GET / over one connection beside 1,000 idle ones: memory", "/", []byte(greeting)), func(w *Workload) {
			w.Connections, w.Idle = 1, 1000
		}),
		crowd("idle10k", most(), func(n string) string { return "GET / over 100 connections beside " + n + " idle ones: memory" }, func(w *Workload, n int) { w.Idle = n }),
		middleware("mw", 0), middleware("mw", 3), middleware("mw", 10),
		middleware("async-mw", 3), middleware("async-mw", 10),
	}
	if most() < 8000 { // c10000 has as many as there can be
		all = slices.DeleteFunc(all, func(w Workload) bool { return w.Name == eightThousand })
	}
	return all
}

const eightThousand = "c8000"

// middleware asks for a route behind n layers that do nothing: plain calls, or
// with async each a hop to another goroutine and back.
func middleware(kind string, n int) Workload {
	path, what := "/middleware/", fmt.Sprintf("GET through %d layers of middleware, plain calls", n)
	if kind == "async-mw" {
		path, what = "/async-middleware/", fmt.Sprintf("GET through %d layers of middleware, each on another goroutine", n)
	}
	return get(kind+strconv.Itoa(n), what, path+strconv.Itoa(n), []byte(greeting))
}

// tenThousand is what the largest workloads are named after.
const tenThousand = 10_000

// crowd is a workload over ten thousand connections, or as many as there can be:
// then that number stands in its name, and the name with ten thousand still finds it.
func crowd(name string, can int, summary func(number string) string, set func(w *Workload, n int)) Workload {
	n := min(tenThousand, can)
	if n == 1000 {
		n-- // c1000 is another workload
	}
	w := get(name, summary(console.Thousands(n)), "/", []byte(greeting))
	if n < tenThousand {
		w.Wanted, w.Alias = tenThousand, name
		w.Name = strings.TrimRight(name, "0k1") + strconv.Itoa(n)
		w.Summary += fmt.Sprintf(" (%s: the descriptor limit allows no more)", name)
	}
	set(&w, n)
	return w
}

// spareFiles is what a process needs beside its connections: far less, but the
// connections that are being closed and made anew need room too.
const spareFiles = 500

// most is how many connections a process may have: half of what the hard limit
// of descriptors leaves, since a test may hold both ends of each.
var most = sync.OnceValue(func() int {
	_, hard, err := netpoll.DescriptorLimit()
	if err != nil {
		return tenThousand // unknown: the connect errors will tell
	}
	return Most(hard)
})

// Most is how many connections the largest workloads have with a hard limit of
// descriptors: 2 at the least, since c1 is another workload.
func Most(hard int) int { return min(tenThousand, max(2, (hard-spareFiles)/2)) }

// List reads names separated by commas; "all" is every workload.
func List(text string) ([]Workload, error) {
	if text == "all" {
		return All(), nil
	}
	var out []Workload
	for name := range strings.SplitSeq(text, ",") {
		w, err := ByName(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		for _, other := range out {
			if other.Name == w.Name {
				return nil, fmt.Errorf("workload %s is named twice", w.Name)
			}
		}
		out = append(out, w)
	}
	return out, nil
}

// OfExercises returns the workloads that only servers of an exercise serve, and no stage.
func OfExercises() []Workload {
	return []Workload{socket("ws125", 125), socket("ws16k", 16<<10)}
}

// ByName finds a workload, of the stages or of an exercise; the error names those of the stages.
func ByName(name string) (Workload, error) {
	names := make([]string, 0, 16)
	for _, w := range slices.Concat(All(), OfExercises()) {
		if w.Name == name || w.Alias == name && name != "" {
			return w, nil
		}
		names = append(names, w.Name)
	}
	return Workload{}, fmt.Errorf("there is no workload %q: choose one of %s", name, strings.Join(names, ", "))
}

func get(name, summary, path string, body []byte) Workload {
	return Workload{
		Name: name, Summary: summary,
		Request: []byte("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"),
		Status:  200, Body: body, ContentType: contentType(path), Connections: 100, Pipeline: 1,
	}
}

// contentType is the media type with which a path of package app is answered.
func contentType(path string) string {
	switch {
	case strings.HasPrefix(path, "/api/"), strings.HasPrefix(path, "/users/"):
		return "application/json"
	case strings.HasPrefix(path, "/bytes/"):
		return "application/octet-stream"
	}
	return plain
}

const plain = "text/plain"

func with(w Workload, change func(*Workload)) Workload {
	change(&w)
	return w
}

// file asks for a file, of a size that many have.
func file() Workload {
	const name, size = "file.css", 16 << 10
	text := strings.Repeat("p { color: black }\n", size/19+1)[:size]
	return with(get("file", "GET /static/"+name+", a file of 16 KiB (-static)", "/static/"+name, []byte(text)), func(w *Workload) { w.File, w.ContentType = name, "text/css" })
}

func echo() Workload {
	body := make([]byte, 1024)
	for i := range body {
		body[i] = "abcdefghijklmnopqrstuvwxyz012345"[i%32]
	}
	head := fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", host, len(body))
	return Workload{
		Name: "echo", Summary: "POST /api/echo with 1 KiB",
		Request: append([]byte(head), body...),
		Status:  200, Body: body, ContentType: plain, Connections: 100, Pipeline: 1,
	}
}

// socket sends a message over a WebSocket, which comes back (exercise 23). The key and the mask are those of the examples in
// RFC 6455, 1.3 and 5.7: the server cannot know that they are always the same.
func socket(name string, size int) Workload {
	payload := []byte(strings.Repeat("abcdefghijklmnopqrstuvwxyz012345", size/32+1)[:size])
	key := [4]byte{0x37, 0xfa, 0x21, 0x3d}
	frame := func(masked byte) []byte {
		b := []byte{0x82, masked | byte(min(size, 126))} // a binary message in one frame
		if size > 125 {
			b = binary.BigEndian.AppendUint16(b, uint16(size))
		}
		return b
	}
	request := append(frame(0x80), key[:]...)
	for i, c := range payload {
		request = append(request, c^key[i%len(key)])
	}
	return Workload{
		Name: name, Summary: fmt.Sprintf("a WebSocket message of %d bytes, which comes back (exercise 23)", size),
		Opening: []byte("GET /websocket HTTP/1.1\r\nHost: " + host + "\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
			"Sec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n\r\n"),
		Request: request, Body: append(frame(0), payload...), Connections: 100, Pipeline: 1,
	}
}

// browser asks for the same page as hello with the headers that a browser
// sends.
func browser() Workload {
	fields := []string{
		"Host: " + host,
		"Connection: keep-alive",
		"Cache-Control: max-age=0",
		`sec-ch-ua: "Chromium";v="140", "Not=A?Brand";v="24", "Example Browser";v="140"`,
		"sec-ch-ua-mobile: ?0",
		`sec-ch-ua-platform: "Linux"`,
		"Upgrade-Insecure-Requests: 1",
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
		"Sec-Fetch-Site: same-origin",
		"Sec-Fetch-Mode: navigate",
		"Accept-Encoding: gzip, deflate, br, zstd",
		"Accept-Language: en-GB,en;q=0.9,de;q=0.8,zh-CN;q=0.7,zh;q=0.6",
		"Cookie: session=4f2b8c1d9e7a60355b1c2d3e4f5a6b7c; theme=dark; consent=all; visited=1730000000; cart=3f9c1b7e",
	}
	head := "GET / HTTP/1.1\r\n" + strings.Join(fields, "\r\n") + "\r\n\r\n"
	return Workload{
		Name: "browser", Summary: fmt.Sprintf("GET / with the %d headers of a browser, %d bytes", len(fields), len(head)),
		Request: []byte(head),
		Status:  200, Body: []byte(greeting), ContentType: plain, Connections: 100, Pipeline: 1,
	}
}
