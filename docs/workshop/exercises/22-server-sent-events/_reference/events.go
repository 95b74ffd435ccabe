package main

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

const (
	// eventsPath is where events are: GET subscribes to them, POST publishes its
	// body.
	eventsPath = "/events"

	// A loop's log has the newest events: so many, and so many bytes of them, but
	// one however large.
	logEvents = 256
	logBytes  = 1 << 20

	// eventPieces is how many pieces of a vector an event takes.
	eventPieces = 3
)

var (
	crlf      = []byte("\r\n")
	lastChunk = []byte("0\r\n\r\n")

	// A comment is a line that begins with a colon, and means nothing.
	comment        = []byte(":\n\n")
	chunkedComment = []byte("3\r\n:\n\n\r\n")
)

// A hub numbers what is published, for all loops.
type hub struct {
	sync.Mutex
	last uint64 // the number of the newest event; 0 before the first
}

// An event is one that has been published, made once for all subscribers, as it
// is sent: a chunk of a line for its number, one for each line of its data, and an
// empty one (RFC 9112, 7.1; HTML Living Standard, 9.2.6). All loops have it, so
// nobody writes to it.
type event struct {
	head  []byte // the chunk's size and CRLF, then the first line without its end
	frame int    // how much of head is the frame, which HTTP/1.0 does not get
	lines []byte // the rest, from the end of that line on
}

// loopEvents is what a loop has of events. Its log is what all of its subscribers
// are served from: each has a place in it, and none a queue of its own.
type loopEvents struct {
	log         []*event // the newest, in their order
	last        uint64   // the number of the newest
	bytes       int      // of all lines in the log
	subscribers []*conn
}

// first is the number of the oldest event in the log.
func (e *loopEvents) first() uint64 { return e.last + 1 - uint64(len(e.log)) }

func (e *loopEvents) add(newest *event) {
	e.last++
	e.log = append(e.log, newest)
	e.bytes += len(newest.lines)
	for len(e.log) > logEvents || e.bytes > logBytes && len(e.log) > 1 {
		e.bytes -= len(e.log[0].lines)
		e.log[0] = nil // the array keeps nothing alive
		e.log = e.log[1:]
	}
}

// A stream is what a connection has of events.
type stream struct {
	asked   bool   // its head has still to be made
	open    bool   // it gets events
	chunked bool   // in chunks: not with HTTP/1.0
	place   int    // among the loop's subscribers
	next    uint64 // the number of the event that it gets next
}

// serveEvents answers a request for eventsPath. A stream has no end that another
// answer could stand behind, so it is the last one of its connection.
func (c *conn) serveEvents(request *http1.Request, response *http1.Response) {
	switch request.Method {
	case "GET":
		c.subscribe(request)
		response.Status, response.Close = 200, true
	case "HEAD":
		c.stream.asked = true
		response.Status, response.Close = 200, true
	case "POST":
		c.publish(request.Body)
		response.Status = 204
	default:
		response.Error(405)
		response.Allow = "GET, HEAD, POST"
	}
}

func (c *conn) subscribe(request *http1.Request) {
	e := &c.loop.events
	c.stream = stream{
		asked: true, open: true, chunked: request.Minor > 0, place: len(e.subscribers),
		next: c.loop.resumeAt(request.Header("Last-Event-Id")),
	}
	e.subscribers = append(e.subscribers, c)
}

// resumeAt is what a client gets first that says which event it has had last: the
// one behind it, or the oldest that there is. One that names none, or none that
// there has been (a server that has started anew counts from 1), gets what comes
// from now on. A number may be ahead of this loop's log, if another loop was
// faster.
func (l *loop) resumeAt(lastEventID string) uint64 {
	h := &l.server.hub
	h.Lock()
	newest := h.last
	h.Unlock()
	number, err := strconv.ParseUint(lastEventID, 10, 64)
	if err != nil || number > newest {
		return l.events.last + 1
	}
	return max(number+1, l.events.first())
}

// unsubscribe ends the stream, if there is one. The last subscriber moves to its
// place.
func (c *conn) unsubscribe() {
	if !c.stream.open {
		return
	}
	e := &c.loop.events
	last := len(e.subscribers) - 1
	moved := e.subscribers[last]
	moved.stream.place = c.stream.place
	e.subscribers[moved.stream.place] = moved
	e.subscribers[last] = nil
	e.subscribers = e.subscribers[:last]
	c.stream = stream{}
}

