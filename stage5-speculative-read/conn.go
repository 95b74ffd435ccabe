package main

import (
	"io"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/http1"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

const (
	// A head may have 8192 bytes, and the byte after them has to be seen before
	// it can be refused; 9472 is the allocator's next size above that.
	readBufferSize = 9472

	// After so many reads a busy connection waits until the others have had a
	// turn.
	readsPerTurn = 16

	// How much a client that has had its last answer may still send before the
	// connection is closed on it.
	lingerLimit = 256 << 10
)

// A conn is one client's connection. Once a loop has adopted it, that loop owns
// it: nobody else touches it or its buffer, so nothing here needs a lock.
type conn struct {
	loop       *loop
	fd         int
	generation uint32 // tells this connection's events from those of an earlier one on the same fd

	idle   idleState
	output outputState

	// Nil while the connection is at rest; the loop's own while it is served; and
	// taken over from the loop as long as half a request has to be kept (see
	// settle).
	*input

	inputEnded bool // the client will send no more
	more       bool // the kernel may hold more input than was read
	hungUp     bool // an event has said that the input ends, or that the socket failed
	queued     bool // it waits for another turn of its loop
	borrowed   bool // its input is not the loop's
	closing    bool // an answer with Connection: close has been made
	broken     bool // a write failed: the client is gone
	noRoom     bool // there is no room for this one: it gets a 503
	closed     bool
	discarded  int // bytes dropped while lingering
}

// input is what has been read and is not yet answered.
type input struct {
	// The read buffer. in[start:next] is the request that is being read,
	// in[next:end] has not been looked at yet. A body is decoded in place: it
	// begins where the head ends, and has moved over the frames of its chunks, so
	// that between its end and next there may be a gap.
	in               []byte
	start, next, end int

	judge    http1.Judge
	started  bool // the current request has at least one byte
	headDone bool // its head is complete

	body     http1.Body
	inPlace  int    // bytes of body decoded in the read buffer, right behind the head
	outgrown []byte // the body instead, once the read buffer is too small for it
}

// newConn makes a connection of fd for l, which the caller then assigns it to.
// opener counts for the thread that accepted it. It fails when the timer finds
// no descriptor; fd then still belongs to the caller.
func newConn(l *loop, opener *netpoll.Counters, fd int, generation uint32, now time.Duration, noRoom bool) (*conn, error) {
	c := &conn{loop: l, fd: fd, generation: generation, noRoom: noRoom}
	if err := c.startTimer(opener, now); err != nil {
		return nil, err
	}
	opener.Connections++
	return c, nil
}

// ready is called by the loop on an edge: the socket has become readable or
// writable. There is no second call for what it leaves behind, so it notes that
// there is input even where it cannot take it now.
func (c *conn) ready(event *netpoll.Event) {
	if event.Readable() {
		c.more = true
	}
	if event.Closed() {
		c.more, c.hungUp = true, true
	}
	c.takeTurn()
}

// takeTurn goes on with the connection for as long as there is something to do
// and the others need not wait too long.
func (c *conn) takeTurn() {
	c.takeInput()
	switch {
	case c.idle.phase == lingering:
		c.discard()
	case c.blocked():
		// Nothing was read while the client did not take its answers. Now go on
		// with those requests that had arrived before.
		if c.resume(); !c.mayRead() {
			c.serve()
		}
	}
	for range readsPerTurn {
		if !c.mayRead() {
			break
		}
		c.read()
	}
	if c.mayRead() {
		c.loop.queue(c)
	}
	if !c.closed {
		c.settle()
		c.rearm()
	}
}

func (c *conn) takeInput() {
	if c.input == nil {
		c.input = c.loop.input
	}
}

// mayRead reports whether there is input to read, and whether it may be read now.
func (c *conn) mayRead() bool {
	return c.more && !c.closed && !c.blocked() && c.idle.phase != lingering
}

// read takes what has arrived, in one system call: a short read has emptied the
// socket, so there is no second one to be told EAGAIN. Only the end of the input
// gives no edge of its own behind data; the event has told of it (epoll(7)).
func (c *conn) read() {
	c.makeRoom()
	room := c.in[c.end:]
	n, err := netpoll.Receive(&c.loop.counters, c.fd, room)
	switch err {
	case nil:
		c.end += n
		c.more = n == len(room) || c.hungUp
		c.idle.progress = c.loop.now
	case netpoll.ErrWouldBlock:
		c.more = false
	case io.EOF:
		c.more, c.inputEnded = false, true
	default:
		c.close()
		return
	}
	c.serve()
}

// serve answers every request that has arrived in full, then decides what the
// connection waits for.
func (c *conn) serve() {
	if c.noRoom && !c.closing {
		c.refuse(http1.Fault{Status: 503})
	}
	for !c.closing && !c.broken && !c.blocked() && c.whole() {
		c.handle()
	}
	c.flush()

	switch {
	case c.broken:
		c.close()
	case c.blocked():
		c.waitFor(writing)
	case c.closing:
		c.linger()
	case c.inputEnded:
		// A half-closed client has had its answers; half a request gets none.
		c.close()
	case c.headDone:
		c.waitFor(readingBody)
	case c.started:
		c.waitFor(readingHead)
	case c.loop.draining && !c.more:
		// Nothing has arrived, and the server is about to end.
		c.linger()
	case c.idle.phase == writing:
		c.answered() // the client has taken all that was kept, and is idle from here on
	}
}

// whole reads on in the current request and reports whether it is complete. A
// request that breaks the rules is answered here.
func (c *conn) whole() bool {
	if !c.headDone {
		if c.start == c.end {
			return false
		}
		if !c.started {
			c.started = true
			c.judge.Reset(c.loop.config.MaxBody)
			c.requestStarted()
		}
		switch c.judge.Scan(c.in[c.start:c.end]) {
		case http1.Incomplete:
			return false
		case http1.Faulty:
			c.refuse(c.judge.Fault())
			return false
		}
		c.beginBody()
	}
	return c.wholeBody()
}

// beginBody is called once a request, when its head is complete.
func (c *conn) beginBody() {
	head := c.judge.Head()
	c.headDone = true
	c.next = c.start + head.Length
	c.body.Reset(head, c.loop.config.MaxBody)
	if head.ExpectContinue {
		c.respondContinue()
	}
}

// wholeBody decodes what has arrived of the body: in place, right behind the
// head, or into a buffer of its own once it has outgrown the read buffer.
func (c *conn) wholeBody() bool {
	head := c.judge.Head()
	if head.ContentLength == 0 && !head.Chunked {
		return true
	}
	first := c.start + head.Length
	content := c.in[first : first+c.inPlace]
	if c.outgrown != nil {
		content = c.loop.counters.GrowBuffer(c.outgrown, c.end-c.next)
	}
	content, used, verdict := c.body.Append(content, c.in[c.next:c.end])
	c.next += used
	if c.outgrown == nil {
		c.inPlace = len(content)
	} else if c.outgrown = content; c.next == c.end {
		// All of it has moved on: the room behind the head is free again.
		c.next, c.end = first, first
	}
	if verdict == http1.Faulty {
		c.refuse(c.body.Fault())
	}
	return verdict == http1.Complete
}

// makeRoom sees to it that there is room behind in[:end] to read into. No view
// is alive here: every answer so far is with the kernel or copied.
func (c *conn) makeRoom() {
	if c.start > 0 {
		copy(c.in, c.in[c.start:c.end])
		c.next -= c.start
		c.end -= c.start
		c.start = 0
	}
	if c.end < len(c.in) {
		return
	}
	// Only a body can fill the buffer, as the judge stops a head before that. It
	// moves to a buffer that grows with what has arrived, never with what a
	// client announced.
	first := c.judge.Head().Length
	c.outgrown = append(c.loop.counters.GrowBuffer(nil, 2*readBufferSize), c.in[first:first+c.inPlace]...)
	c.inPlace = 0
	c.next, c.end = first, first
}

// settle ends a turn. A connection that has input left over, mostly half a
// request, keeps the loop's input with it, buffer and all, and the loop takes
// another from its pool; one that has nothing to keep holds nothing.
func (c *conn) settle() {
	switch {
	case c.start == c.end || c.idle.phase == lingering:
		c.dropInput()
	case !c.borrowed:
		c.borrowed = true
		c.loop.lend()
	}
}

func (c *conn) dropInput() {
	if c.outgrown != nil {
		c.dropOutgrown()
	}
	c.start, c.next, c.end = 0, 0, 0
	c.started, c.headDone, c.inPlace = false, false, 0
	if c.borrowed {
		c.loop.giveBack(c.input)
	}
	c.input, c.borrowed = nil, false
}

// handle turns the complete request into an answer.
func (c *conn) handle() {
	l := c.loop
	head := c.judge.Head()
	request, response := &l.request, &l.response
	response.Reset()
	if fault := c.parse(request, head, c.in[c.start:c.start+head.Length]); fault.Status != 0 {
		c.refuse(fault)
		return
	}
	first := c.start + head.Length
	request.Body = c.in[first : first+c.inPlace]
	if c.outgrown != nil {
		request.Body = c.outgrown
	}
	c.call(request, response)
	bodiless := request.Method == "HEAD"
	// While draining, the last request that has arrived is the one that says so.
	last := l.draining && c.next == c.end && !c.more
	c.answer(response, bodiless, head.KeepAlive && !last)
}

// call runs the handler. Its panic costs one connection, not the server.
func (c *conn) call(request *http1.Request, response *http1.Response) {
	defer func() {
		if value := recover(); value != nil {
			c.loop.config.ReportPanic(request, value)
			response.Reset()
			response.Error(500)
			response.Close = true
		}
	}()
	c.loop.config.App.Serve(request, response)
}

// refuse answers a request that is not served, and closes: where the next one
// would begin is not known.
func (c *conn) refuse(fault http1.Fault) {
	response := &c.loop.response
	response.Reset()
	fault.Response(response)
	bodiless := http1.IsHead(c.in[c.start:c.end])
	c.next = c.end
	c.answer(response, bodiless, false)
}

// answer hands the response on and makes the connection ready for the next
// request.
func (c *conn) answer(response *http1.Response, bodiless, keepAlive bool) {
	response.Close = response.Close || !keepAlive
	response.KeepAlive = !response.Close && c.judge.Head().Minor == 0
	c.closing = response.Close
	c.loop.counters.Requests++
	c.respond(response, bodiless)
	c.endViews()
	if c.outgrown != nil {
		c.dropOutgrown()
	}
	c.started, c.headDone = false, false
	c.inPlace = 0
	c.answered()
}

func (c *conn) dropOutgrown() {
	if c.loop.config.Poison {
		overwrite(c.outgrown)
	}
	c.loop.counters.Release(cap(c.outgrown))
	c.outgrown = nil
}

// endViews goes on behind the request that has been answered. What was a view
// of its bytes is with the kernel by now, or copied. In the test mode they are
// overwritten, so that a view which somebody kept cannot go unnoticed.
func (c *conn) endViews() {
	if c.loop.config.Poison {
		overwrite(c.in[c.start:c.next])
	}
	c.start = c.next
}

func overwrite(b []byte) {
	for i := range b {
		b[i] = '!'
	}
}

// timedOut is called by idle.go when the deadline of the phase has passed.
func (c *conn) timedOut() {
	c.takeInput()
	switch c.idle.phase {
	case readingHead, readingBody:
		c.refuse(http1.Fault{Status: 408})
	case refusing:
		c.refuse(http1.Fault{Status: 503})
	default:
		// Idle, or it takes no byte of its answer, or it has lingered enough.
		c.close()
		return
	}
	c.serve()
	if !c.closed {
		c.settle()
	}
}

// drain is called once, when the server begins to stop.
func (c *conn) drain() {
	c.more = true // what has arrived by now is still to be answered
	if c.idle.phase == lingering || c.blocked() {
		return // it ends by itself
	}
	c.takeTurn()
}

// linger closes without losing the answer. A close with unread input makes the
// kernel send a reset, and a reset lets the client's kernel throw away what it
// has not read yet; so say that no more will come, and read on for a while.
func (c *conn) linger() {
	if c.inputEnded || netpoll.ShutdownWrite(&c.loop.counters, c.fd) != nil {
		c.close()
		return
	}
	c.waitFor(lingering)
	c.discard() // no edge comes for what is there already
}

// discard drops what a lingering client still sends.
func (c *conn) discard() {
	for c.more {
		n, err := netpoll.Receive(&c.loop.counters, c.fd, c.in)
		c.discarded += n
		switch {
		case err == netpoll.ErrWouldBlock:
			c.more = false
		case err != nil || c.discarded >= lingerLimit:
			c.close()
			return
		default:
			c.more = n == len(c.in) || c.hungUp
		}
	}
}

// close gives everything back that the connection holds.
func (c *conn) close() {
	c.closed = true
	c.stopTimer()
	netpoll.Close(&c.loop.counters, c.fd)
	c.dropOutput()
	if c.input != nil {
		c.dropInput()
	}
	c.loop.counters.Connections--
	c.loop.forget(c)
}
