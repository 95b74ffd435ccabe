// Package peer is what the servers beside the ladder have in common: flags, the
// ready line, routes, and the bytes of an answer.
package peer

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// Options are what the bench gives.
type Options struct {
	Addr    string
	Workers int // event loops, for servers that have any; at least 1
}

// Flags reads them.
func Flags() Options {
	// Before the ready line, after which whoever started this may end it.
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	var o Options
	flag.StringVar(&o.Addr, "addr", "127.0.0.1:8080", "address to listen on")
	flag.IntVar(&o.Workers, "workers", 0, "event loops (default: one for each CPU)")
	flag.Parse()
	if o.Workers <= 0 {
		o.Workers = runtime.NumCPU()
	}
	return o
}

// Ready prints the ready line of the stages.
func Ready(name, addr string, workers int) {
	fmt.Printf("ready stage=%s pid=%d addr=%s workers=%d gomaxprocs=%d\n", name, os.Getpid(), addr, workers, runtime.GOMAXPROCS(0))
}

// signals asks the process to end.
var signals = make(chan os.Signal, 1)

// Wait returns when the process is asked to end, also if it was before Wait was called.
func Wait() { <-signals }

// Check ends the process with one line when err is an error.
func Check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Server is the value of the Server field, as long as that of the stages.
const Server = "qps-ladder"

// The content types.
const (
	Text   = "text/plain; charset=utf-8"
	JSON   = "application/json"
	Binary = "application/octet-stream"
)

var (
	greeting = []byte("Hello, World!")
	status   = []byte(`{"status":"ok"}`)
	notFound = []byte("404 Not Found\n")
	pattern  = make([]byte, MaxBytes)
)

// MaxBytes is the largest body of /bytes/.
const MaxBytes = 1 << 20

// The workloads know the stages' bytes: 61 characters in turns.
func init() {
	const characters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxy"
	for i := range pattern {
		pattern[i] = characters[i%len(characters)]
	}
}

// Serve answers a request. body is the request's, scratch a buffer that an answer
// may be made in; out is valid until the next use of either. No allocation.
func Serve(method, path, body, scratch []byte) (code int, contentType string, out []byte) {
	switch string(path) {
	case "/":
		return 200, Text, greeting
	case "/api/status":
		return 200, JSON, status
	case "/api/echo":
		if string(method) == "POST" {
			return 200, Text, body
		}
	}
	if id, ok := bytes.CutPrefix(path, []byte("/users/")); ok && len(id) > 0 {
		out = append(append(append(scratch[:0], `{"id":"`...), id...), `"}`...)
		return 200, JSON, out
	}
	if text, ok := bytes.CutPrefix(path, []byte("/bytes/")); ok {
		if n, ok := number(string(text), MaxBytes); ok {
			return 200, Binary, pattern[:n]
		}
	}
	if text, ok := bytes.CutPrefix(path, []byte("/middleware/")); ok {
		if n, ok := number(string(text), MaxLayers); ok {
			return 200, Text, chain(n)
		}
	}
	return 404, Text, notFound
}

// number reads a number from 0 to most.
func number(text string, most int) (n int, ok bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n <= most
}

// MaxLayers is the largest number of layers of /middleware/.
const MaxLayers = 100

type layer func() []byte

var chains = func() []layer {
	out := []layer{func() []byte { return greeting }}
	for range MaxLayers {
		next := out[len(out)-1]
		out = append(out, func() []byte { return next() })
	}
	return out
}()

func chain(n int) []byte { return chains[n]() }

// date is the Date of now, made once a second.
var date atomic.Pointer[string]

// StartDate keeps the Date right; call it once.
func StartDate() {
	set := func() {
		text := time.Now().UTC().Format(http.TimeFormat)
		date.Store(&text)
	}
	set()
	go func() {
		for range time.Tick(time.Second / 2) {
			set()
		}
	}()
}

// AppendHead appends the head of an answer.
func AppendHead(b []byte, code int, contentType string, length int, closes bool) []byte {
	if code == 200 {
		b = append(b, "HTTP/1.1 200 OK\r\n"...)
	} else {
		b = append(b, "HTTP/1.1 404 Not Found\r\n"...)
	}
	if closes {
		b = append(b, "Connection: close\r\n"...)
	}
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(length), 10)
	b = append(b, "\r\nContent-Type: "...)
	b = append(b, contentType...)
	b = append(b, "\r\nDate: "...)
	b = append(b, *date.Load()...)
	return append(b, "\r\nServer: "+Server+"\r\n\r\n"...)
}
