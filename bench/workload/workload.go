// Package workload names what a server can be driven with: the request, what
// the right answer is, over how many connections, and how many at once.
package workload

import (
	"fmt"
	"strings"
)

// Workload is one named way of driving a server. It is read-only.
type Workload struct {
	Name    string
	Summary string // one line, for people

	Request []byte // one whole request
	Status  int    // of the right answer
	Body    []byte // of the right answer, compared byte by byte

	Connections int  // that send, for the whole run
	Pipeline    int  // requests sent at once on a connection; the next go out when all are answered
	Reconnect   bool // a new connection for every request
	Idle        int  // further connections that send one request at the start and then stay quiet
}

// Hello is the request that the ladder is told with.
const Hello = "hello"

const greeting = "Hello, World!"

// host stands in every request, whatever the target: a server must not care,
// and the bytes on the wire stay the same from run to run.
const host = "127.0.0.1:8080"

// All returns the workloads in the order in which people should read them.
func All() []Workload {
	return []Workload{
		get(Hello, "GET /, 100 connections", "/", []byte(greeting)),
		with(get("pipelined", "GET /, 16 requests at once on each connection", "/", []byte(greeting)), func(w *Workload) { w.Pipeline = 16 }),
		get("json", "GET /api/status", "/api/status", []byte(`{"status":"ok"}`)),
		echo(),
		get("params", "GET /users/42", "/users/42", []byte(`{"id":"42"}`)),
		browser(),
		get("body8k", "GET /bytes/8192", "/bytes/8192", stable("/bytes/8192")),
		get("body64k", "GET /bytes/65536", "/bytes/65536", stable("/bytes/65536")),
		with(get("churn", "a new connection for every GET /", "/", []byte(greeting)), func(w *Workload) {
			w.Request = []byte("GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n")
			w.Reconnect = true
		}),
		with(get("c1", "GET / over one connection: latency", "/", []byte(greeting)), func(w *Workload) { w.Connections = 1 }),
		with(get("c1000", "GET / over 1,000 connections", "/", []byte(greeting)), func(w *Workload) { w.Connections = 1000 }),
		with(get("idle1k", "GET / over one connection beside 1,000 idle ones: memory", "/", []byte(greeting)), func(w *Workload) {
			w.Connections, w.Idle = 1, 1000
		}),
	}
}

// ByName finds a workload; the error names all there are.
func ByName(name string) (Workload, error) {
	names := make([]string, 0, 16)
	for _, w := range All() {
		if w.Name == name {
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
		Status:  200, Body: body, Connections: 100, Pipeline: 1,
	}
}

func with(w Workload, change func(*Workload)) Workload {
	change(&w)
	return w
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
		Status:  200, Body: body, Connections: 100, Pipeline: 1,
	}
}

// browser asks for the same page as hello with the headers that a browser
// sends: 14 of them, about 800 bytes.
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
	return Workload{
		Name: "browser", Summary: "GET / with the 14 headers of a browser, about 800 bytes",
		Request: []byte("GET / HTTP/1.1\r\n" + strings.Join(fields, "\r\n") + "\r\n\r\n"),
		Status:  200, Body: []byte(greeting), Connections: 100, Pipeline: 1,
	}
}
