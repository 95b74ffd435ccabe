package main

import (
	"github.com/qps-ladder/qps-ladder/shared/http1"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

const (
	// mergeLimit is how large an answer may be to have its body copied behind
	// its head: up to here a copy is cheaper than one more piece to send.
	mergeLimit = 512

	// A batch of answers to pipelined requests ends at either of these, so that the
	// client need not wait for the last one.
	batchAnswers = 64
	batchBytes   = 64 << 10
)

// responseBuffer is where a loop gathers the answers to one connection's
// pipelined requests, to send them in one system call.
type responseBuffer struct {
	made    []byte          // heads, and small bodies behind them; never reallocated
	from    int             // made[from:] is not a piece of the vector yet
	vector  *netpoll.Vector // pieces in their order: some of made, bodies by reference
	stable  []bool          // of each piece, whether its owner never changes it
	answers int
}

func newResponseBuffer() responseBuffer {
	return responseBuffer{
		// An answer puts mergeLimit bytes here at most, or a head alone. A head is
		// short, unless it repeats a Content-Type; and all of those of one batch
		// have come in one read buffer.
		made:   make([]byte, 0, batchAnswers*2*mergeLimit),
		vector: netpoll.NewVector(2*batchAnswers + 1),
		stable: make([]bool, 0, 2*batchAnswers+1),
	}
}

// size is how many bytes have been gathered.
func (a *responseBuffer) size() int { return a.vector.Len() + len(a.made) - a.from }

// seal makes what has been made since the last piece a piece of its own.
func (a *responseBuffer) seal() {
	if len(a.made) > a.from {
		a.add(a.made[a.from:], false)
		a.from = len(a.made)
	}
}

func (a *responseBuffer) add(piece []byte, stable bool) {
	a.vector.Append(piece)
	a.stable = append(a.stable, stable)
}

func (a *responseBuffer) reset() {
	a.vector.Reset()
	a.made, a.from, a.stable, a.answers = a.made[:0], 0, a.stable[:0], 0
}

// outputState is what a connection has still to send.
type outputState struct {
	rest [][]byte // what the socket did not take: copies of its own, and stable bodies
	held int      // bytes of the copies
}

// blocked reports whether an answer waits for the client to take more.
func (c *conn) blocked() bool { return len(c.output.rest) > 0 }

// respond adds an answer to the batch, in one of three ways: the head alone;
// head and body merged, when they are small; or the head, and the body by
// reference.
func (c *conn) respond(response *http1.Response, bodiless bool) {
	a := &c.loop.responses
	begin := len(a.made)
	a.made = c.appendHead(a.made, response)
	a.answers++
	switch {
	case bodiless || len(response.Body) == 0:
	case len(a.made)-begin+len(response.Body) <= mergeLimit:
		a.made = c.loop.counters.CopyBody(a.made, response.Body)
	default:
		a.seal()
		a.add(response.Body, response.Stable)
		if !response.Stable {
			c.flush() // the handler's next answer may overwrite this one
		}
	}
	if a.answers == batchAnswers || a.size() >= batchBytes {
		c.flush()
	}
}

// respondContinue tells the client to go on with its body (RFC 9110, 10.1.1).
func (c *conn) respondContinue() {
	c.loop.responses.made = append(c.loop.responses.made, http1.Continue...)
}

// flush sends what has been gathered, in one system call, and keeps what the
// socket does not take now.
func (c *conn) flush() {
	a := &c.loop.responses
	size := a.size()
	if size == 0 {
		return
	}
	var n int
	var err error
	if a.vector.Segments() == 0 {
		n, err = netpoll.Send(&c.loop.counters, c.fd, a.made)
	} else {
		a.seal()
		n, err = a.vector.Send(&c.loop.counters, c.fd)
	}
	switch {
	case err != nil && err != netpoll.ErrWouldBlock:
		c.broken = true
	case n < size:
		a.seal()
		a.vector.Advance(n)
		c.keep(a)
	}
	a.reset()
}

// keep takes over what is left of the batch. Its bytes are copied, as the
// loop's buffer is needed for other connections, but for bodies that stay as
// they are for ever.
func (c *conn) keep(a *responseBuffer) {
	pieces := a.vector.Segments()
	stable := a.stable[len(a.stable)-pieces:]
	for i := range pieces {
		piece := a.vector.Segment(i)
		if !stable[i] {
			piece = append(c.loop.counters.NewBuffer(len(piece))[:0], piece...)
			c.output.held += cap(piece)
		}
		c.output.rest = append(c.output.rest, piece)
	}
}

// resume sends more of what the socket did not take before.
func (c *conn) resume() {
	vector := c.loop.responses.vector
	for _, piece := range c.output.rest {
		vector.Append(piece)
	}
	n, err := vector.Send(&c.loop.counters, c.fd)
	vector.Reset()
	if err != nil && err != netpoll.ErrWouldBlock {
		c.broken = true
		c.dropOutput()
		return
	}
	if n > 0 {
		c.idle.progress = c.loop.now
	}
	rest := c.output.rest
	for len(rest) > 0 && n >= len(rest[0]) {
		n -= len(rest[0])
		rest = rest[1:]
	}
	if len(rest) == 0 {
		c.dropOutput()
		return
	}
	rest[0] = rest[0][n:]
	c.output.rest = rest
}

func (c *conn) dropOutput() {
	c.loop.counters.Release(c.output.held)
	c.output = outputState{}
}
