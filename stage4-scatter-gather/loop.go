package main

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/http1"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
	"github.com/qps-ladder/qps-ladder/shared/serve"
)

// A loop is one thread that accepts connections, waits for their events, and
// handles them. All of it belongs to that thread, but for inbox, load and
// published; any thread may wake its poller.
type loop struct {
	server    *server
	config    *serve.Config
	poller    *netpoll.Poller
	acceptor  *netpoll.Acceptor // nil where another loop accepts
	counters  netpoll.Counters
	published netpoll.Published

	conns      []*conn // by descriptor: a connection stands at its socket's and at its timer's
	generation uint32

	open     int
	load     atomic.Int64  // the same number, for other threads to see
	now      time.Duration // since the server started; read once a turn
	spent    int           // what the present connection's turn has answered
	queued   []*conn       // they wait for another turn
	draining bool
	killed   bool

	// What a request needs while it is handled; the next one uses it again.
	reader     requestReader
	request    http1.Request
	response   http1.Response
	headWriter headWriter
	responses  responseBuffer

	inbox struct {
		sync.Mutex
		messages []message
	}
	taken []message // those that are being handled
}

// A message is what another thread wants of a loop.
type message struct {
	conn *conn
	what task
}

type task uint8

const (
	adopt task = iota // take this new connection
	drain             // begin to stop
	kill              // stop now
)

func newLoop(s *server) (*loop, error) {
	l := &loop{
		server:     s,
		config:     s.config,
		reader:     newRequestReader(),
		headWriter: newHeadWriter(),
		responses:  newResponseBuffer(),
	}
	var err error
	l.poller, err = netpoll.NewPoller(&l.counters)
	return l, err
}

// run waits for events and handles them, until the server has stopped. l is
// loop i.
func (l *loop) run(i int) {
	// The thread is the loop's alone: no other goroutine runs on it, and the
	// scheduler does not move the loop elsewhere.
	runtime.LockOSThread()
	l.config.PinLoop(i)
	for !l.draining || l.open > 0 {
		l.published.Publish(&l.counters)
		timeout := l.acceptor.Timeout()
		if len(l.queued) > 0 {
			timeout = 0
		}
		events, err := l.poller.Wait(&l.counters, timeout)
		if err != nil {
			panic(err) // epoll_wait(2) fails for a wrong descriptor only
		}
		l.now = time.Since(l.server.started)
		for i := range events {
			l.dispatch(&events[i])
		}
		l.serveQueued()
		l.acceptor.Maintain()
	}
	l.published.Publish(&l.counters)
}

// dispatch hands an event to what it is about.
func (l *loop) dispatch(event *netpoll.Event) {
	fd := event.FD()
	switch {
	case event.IsWake():
		l.readInbox()
	case l.acceptor.Has(event):
		l.acceptor.Handle(event, l.take)
	default:
		// An earlier event of this turn may have closed the connection, and a
		// new one may have its descriptor: the generation tells them apart.
		c := l.conns[fd]
		if c == nil || c.generation != event.Generation() {
			return
		}
		if fd == c.idle.timer {
			c.timerFired()
		} else {
			c.ready()
		}
	}
}

// take makes a connection of a socket that has been accepted.
func (l *loop) take(fd int) error {
	if !l.server.admit() {
		return netpoll.ErrNoRoom
	}
	l.generation = max(l.generation+1, 1) // 0 is the acceptor's
	c, err := newConn(l.server.placement(l), &l.counters, fd, l.generation, l.now)
	if err != nil {
		l.server.discharge()
		return err
	}
	l.assign(c)
	return nil
}

// assign begins to wait for a new connection's events, or hands it to the
// loop that it was made for.
func (l *loop) assign(c *conn) {
	if c.loop != l {
		l.counters.Handoffs++
		c.loop.load.Add(1)
		c.loop.post(&l.counters, message{conn: c, what: adopt})
		return
	}
	l.load.Add(1)
	l.adopt(c)
}

