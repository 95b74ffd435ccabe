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

// The baseLoop is one thread that accepts connections and waits for the events
// of all of them. It handles none: each event is posted to the worker that the
// connection belongs to.
type baseLoop struct {
	server     *server
	poller     *netpoll.Poller // the workers register and re-arm here too
	acceptor   *netpoll.Acceptor
	counters   netpoll.Counters
	published  netpoll.Published
	generation uint32
	now        time.Duration // since the server started; read once a turn
	draining   bool
	drainAsked atomic.Bool

	// By descriptor, of the socket and of the timer; a closed one stays until its
	// number is used again. Only what never changes in a connection is read here.
	conns []*conn
}

func newBaseLoop(s *server) (*baseLoop, error) {
	b := &baseLoop{server: s}
	var err error
	b.poller, err = netpoll.NewPoller(&b.counters)
	return b, err
}

// A loop is a worker: one thread that handles the events of its connections.
// All of it belongs to that thread, but for inbox, load and published; any thread
// may wake its poller. From stage 1 on it waits for the events itself.
type loop struct {
	server    *server
	config    *serve.Config
	poller    *netpoll.Poller // has no descriptor but that which wakes the worker
	counters  netpoll.Counters
	published netpoll.Published

	conns []*conn // by the socket's descriptor

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

// A message is what the base loop wants of a worker.
type message struct {
	conn *conn
	what task
}

type task uint8

const (
	adopt      task = iota // take this new connection
	ready                  // its socket can be read or written
	timerFired             // its timer has fired
	drain                  // begin to stop
	kill                   // stop now
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

// run waits for events and posts them, until the last worker has ended.
func (b *baseLoop) run() {
	// The thread is the loop's alone: no other goroutine runs on it, and the
	// scheduler does not move the loop elsewhere.
	runtime.LockOSThread()
	for !b.draining || b.server.working.Load() > 0 {
		b.published.Publish(&b.counters)
		events, err := b.poller.Wait(&b.counters, b.acceptor.Timeout())
		if err != nil {
			panic(err) // epoll_wait(2) fails for a wrong descriptor only
		}
		b.now = time.Since(b.server.started)
		for i := range events {
			b.dispatch(&events[i])
		}
		b.acceptor.Maintain()
	}
	b.published.Publish(&b.counters)
}

// dispatch posts an event to the worker that it is for.
func (b *baseLoop) dispatch(event *netpoll.Event) {
	fd := event.FD()
	switch {
	case event.IsWake():
		b.woken()
	case b.acceptor.Has(event):
		b.acceptor.Handle(event, b.take)
	default:
		// The connection may have been closed since, and a new one may have its
		// descriptor: the generation tells them apart.
		c := b.conns[fd]
		if c == nil || c.generation != event.Generation() {
			return
		}
		what := ready
		if fd == c.idle.timer {
			what = timerFired
		}
		b.counters.Handoffs++
		c.loop.post(&b.counters, message{conn: c, what: what})
	}
}

// take makes a connection of a socket that has been accepted.
func (b *baseLoop) take(fd int) error {
	if !b.server.admit() {
		return netpoll.ErrNoRoom
	}
	b.generation = max(b.generation+1, 1) // 0 is the acceptor's
	c, err := newConn(b.server.placement(), &b.counters, fd, b.generation, b.now)
	if err != nil {
		b.server.discharge()
		return err
	}
	b.assign(c)
	return nil
}

// assign hands a new connection to its worker.
func (b *baseLoop) assign(c *conn) {
	if last := max(c.fd, c.idle.timer); last >= len(b.conns) {
		b.conns = append(b.conns, make([]*conn, last+1-len(b.conns))...)
	}
	b.conns[c.fd], b.conns[c.idle.timer] = c, c
	c.loop.load.Add(1)
	b.counters.Handoffs++
	c.loop.post(&b.counters, message{conn: c, what: adopt})
}

// woken begins to stop, if it has been asked to: it takes the connections that
// wait, closes the listener, then tells the workers.
func (b *baseLoop) woken() {
	if b.drainAsked.Load() && !b.draining {
		b.draining = true
		b.acceptor.Stop(b.take)
		for _, l := range b.server.loops {
			l.post(&b.counters, message{what: drain})
		}
	}
}

// askToDrain asks the base loop to stop, from any thread.
func (b *baseLoop) askToDrain() {
	b.drainAsked.Store(true)
	b.poller.Wake(new(netpoll.Counters))
}

// run waits for messages and handles them, until the server has stopped. l is
// worker i.
func (l *loop) run(i int) {
	runtime.LockOSThread()
	l.config.PinLoop(i)
	for !l.draining || l.open > 0 {
		l.published.Publish(&l.counters)
		timeout := time.Duration(-1)
		if len(l.queued) > 0 {
			timeout = 0
		}
		if _, err := l.poller.Wait(&l.counters, timeout); err != nil {
			panic(err) // epoll_wait(2) fails for a wrong descriptor only
		}
		l.readInbox()
		l.serveQueued()
	}
	l.server.working.Add(-1)
	l.server.base.poller.Wake(&l.counters)
	l.published.Publish(&l.counters)
}

// adopt adds a connection's socket and its timer to the epoll set. The socket is
// re-armed after each event.
func (l *loop) adopt(c *conn) {
	if c.fd >= len(l.conns) {
		l.conns = append(l.conns, make([]*conn, c.fd+1-len(l.conns))...)
	}
	l.conns[c.fd] = c
	l.open++
	poller := l.server.base.poller
	err := poller.Add(&l.counters, c.fd, c.generation, netpoll.Readable|netpoll.OneShot)
	if err == nil {
		// Edge-triggered, so that nobody has to read the timer to silence it.
		err = poller.Add(&l.counters, c.idle.timer, c.generation, netpoll.Readable|netpoll.EdgeTriggered)
	}
	if err != nil || l.killed {
		c.close() // the kernel has no memory for it, or it comes too late
	}
}

// rearm lets the next event of the connection come, one system call for each
// event. It has to be one-shot: while this thread handles the event, the base
// loop would see the descriptor ready still, and post it again and again.
func (c *conn) rearm() {
	interest := netpoll.Readable | netpoll.OneShot
	if c.blocked() {
		interest = netpoll.Writable | netpoll.OneShot
	}
	if c.loop.server.base.poller.Modify(&c.loop.counters, c.fd, c.generation, interest) != nil {
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
	l.conns[c.fd] = nil
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
	// Only now, or a timer that has fired since the clock was read would be told
	// that it is too early, and never fire again.
	l.now = time.Since(l.server.started)
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
	case ready:
		if !m.conn.closed { // since the event was posted
			m.conn.ready()
		}
	case timerFired:
		if !m.conn.closed {
			m.conn.timerFired()
		}
	case drain:
		l.beginDrain()
	case kill:
		l.draining, l.killed = true, true
		l.each((*conn).close)
	}
}

// beginDrain begins to stop: what has arrived is answered.
func (l *loop) beginDrain() {
	l.draining = true
	l.each((*conn).lastTurn)
}

// each calls f for every open connection; f may close it.
func (l *loop) each(f func(*conn)) {
	for _, c := range l.conns {
		if c != nil {
			f(c)
		}
	}
}
