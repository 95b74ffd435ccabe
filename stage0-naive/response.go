package main

import (
	"bytes"

	"github.com/qps-ladder/qps-ladder/shared/http1"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

const (
	// mergeBufferSize is how large an answer may be to be put together in the
	// loop's fixed buffer.
	mergeBufferSize = 4096

	// A larger one falls back to the heap, into a buffer that is kept for the
	// next one up to this size: a body of 64 KiB with its head.
	keepLimit = 72 << 10

	// Of a longer stable body no more is copied: what the socket has no room for
	// is sent from where it is.
	copyLimit = 64 << 10
)

// responseBuffer is where a loop puts answers together, one at a time.
type responseBuffer struct {
	merged []byte
	large  []byte
}

func newResponseBuffer() responseBuffer {
	return responseBuffer{merged: make([]byte, 0, mergeBufferSize)}
}

// room gives an empty buffer for an answer that does not fit the fixed one.
func (b *responseBuffer) room(size int) []byte {
	if size > keepLimit {
		return make([]byte, 0, size)
	}
	if size > cap(b.large) {
		b.large = make([]byte, 0, size)
	}
	return b.large[:0]
}

// outputState is what a connection has still to send.
type outputState struct {
	rest [][]byte // what the socket did not take: buffers of its own, and stable bodies
	held int      // bytes of those buffers
}

// blocked reports whether an answer waits for the client to take more.
func (c *conn) blocked() bool { return len(c.output.rest) > 0 }

// respond sends an answer in one write, head and body merged, for which the body
// is copied. What the socket does not take now is kept.
func (c *conn) respond(response *http1.Response, bodiless bool) {
	l := c.loop
	answer := c.appendHead(l.responses.merged[:0], response)
	head, size := len(answer), len(answer)
	if !bodiless {
		body := response.Body
		size += len(body)
		if response.Stable && len(body) > copyLimit {
			body = body[:copyLimit]
		}
		if n := head + len(body); n > cap(answer) {
			answer = append(l.responses.room(n), answer...)
		}
		answer = l.counters.CopyBody(answer, body)
	}
	switch n := c.send(answer); {
	case n == size:
	case response.Stable && !bodiless:
		// The body stays where it is for ever: only the head needs a copy.
		c.keep(bytes.Clone(answer[min(n, head):head]), 0)
		c.output.rest = append(c.output.rest, response.Body[max(n-head, 0):])
	case cap(answer) > mergeBufferSize:
		c.keep(answer, n)
		l.responses.large = nil // it may have been this one
	default:
		// The loop's buffer is needed for other connections.
		c.keep(bytes.Clone(answer[n:]), 0)
	}
}

// respondContinue tells the client to go on with its body (RFC 9110, 10.1.1).
func (c *conn) respondContinue() {
	if n := c.send(http1.Continue); n < len(http1.Continue) {
		c.output.rest = append(c.output.rest, http1.Continue[n:])
	}
}

// flush has nothing to do yet: each answer was sent when it was made.
func (c *conn) flush() {}

// send writes b, unless something waits already, and says how much of it needs no
// further thought.
func (c *conn) send(b []byte) int {
	if c.blocked() {
		return 0
	}
	n, err := netpoll.Send(&c.loop.counters, c.fd, b)
	if err != nil && err != netpoll.ErrWouldBlock {
		c.broken = true
		return len(b)
	}
	return n
}

// keep takes over a buffer for what follows its first n bytes.
func (c *conn) keep(buffer []byte, n int) {
	if n == len(buffer) {
		return
	}
	c.loop.counters.Hold(cap(buffer))
	c.output.held += cap(buffer)
	c.output.rest = append(c.output.rest, buffer[n:])
}

// resume sends more of what the socket did not take before.
func (c *conn) resume() {
	for c.blocked() {
		piece := c.output.rest[0]
		n, err := netpoll.Send(&c.loop.counters, c.fd, piece)
		if err != nil && err != netpoll.ErrWouldBlock {
			c.broken = true
			break
		}
		if n > 0 {
			c.idle.progress = c.loop.now
		}
		if n < len(piece) {
			c.output.rest[0] = piece[n:]
			return
		}
		c.output.rest = c.output.rest[1:]
	}
	c.dropOutput()
}

func (c *conn) dropOutput() {
	c.loop.counters.Release(c.output.held)
	c.output = outputState{}
}
