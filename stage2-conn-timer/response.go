package main

import (
	"github.com/qps-ladder/qps-ladder/shared/http1"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

const (
	// mergeBufferSize is how large an answer may be to be put together in the
	// loop's fixed buffer.
	mergeBufferSize = 4096

	// A larger one falls back to the heap, into a buffer that is kept for the
	// next one up to this size.
	keepLimit = 256 << 10
)

// answerBuffer is where a loop puts answers together, one at a time.
type answerBuffer struct {
	merged []byte
	large  []byte
}

func newAnswerBuffer() answerBuffer {
	return answerBuffer{merged: make([]byte, 0, mergeBufferSize)}
}

// room gives an empty buffer for an answer that does not fit the fixed one.
func (a *answerBuffer) room(size int) []byte {
	if size > keepLimit {
		return make([]byte, 0, size)
	}
	if size > cap(a.large) {
		a.large = make([]byte, 0, size)
	}
	return a.large[:0]
}

// outputState is what a connection has still to send.
type outputState struct {
	rest []byte // what the socket did not take; a copy of the connection's own
	sent int    // how much of it has gone since
}

// blocked reports whether an answer waits for the client to take more.
func (c *conn) blocked() bool { return len(c.output.rest) > 0 }

// respond sends an answer in one write, head and body merged, for which the body
// is copied.
func (c *conn) respond(response *http1.Response, bodiless bool) {
	l := c.loop
	answer := c.appendHead(l.answers.merged[:0], response)
	if !bodiless {
		if size := len(answer) + len(response.Body); size > cap(answer) {
			answer = append(l.answers.room(size), answer...)
		}
		answer = l.counters.CopyBody(answer, response.Body)
	}
	c.send(answer)
}

// respondContinue tells the client to go on with its body (RFC 9110, 10.1.1).
func (c *conn) respondContinue() {
	c.send(http1.Continue)
}

// flush has nothing to do yet: each answer was sent when it was made.
func (c *conn) flush() {}

// send writes b, and keeps what the socket does not take now.
func (c *conn) send(b []byte) {
	if c.blocked() {
		c.keep(b)
		return
	}
	n, err := netpoll.Send(&c.loop.counters, c.fd, b)
	if err != nil && err != netpoll.ErrWouldBlock {
		c.broken = true
		return
	}
	if n < len(b) {
		c.keep(b[n:])
	}
}

// keep copies b, as the loop's buffer is needed for other connections.
func (c *conn) keep(b []byte) {
	c.output.rest = append(c.loop.counters.GrowBuffer(c.output.rest, len(b)), b...)
}

// resume sends more of what the socket did not take before.
func (c *conn) resume() {
	n, err := netpoll.Send(&c.loop.counters, c.fd, c.output.rest[c.output.sent:])
	if err != nil && err != netpoll.ErrWouldBlock {
		c.broken = true
		c.dropOutput()
		return
	}
	if n > 0 {
		c.idle.progress = c.loop.now
		c.output.sent += n
	}
	if c.output.sent == len(c.output.rest) {
		c.dropOutput()
	}
}

func (c *conn) dropOutput() {
	c.loop.counters.Release(cap(c.output.rest))
	c.output = outputState{}
}
