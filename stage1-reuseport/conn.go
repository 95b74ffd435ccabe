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

	// A turn ends when its answers add up to turnLimit bytes, each counted as
	// requestCost at least. The rest waits until the others have had a turn.
	turnLimit   = 256 << 10
	requestCost = 4 << 10

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
	input

	inputEnded bool // the client will send no more
	more       bool // the kernel may hold more input than was read
	queued     bool // it waits for another turn of its loop
	unserved   bool // a turn has ended before all that was read had been served
	announced  bool // the client has said that the request answered last was its last
	closing    bool // an answer with Connection: close has been made
	broken     bool // a write failed: the client is gone
	closed     bool
	discarded  int // bytes dropped while lingering
}

// input is what has been read and is not yet answered.
type input struct {
	// The read buffer. While a head is being read, next is start, and the judge
	// looks at in[start:end]. Behind a head, in[start:next] is the request as far
	// as it has been read, and in[next:end] has not been looked at yet. A body is
	// decoded in place: it begins where the head ends, and has moved over the
	// frames of its chunks, so that between its end and next there may be a gap.
	in               []byte
	start, next, end int

	judge        http1.Judge
	started      bool // the current request has at least one byte
	headComplete bool

	body     http1.Body
	inPlace  int    // bytes of body decoded in the read buffer, right behind the head
	outgrown []byte // the body instead, once the read buffer is too small for it
}

// newConn makes the connection for fd, which l will own; the caller hands it to
// l. opener counts for the thread that accepted it. It fails when the timer finds
// no descriptor; fd then stays the caller's.
func newConn(l *loop, opener *netpoll.Counters, fd int, generation uint32, now time.Duration) (*conn, error) {
	c := &conn{loop: l, fd: fd, generation: generation}
	if err := c.startTimer(opener, now); err != nil {
		return nil, err
	}
	c.in = opener.NewBuffer(readBufferSize)
	opener.Connections++
	return c, nil
}

// ready is called by the loop when the socket can be read or written.
func (c *conn) ready() {
	if !c.blocked() {
		c.more = true
	}
	c.takeTurn()
}

// takeTurn goes on with the connection, but not for so long that the others have
// to wait.
func (c *conn) takeTurn() {
	c.loop.spent = 0
	switch {
	case c.idle.phase == lingering:
		c.discard()
	case c.blocked():
		// Nothing was read while the client did not take its answers. Now go on
		// with those requests that had arrived before.
		if c.resume(); !c.mayRead() {
			c.serve()
		}
	case c.unserved:
		c.serve()
	}
	if c.mayRead() && c.receive() {
		c.serve()
	}
	if c.loop.draining && c.mayRead() {
		c.loop.queue(c) // no event comes if that was all
	}
	c.endTurn()
}

// endTurn lets the next event come, unless another turn does.
func (c *conn) endTurn() {
	if !c.closed && !c.queued {
		c.rearm()
	}
}

// mayRead reports whether there is input to read, and whether it may be read now.
func (c *conn) mayRead() bool {
	return c.more && !c.closed && !c.unserved && !c.blocked() && c.idle.phase != lingering
}

// receive takes what has arrived, in one system call: rearm reports again what
// one read has left, so there is no need to read until EAGAIN. It reports whether
// the connection is still open.
func (c *conn) receive() bool {
	c.makeRoom()
	room := c.in[c.end:]
	n, err := netpoll.Receive(&c.loop.counters, c.fd, room)
	switch err {
	case nil:
		c.end += n
		c.more = n == len(room)
		c.idle.progress = c.loop.now
	case netpoll.ErrWouldBlock:
		c.more = false
	case io.EOF:
		c.more, c.inputEnded = false, true
	default:
		c.close()
	}
	return !c.closed
}

// serve answers the requests that have arrived in full, for as long as the turn
// lasts, then decides what the connection waits for.
func (c *conn) serve() {
	for c.unserved = false; !c.unserved && !c.closing && !c.broken && !c.blocked() && c.advance(); {
		c.handle()
		c.unserved = c.loop.spent >= turnLimit && c.start < c.end
	}
	c.flush()

	switch {
	case c.broken:
		c.close()
	case c.blocked():
		c.waitFor(writing)
	case c.closing:
		c.linger()
	case c.unserved:
		c.loop.queue(c)
	case c.inputEnded:
		// A half-closed client has had its answers; half a request gets none.
		c.close()
	case c.headComplete:
		c.waitFor(readingBody)
	case c.started:
		c.waitFor(readingHead)
	case c.loop.draining && !c.more:
		// Nothing has arrived, and the server is about to end.
		c.linger()
	case c.idle.phase == writing:
		c.requestFinished() // the client has taken all that was kept, and is idle from here on
	}
}

// advance reads on in the current request and reports whether it is complete. A
// request that breaks the rules is answered here.
func (c *conn) advance() bool {
	if !c.headComplete {
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
			c.reject(c.judge.Fault())
			return false
		}
		c.beginBody()
	}
	return c.advanceBody()
}

