package main

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/qps-ladder/qps-ladder/shared/http1"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// eventsPath is where events are: GET subscribes to them, POST publishes its body.
const eventsPath = "/events"

// A hub numbers what is published, for all loops.
type hub struct {
	sync.Mutex
	last uint64 // the number of the newest event; 0 before the first
}

// An event is one that has been published. All loops have it, so nobody writes to
// it.
type event struct {
	number uint64
	body   []byte
}

// loopEvents is what a loop has of events.
type loopEvents struct {
	subscribers []*conn
}

// A stream is what a connection has of them.
type stream struct {
	asked   bool     // its head has still to be made
	open    bool     // it gets events
	chunked bool     // in chunks: not with HTTP/1.0
	place   int      // among the loop's subscribers
	waiting [][]byte // pieces that have still to be sent
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
	c.stream = stream{asked: true, open: true, chunked: request.Minor > 0, place: len(e.subscribers)}
	e.subscribers = append(e.subscribers, c)
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
// its messages, so that all have the same order. body is a view.
func (c *conn) publish(body []byte) {
	l := c.loop
	own := l.counters.CopyBody(nil, body)
	h := &l.server.hub
	h.Lock()
	defer h.Unlock()
	h.last++
	e := &event{number: h.last, body: own}
	for _, other := range l.server.loops {
		if other != l {
			l.counters.Handoffs++
		}
		other.post(&l.counters, message{what: relay, event: e})
	}
}

// deliver sends an event to all subscribers of the loop. From the last to the
// first: one that ends meanwhile is replaced by one that has had its turn.
func (l *loop) deliver(e *event) {
	for i := len(l.events.subscribers) - 1; i >= 0; i-- {
		c := l.events.subscribers[i]
		text := l.appendEvent(nil, e)
		if c.stream.chunked {
			// A chunk (RFC 9112, 7.1): size, CRLF, data, CRLF.
			size := strconv.AppendInt(nil, int64(len(text)), 16)
			c.stream.waiting = append(c.stream.waiting, size, []byte("\r\n"), text, []byte("\r\n"))
		} else {
			c.stream.waiting = append(c.stream.waiting, text)
		}
		c.takeTurn()
	}
}

// appendEvent appends an event as it is sent: a line for its number, one for each
// line of its data, and an empty one (HTML Living Standard, 9.2.6).
func (l *loop) appendEvent(dst []byte, e *event) []byte {
	dst = append(dst, "id: "...)
	dst = strconv.AppendUint(dst, e.number, 10)
	for rest := e.body; ; {
		dst = append(dst, "\ndata: "...)
		end := bytes.IndexAny(rest, "\r\n")
		if end < 0 {
			dst = l.counters.CopyBody(dst, rest)
			return append(dst, "\n\n"...)
		}
		dst = l.counters.CopyBody(dst, rest[:end])
		if bytes.HasPrefix(rest[end:], []byte("\r\n")) {
			end++
		}
		rest = rest[end+1:]
	}
}

// goOnStreaming is the turn of a connection that has a stream: an event has come,
// the client has gone or takes bytes again, or the server stops.
func (c *conn) goOnStreaming() {
	if c.discard(); c.closed {
		return // the client has ended its side
	}
	if c.blocked() {
		c.resume()
	}
	switch {
	case c.broken:
		c.close()
	case c.blocked():
		c.waitFor(writing)
	default:
		c.sendEvents()
	}
}

// sendEvents sends what waits, as far as the socket takes it.
func (c *conn) sendEvents() {
	s := &c.stream
	for len(s.waiting) > 0 {
		piece := s.waiting[0]
		n, err := netpoll.Send(&c.loop.counters, c.fd, piece)
		if err == netpoll.ErrWouldBlock {
			c.waitFor(writing)
			return
		}
		if err != nil {
			c.close()
			return
		}
		if s.waiting[0] = piece[n:]; n == len(piece) {
			s.waiting = s.waiting[1:]
		}
	}
	if c.loop.draining {
		c.close()
		return
	}
	c.enter(streaming)
	c.setTimerIfSooner()
}

// quiet is called when a stream has said nothing for long.
func (c *conn) quiet() { c.close() }