// adopt adds a connection's socket and its timer to the epoll set. The socket is
// re-armed after each event.
func (l *loop) adopt(c *conn) {
	if last := max(c.fd, c.idle.timer); last >= len(l.conns) {
		l.conns = append(l.conns, make([]*conn, last+1-len(l.conns))...)
	}
	l.conns[c.fd], l.conns[c.idle.timer] = c, c
	l.open++
	err := l.poller.Add(&l.counters, c.fd, c.generation, netpoll.Readable|netpoll.OneShot)
	if err == nil {
		// Edge-triggered, so that nobody has to read the timer to silence it.
		err = l.poller.Add(&l.counters, c.idle.timer, c.generation, netpoll.Readable|netpoll.EdgeTriggered)
	}
	if err != nil || l.killed {
		c.close() // the kernel has no memory for it, or it comes too late
	}
}

// rearm lets the next event of the connection come, one system call for each
// event. Only this thread waits here, so nothing needs one-shot any more: it is a
// leftover from stage 0, where it was needed.
func (c *conn) rearm() {
	interest := netpoll.Readable | netpoll.OneShot
	if c.blocked() {
		interest = netpoll.Writable | netpoll.OneShot
	}
	if c.loop.poller.Modify(&c.loop.counters, c.fd, c.generation, interest) != nil {
		c.close() // no event would ever come again
	}
}

// queue gives a connection another turn, after the others have had theirs.
func (l *loop) queue(c *conn) {
	if !c.queued {
		c.queued = true
		l.queued = append(l.queued, c)
	}
}

// serveQueued gives those connections a turn that were queued before it.
func (l *loop) serveQueued() {
	n := len(l.queued)
	for _, c := range l.queued[:n] {
		c.queued = false
		if !c.closed {
			c.takeTurn()
		}
	}
	l.queued = slices.Delete(l.queued, 0, n)
}

// forget drops a connection whose descriptors have been closed, which has
// taken them out of the epoll set too.
func (l *loop) forget(c *conn) {
	l.conns[c.fd], l.conns[c.idle.timer] = nil, nil
	l.open--
	l.load.Add(-1)
	l.server.discharge()
}

// post sends a message from any thread; counters are the sender's own, or new
// ones where it has none.
func (l *loop) post(counters *netpoll.Counters, m message) {
	l.inbox.Lock()
	l.inbox.messages = append(l.inbox.messages, m)
	first := len(l.inbox.messages) == 1
	l.inbox.Unlock()
	if first {
		// Whoever finds messages there need not wake the loop once more.
		l.poller.Wake(counters)
	}
}

func (l *loop) readInbox() {
	l.inbox.Lock()
	l.taken, l.inbox.messages = l.inbox.messages, l.taken[:0]
	l.inbox.Unlock()
	for _, m := range l.taken {
		l.handleMessage(m)
	}
	clear(l.taken) // a closed connection shall not be kept alive
}

// handleMessage does what a message asks for.
func (l *loop) handleMessage(m message) {
	switch m.what {
	case adopt:
		l.adopt(m.conn)
	case drain:
		l.beginDrain()
	case kill:
		l.draining, l.killed = true, true
		l.each((*conn).close)
	}
}

// beginDrain begins to stop: nothing more is accepted, what has arrived is answered.
func (l *loop) beginDrain() {
	l.draining = true
	l.acceptor.Stop(l.take)
	l.each((*conn).lastTurn)
	if l.server.oneAcceptor && l == l.server.loops[0] {
		for _, other := range l.server.loops[1:] {
			other.post(&l.counters, message{what: drain})
		}
	}
}

// each calls f for every open connection; f may close it.
func (l *loop) each(f func(*conn)) {
	for fd, c := range l.conns {
		if c != nil && fd == c.fd {
			f(c)
		}
	}
}