// beginBody is called once a request, when its head is complete.
func (c *conn) beginBody() {
	head := c.judge.Head()
	c.headComplete = true
	c.next = c.start + head.Length
	c.body.Reset(head, c.loop.config.MaxBody)
	if head.ExpectContinue {
		c.respondContinue()
	}
}

// advanceBody decodes what has arrived of the body: in place, right behind the
// head, or into a buffer of its own once it has outgrown the read buffer.
func (c *conn) advanceBody() bool {
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
		c.reject(c.body.Fault())
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

// handle turns the complete request into an answer.
func (c *conn) handle() {
	l := c.loop
	head := c.judge.Head()
	request, response := &l.request, &l.response
	response.Reset()
	if fault := c.parse(request, head, c.in[c.start:c.start+head.Length]); fault.Status != 0 {
		c.reject(fault)
		return
	}
	first := c.start + head.Length
	request.Body = c.in[first : first+c.inPlace]
	if c.outgrown != nil {
		request.Body = c.outgrown
	}
	bodiless := request.Method == "HEAD"
	c.call(request, response)
	// While draining, the last request that has arrived is the one that says so. An
	// event may have told of input that a turn has read since: ask the socket.
	last := l.draining && c.next == c.end && (!c.more || netpoll.Unread(&l.counters, c.fd) == 0)
	c.announced = !head.KeepAlive
	c.reply(response, bodiless, head.KeepAlive && !last)
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

// reject answers a request that is not served, and closes: where the next one
// would begin is not known.
func (c *conn) reject(fault http1.Fault) {
	response := &c.loop.response
	response.Reset()
	fault.Response(response)
	bodiless := http1.IsHead(c.in[c.start:c.end])
	c.next = c.end
	c.reply(response, bodiless, false)
}

// reply hands the response on and makes the connection ready for the next
// request.
func (c *conn) reply(response *http1.Response, bodiless, keepAlive bool) {
	response.Close = response.Close || !keepAlive
	response.KeepAlive = !response.Close && c.judge.Head().Minor == 0
	c.closing = response.Close
	c.loop.counters.Requests++
	c.loop.spent += max(len(response.Body), requestCost)
	c.respond(response, bodiless)
	c.consumeRequest()
	if c.outgrown != nil {
		c.dropOutgrown()
	}
	c.started, c.headComplete = false, false
	c.inPlace = 0
	c.requestFinished()
}

func (c *conn) dropOutgrown() {
	if c.loop.config.Poison {
		overwrite(c.outgrown)
	}
	c.loop.counters.Release(cap(c.outgrown))
	c.outgrown = nil
	// Or the loop's views would keep it alive until its next request.
	c.loop.request.Body, c.loop.response.Body = nil, nil
}

// consumeRequest moves start past the request that has been answered. What was a
// view of its bytes is with the kernel by now, or copied. In the test mode they
// are overwritten, so that a view which somebody kept cannot go unnoticed.
func (c *conn) consumeRequest() {
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
	switch c.idle.phase {
	case readingHead, readingBody:
		c.reject(http1.Fault{Status: 408})
		c.serve()
		c.endTurn()
	default:
		// Idle, or it takes no byte of its answer, or it has lingered enough.
		c.close()
	}
}

// lastTurn is called once, when the server begins to stop: what has arrived by
// now is still to be answered.
func (c *conn) lastTurn() {
	c.more = true
	if c.idle.phase != lingering && !c.blocked() { // those end by themselves
		c.takeTurn()
	}
}

// linger closes without losing the answer. A close with unread input makes the
// kernel send a reset, and a reset lets the client's kernel throw away what it
// has not read yet; so say that no more will come, and read on for a while. A
// client that has announced its last request, and sent nothing behind it, needs
// no such care.
func (c *conn) linger() {
	silent := c.announced && c.start == c.end && netpoll.Unread(&c.loop.counters, c.fd) == 0
	if silent || c.inputEnded || netpoll.ShutdownWrite(&c.loop.counters, c.fd) != nil {
		c.close()
		return
	}
	c.waitFor(lingering)
}

// discard drops what a lingering client still sends.
func (c *conn) discard() {
	n, err := netpoll.Receive(&c.loop.counters, c.fd, c.in)
	c.discarded += n
	if err == netpoll.ErrWouldBlock {
		return
	}
	if err != nil || c.discarded >= lingerLimit {
		c.close()
	}
}

// close gives everything back that the connection holds.
func (c *conn) close() {
	c.closed = true
	c.stopTimer()
	netpoll.Close(&c.loop.counters, c.fd)
	c.dropOutput()
	if c.outgrown != nil {
		c.dropOutgrown()
	}
	c.loop.counters.Release(cap(c.in))
	c.in = nil
	c.loop.counters.Connections--
	c.loop.forget(c)
}