// publish gives an event to all loops, this one among them: each finds it among
// its messages, so that all have the same order. body is a view, and copied here
// for once.
func (c *conn) publish(body []byte) {
	l := c.loop
	e := &event{lines: l.appendLines(nil, body)}
	h := &l.server.hub
	h.Lock()
	defer h.Unlock()
	h.last++
	id := strconv.AppendUint([]byte("id: "), h.last, 10)
	e.head = strconv.AppendInt(nil, int64(len(id)+len(e.lines)), 16)
	e.head = append(e.head, crlf...)
	e.frame = len(e.head)
	e.head = append(e.head, id...)
	for _, other := range l.server.loops {
		if other != l {
			l.counters.Handoffs++
		}
		other.post(&l.counters, message{what: relay, event: e})
	}
}

// appendLines appends what follows the number: a line of data for each line of
// body, which may end with CR, LF or both, and an empty one.
func (l *loop) appendLines(dst, body []byte) []byte {
	for {
		dst = append(dst, "\ndata: "...)
		end := bytes.IndexAny(body, "\r\n")
		if end < 0 {
			dst = l.counters.CopyBody(dst, body)
			return append(dst, "\n\n"...)
		}
		dst = l.counters.CopyBody(dst, body[:end])
		if bytes.HasPrefix(body[end:], crlf) {
			end++
		}
		body = body[end+1:]
	}
}

// deliver sends an event to all subscribers of the loop. From the last to the
// first: one that ends meanwhile is replaced by one that has had its turn.
func (l *loop) deliver(e *event) {
	l.events.add(e)
	for i := len(l.events.subscribers) - 1; i >= 0; i-- {
		c := l.events.subscribers[i]
		switch {
		case !c.blocked():
			c.takeTurn()
		case c.tooSlow():
			c.close()
		}
	}
}

// tooSlow reports whether the log has lost what the subscriber is to get next. It
// is dropped then: to wait for it would hold all the others, to keep for it what
// it has not taken would grow without bound, and to pass over a part would let it
// believe that it has had everything. It comes back when it can, with the number
// of the last event that it has had, and gets what the log has.
func (c *conn) tooSlow() bool { return c.stream.next < c.loop.events.first() }

// goOnStreaming is the turn of a connection that has a stream: an event has come,
// the client has gone or takes bytes again, or the server stops.
func (c *conn) goOnStreaming() {
	if c.discard(); c.closed {
		return // the client has ended its side
	}
	if c.blocked() {
		c.resume()
	}
	if !c.broken && !c.blocked() {
		if c.tooSlow() {
			c.close()
			return
		}
		c.sendEvents()
	}
	switch {
	case c.broken:
		c.close()
	case c.blocked():
		c.waitFor(writing)
	case c.stream.next <= c.loop.events.last:
		c.loop.queue(c) // the others have a turn first
	case c.loop.draining:
		c.endStream()
	default:
		// The timer was set for an earlier moment, and finds out by itself.
		c.enter(streaming)
		c.setTimerIfSooner()
	}
}

// sendEvents sends what the subscriber has not had, as many events in one call as
// a vector has room for, and by reference: what the socket does not take waits as
// such in c.output.
func (c *conn) sendEvents() {
	l, s, a := c.loop, &c.stream, &c.loop.responses
	for s.next <= l.events.last && l.spent < turnLimit && !c.broken && !c.blocked() {
		first := l.events.first()
		for s.next <= l.events.last && len(a.stable)+eventPieces <= cap(a.stable) && a.size() < batchBytes {
			e := l.events.log[s.next-first]
			if s.chunked {
				a.add(e.head, true)
				a.add(e.lines, true)
				a.add(crlf, true)
			} else {
				a.add(e.head[e.frame:], true)
				a.add(e.lines, true)
			}
			s.next++
		}
		l.spent += max(a.size(), requestCost)
		c.flush()
	}
}

// endStream says that nothing follows, so that the client can tell this end from
// a broken one.
func (c *conn) endStream() {
	chunked := c.stream.chunked
	c.unsubscribe()
	if chunked {
		c.loop.responses.add(lastChunk, true)
		c.flush()
	}
	switch {
	case c.broken:
		c.close()
	case c.blocked():
		c.waitFor(writing)
	default:
		c.linger()
	}
}

// quiet is called when a stream has said nothing for long.
func (c *conn) quiet() {
	text := chunkedComment
	if !c.stream.chunked {
		text = comment
	}
	c.loop.responses.add(text, true)
	c.flush()
	c.takeTurn()
}
