package load

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

const (
	// atOnce bounds how many connections of a thread may be on their way, so that
	// a listen queue of the usual length does not overflow.
	atOnce = 64
	// attempts is how often a connection must fail in a row to count as
	// impossible: then the first phase no longer waits for it.
	attempts = 3

	firstPause = 10 * time.Millisecond // before a failed connection is tried again
	lastPause  = time.Second

	// longQueue is a listen queue that a server on the same CPU empties in time.
	longQueue = 512
	// queuePause is between two goes of connections to a server with a shorter one. Handshakes on
	// the loopback are over at once, so that nothing else would make this loop wait for the server
	// to accept.
	queuePause = 2 * time.Millisecond

	readBuffer = 256 << 10
)

type state uint8

const (
	waiting state = iota // no socket; to be tried at retryAt
	pending              // connect(2) is on its way
	open
)

// connection is one connection of a thread. It is found by its index, which
// its events carry as their generation.
type connection struct {
	fd          int
	state       state
	idle        bool // sends one request in the warm-up, then nothing
	answered    bool // ever had a right answer
	writable    bool // waits for room in the socket
	made        bool // was connected before, so that the next time is a reconnect
	fresh       bool // no answer since it was connected
	opening     bool // pending still: it waits for the answer to the workload's Opening
	queued      bool // in the schedule's ring
	outstanding int  // answers
	failures    int  // attempts in a row
	retryAt     time.Duration
	sentAt      time.Duration // when the outstanding batch was
	unsent      []byte        // what the socket did not take of it
	held        []byte        // the beginning of a head; its array is kept
	reading     reading
}

// thread is one event loop. Between phases it rests and others may read it.
type thread struct {
	all     *threads
	orders  chan phase
	results chan error

	poller      *netpoll.Poller
	counters    netpoll.Counters
	before      netpoll.Counters // as the measured part began
	target      netpoll.Address
	sources     []netpoll.Address // to leave from, in turns; none: the kernel chooses
	atOnce      int               // connections on their way
	shortQueue  bool              // the server's listen queue would overflow: see longQueue
	batch       []byte            // the requests of one go
	depth       int               // how many those are
	opening     []byte            // what is sent first on a connection; mostly nothing
	reconnect   bool
	connections []connection
	buffer      []byte
	checker     checker

	phase       phase
	ending      bool // the phase's time is over: nothing is sent any more
	open        int
	pending     int
	waiting     []int         // indexes of those without a socket
	spare       []int         // the array that waiting had before
	retryAt     time.Duration // the earliest of theirs
	busy        int           // connections with answers outstanding
	lastFailure error
	plan        schedule

	requests, late uint64
	unsent         uint64
	reconnects     uint64
	latency        *hdr.Histogram
	errors         map[string]uint64
	connectErrors  map[string]uint64
}

func newThread(s *threads, target netpoll.Address, number, threads, connections, idle int) (*thread, error) {
	w := s.o.Workload
	t := &thread{
		all: s, orders: make(chan phase), results: make(chan error, 1),
		target: target, depth: w.Pipeline, reconnect: w.Reconnect, opening: w.Opening,
		connections: make([]connection, connections+idle),
		buffer:      make([]byte, readBuffer),
		checker:     checker{status: w.Status, body: w.Body, mediaType: w.ContentType, frames: len(w.Opening) > 0, dates: loopback(target)},
		latency:     NewHistogram(),
		errors:      map[string]uint64{}, connectErrors: map[string]uint64{},
	}
	for range w.Pipeline {
		t.batch = append(t.batch, w.Request...)
	}
	for i := range t.connections {
		t.connections[i].fd = -1
		t.connections[i].idle = i >= connections
		t.waiting = append(t.waiting, i)
	}
	var err error
	if t.poller, err = netpoll.NewPoller(&t.counters); err != nil {
		return nil, err
	}
	return t, t.newSchedule(number, threads)
}

// run is one phase, from the first request to the last answer.
func (t *thread) run(p phase) error {
	t.phase, t.ending, t.plan.slot = p, true, 0
	if p.kind != connecting {
		if err := t.leftovers(); err != nil {
			return err
		}
		t.ending = false
		for i := range t.connections {
			switch c := &t.connections[i]; {
			case c.state != open:
			case c.idle && p.kind == warming && !c.answered, !c.idle && !t.plan.on():
				t.sendAt(i, c, t.all.now())
			case !c.idle:
				t.release(i, c)
			}
		}
	}
	end := p.begin + p.length
	for {
		now := t.all.now()
		if t.all.stopped.Load() {
			return errStopped
		}
		if p.kind == connecting {
			if len(t.waiting) == 0 && t.pending == 0 || now >= end {
				return t.whyNone()
			}
		} else {
			if t.plan.on() {
				t.dispatch(now)
			}
			t.ending = t.ending || now >= end
			if t.ending && t.busy == 0 && !t.behind() {
				t.checker.judgeDate()
				return nil
			}
			if now >= end+p.timeout {
				t.giveUp()
				return nil
			}
		}
		if len(t.waiting) > 0 && t.pending < t.atOnce && now >= t.retryAt {
			t.connectSome(now)
			if t.shortQueue && p.kind == connecting {
				t.retryAt = max(t.retryAt, now+queuePause)
			}
		}
		if t.open == 0 && t.pending == 0 || p.kind == connecting && t.pending == 0 {
			if t.hopeless() {
				return t.whyNone()
			}
		}
		wake := end
		if t.ending && p.kind != connecting {
			wake = end + p.timeout
		}
		if len(t.waiting) > 0 && t.pending < t.atOnce {
			wake = min(wake, t.retryAt)
		}
		if t.plan.length > 0 && p.kind != connecting && t.behind() && t.due() < wake {
			wake = t.due()
			t.wakeAt(wake, now)
		}
		if t.plan.on() && p.kind == measuring {
			wake = min(wake, now+heartbeat)
		}
		t.plan.rested = t.plan.length
		events, err := t.poller.Wait(&t.counters, max(0, wake-t.all.now()))
		if t.plan.on() && p.kind == measuring {
			t.plan.woke(t.all.now() - wake)
		}
		if err != nil {
			return fmt.Errorf("the generator's epoll failed: %w", err)
		}
		t.handle(events)
	}
}

// leftovers looks, before anything is sent, at what came while all connections
// were at rest: nobody asked for it. A server that answers before it is asked
// would pass for a very fast one.
func (t *thread) leftovers() error {
	for range len(t.connections) + 1 { // a server that never stops talking does not keep this from ending
		events, err := t.poller.Wait(&t.counters, 0)
		if err != nil {
			return fmt.Errorf("the generator's epoll failed: %w", err)
		}
		if len(events) == 0 {
			break
		}
		t.handle(events)
	}
	return nil
}

func (t *thread) handle(events []netpoll.Event) {
	for i := range events {
		e := &events[i]
		if e.IsWake() || e.Generation() == timerEvent {
			continue
		}
		index := int(e.Generation())
		c := &t.connections[index]
		if c.fd != e.FD() { // was closed by an earlier event of this turn
			continue
		}
		t.event(index, c, e)
	}
}

func (t *thread) event(index int, c *connection, e *netpoll.Event) {
	if c.state == pending && c.opening {
		t.opened(index, c)
		return
	}
	if c.state == pending {
		t.connected(index, c)
		return
	}
	if c.writable && e.Writable() {
		t.flush(index, c)
	}
	if c.state == open && (e.Readable() || e.Closed()) {
		t.receive(index, c)
	}
}

// receive reads once and uses what came. Epoll is level-triggered: what is left is reported again.
func (t *thread) receive(index int, c *connection) {
	held := copy(t.buffer, c.held)
	n, err := netpoll.Receive(&t.counters, c.fd, t.buffer[held:])
	now := t.all.now()
	if err != nil {
		if err != netpoll.ErrWouldBlock {
			t.lost(index, c, now, err)
		}
		return
	}
	b := t.buffer[:held+n]
	answers, all := 0, 0
	for {
		used, o := t.checker.step(&c.reading, b)
		b = b[used:]
		if o == needMore {
			break
		}
		if o == broken {
			t.errors[c.reading.wrong]++
			t.count(c, now, answers)
			t.drop(index, c, now+firstPause)
			return
		}
		all++
		if o == wrong {
			t.errors[c.reading.wrong]++
		} else {
			answers++
		}
		if all > c.outstanding {
			t.errors["answer to no request"]++
			t.drop(index, c, now+firstPause)
			return
		}
		if c.reading.head.close {
			break
		}
	}
	if len(b) > 0 || len(c.held) > 0 {
		c.held = append(c.held[:0], b...)
	}
	if all == 0 {
		return
	}
	t.count(c, now, answers)
	c.fresh = false
	t.setOutstanding(c, c.outstanding-all)
	if c.reading.head.close {
		if c.outstanding > 0 {
			t.errors["closed before the answer"]++
		}
		t.drop(index, c, now)
		t.connectSome(now)
		return
	}
	switch {
	case c.outstanding > 0 || c.idle:
	case t.plan.on():
		t.release(index, c)
	case !t.ending && !t.over(now):
		t.sendAt(index, c, now)
	}
}

// over says whether what is measured has come to its end: the turn of the loop in which it does is still under way.
func (t *thread) over(now time.Duration) bool {
	return t.phase.kind == measuring && now-t.phase.begin > t.phase.length
}

// count takes right answers into account that were read at now.
func (t *thread) count(c *connection, now time.Duration, answers int) {
	if answers == 0 {
		return
	}
	c.answered = true
	if t.phase.kind != measuring {
		return
	}
	if t.over(now) {
		t.late += uint64(answers)
	} else {
		t.requests += uint64(answers)
	}
	// It fails beyond five minutes only, which no run lasts.
	_ = t.latency.RecordValues(int64(now-c.sentAt), int64(answers))
}

// sendAt sends a batch; now is the time that just has been read.
func (t *thread) sendAt(index int, c *connection, now time.Duration) {
	c.sentAt = now
	t.setOutstanding(c, t.depth)
	n, err := netpoll.Send(&t.counters, c.fd, t.batch)
	if err != nil && err != netpoll.ErrWouldBlock {
		t.lost(index, c, now, err)
		return
	}
	if n = max(n, 0); n < len(t.batch) {
		c.unsent = t.batch[n:]
		t.want(index, c, true)
	}
}

func (t *thread) flush(index int, c *connection) {
	n, err := netpoll.Send(&t.counters, c.fd, c.unsent)
	if err == netpoll.ErrWouldBlock {
		return
	}
	if err != nil {
		t.lost(index, c, t.all.now(), err)
		return
	}
	if c.unsent = c.unsent[n:]; len(c.unsent) == 0 {
		t.want(index, c, false)
	}
}

// want asks for events of room in the socket, or for no more of them.
func (t *thread) want(index int, c *connection, room bool) {
	if c.writable == room {
		return
	}
	c.writable = room
	interest := netpoll.Readable
	if room {
		interest |= netpoll.Writable
	}
	if err := t.poller.Modify(&t.counters, c.fd, uint32(index), interest); err != nil {
		t.lost(index, c, t.all.now(), err)
	}
}

// lost drops a connection that the other side ended, or an error did.
func (t *thread) lost(index int, c *connection, now time.Duration, err error) {
	switch {
	case c.outstanding > 0 && err == io.EOF:
		t.errors["closed before the answer"]++
	case c.outstanding > 0 || err != io.EOF:
		t.errors[reason(err)]++
	}
	// A server that closes without answering would otherwise be asked as fast as
	// connections can be made.
	if c.fresh {
		now += firstPause
	}
	t.drop(index, c, now)
}

// drop closes a connection; it is made anew from retryAt on.
func (t *thread) drop(index int, c *connection, retryAt time.Duration) {
	if c.state == open {
		t.open--
	} else {
		t.pending--
	}
	t.setOutstanding(c, 0)
	// Closing with a reset leaves no port behind in TIME_WAIT: those would run
	// out within seconds when every request has its own connection.
	_ = netpoll.SetLinger0(c.fd)
	_ = netpoll.Close(&t.counters, c.fd)
	c.fd, c.state, c.writable, c.unsent = -1, waiting, false, nil
	c.held, c.reading = c.held[:0], reading{}
	t.putWaiting(index, c, retryAt)
}

func (t *thread) putWaiting(index int, c *connection, retryAt time.Duration) {
	c.retryAt = retryAt
	if len(t.waiting) == 0 || retryAt < t.retryAt {
		t.retryAt = retryAt
	}
	t.waiting = append(t.waiting, index)
}

// setOutstanding keeps busy in step with the connections.
func (t *thread) setOutstanding(c *connection, n int) {
	if c.outstanding > 0 && n == 0 {
		t.busy--
	} else if c.outstanding == 0 && n > 0 {
		t.busy++
	}
	c.outstanding = n
}

// connectSome begins the connections that are due.
func (t *thread) connectSome(now time.Duration) {
	due := t.waiting
	t.waiting, t.spare = t.spare[:0], due
	for _, index := range due {
		c := &t.connections[index]
		if t.pending >= t.atOnce || c.retryAt > now {
			t.putWaiting(index, c, c.retryAt)
			continue
		}
		t.connect(index, c, now)
	}
}

func (t *thread) connect(index int, c *connection, now time.Duration) {
	var source netpoll.Address
	if n := len(t.sources); n > 0 {
		source = t.sources[(index+c.failures)%n] // another one when the ports of this have run out
	}
	fd, err := netpoll.Connect(&t.counters, source, t.target)
	if err != nil {
		t.failed(index, c, now, err)
		return
	}
	c.fd, c.state, c.sentAt = fd, pending, now
	t.pending++
	if err := t.poller.Add(&t.counters, fd, uint32(index), netpoll.Writable); err != nil {
		t.pending--
		c.state, c.fd = waiting, -1
		_ = netpoll.Close(&t.counters, fd)
		t.failed(index, c, now, err)
	}
}

// failed notes an attempt that made no connection; c has no socket.
func (t *thread) failed(index int, c *connection, now time.Duration, err error) {
	t.lastFailure = err
	t.connectErrors[reason(err)]++
	c.failures++
	t.putWaiting(index, c, now+min(lastPause, firstPause<<min(c.failures-1, 16)))
}

// connected finishes an attempt, one way or the other.
func (t *thread) connected(index int, c *connection) {
	now := t.all.now()
	if err := netpoll.ConnectError(&t.counters, c.fd); err != nil {
		t.refused(index, c, now, err)
		return
	}
	if len(t.opening) == 0 {
		t.established(index, c, now)
		return
	}
	// A new socket has room for it.
	_, err := netpoll.Send(&t.counters, c.fd, t.opening)
	if err == nil {
		c.opening = true
		err = t.poller.Modify(&t.counters, c.fd, uint32(index), netpoll.Readable)
	}
	if err != nil {
		t.refused(index, c, now, err)
	}
}

// opened reads the answer to the workload's Opening, which has to be 101 with nothing behind it.
func (t *thread) opened(index int, c *connection) {
	held := copy(t.buffer, c.held)
	n, err := netpoll.Receive(&t.counters, c.fd, t.buffer[held:])
	if err == netpoll.ErrWouldBlock {
		return
	}
	now := t.all.now()
	b := t.buffer[:held+n]
	var h head
	complete := false
	if err == nil {
		h, complete, err = parseHead(b)
	}
	switch {
	case err != nil:
		t.refused(index, c, now, err)
	case !complete:
		c.held = append(c.held[:0], b...)
	case h.status != http.StatusSwitchingProtocols || h.size < len(b):
		t.refused(index, c, now, fmt.Errorf("no WebSocket: status %d", h.status))
	default:
		c.held = c.held[:0]
		t.established(index, c, now)
	}
}

// refused gives up an attempt that has a socket.
func (t *thread) refused(index int, c *connection, now time.Duration, err error) {
	t.pending--
	_ = netpoll.Close(&t.counters, c.fd)
	c.fd, c.state, c.opening, c.held = -1, waiting, false, c.held[:0]
	t.failed(index, c, now, err)
}

// established begins to use a connection.
func (t *thread) established(index int, c *connection, now time.Duration) {
	t.pending--
	t.open++
	if c.made {
		t.reconnects++
	}
	c.state, c.failures, c.made, c.fresh, c.opening = open, 0, true, true, false
	if err := t.poller.Modify(&t.counters, c.fd, uint32(index), netpoll.Readable); err != nil {
		t.lost(index, c, now, err)
		return
	}
	if c.idle && t.phase.kind != warming {
		return
	}
	if t.plan.on() && !c.idle {
		if t.phase.kind != connecting {
			t.release(index, c)
		}
		return
	}
	if t.ending {
		return
	}
	if t.reconnect && c.sentAt >= t.phase.begin {
		now = c.sentAt // the making of the connection is part of what is measured
	}
	t.sendAt(index, c, now)
}

// hopeless tells whether every connection without a socket has failed too often.
func (t *thread) hopeless() bool {
	for _, index := range t.waiting {
		if t.connections[index].failures < attempts {
			return false
		}
	}
	return true
}

// whyNone is the error of having no connection at all, nil when there is one.
func (t *thread) whyNone() error {
	if t.open > 0 {
		return nil
	}
	why := t.lastFailure
	if why == nil {
		why = errors.New("no connection within " + t.phase.length.String())
	}
	hint := ""
	switch {
	case why == syscall.ECONNREFUSED && t.phase.kind == connecting:
		hint = ": nothing listens there"
	case why == syscall.EMFILE:
		hint = ": raise the limit with ulimit -n, or use fewer connections"
	case why == syscall.EADDRNOTAVAIL:
		hint = ": no local port is left; use fewer connections, or wait a minute"
	}
	if t.phase.kind != connecting {
		return fmt.Errorf("%w: every connection to %s was lost, and a new one fails with %q%s", errLost, t.target, why, hint)
	}
	return fmt.Errorf("cannot connect to %s: %w%s", t.target, why, hint)
}

// giveUp ends a phase whose last answers did not come.
func (t *thread) giveUp() {
	now := t.all.now()
	t.abandon(now)
	for i := range t.connections {
		if c := &t.connections[i]; c.outstanding > 0 {
			t.errors["no answer within "+t.phase.timeout.String()] += uint64(c.outstanding)
			if t.phase.kind == measuring {
				_ = t.latency.RecordValues(int64(now-c.sentAt), int64(c.outstanding)) // at the least
			}
			t.drop(i, c, now)
		}
	}
}

func (t *thread) closeAll() {
	for i := range t.connections {
		if c := &t.connections[i]; c.fd >= 0 {
			_ = netpoll.SetLinger0(c.fd)
			_ = netpoll.Close(&t.counters, c.fd)
		}
	}
	if t.plan.timer >= 0 && t.plan.on() {
		_ = netpoll.Close(&t.counters, t.plan.timer)
	}
	_ = t.poller.Close(&t.counters)
}

// reason is an error as the key that it is counted under.
func reason(err error) string {
	if err == io.EOF {
		return "closed by the server"
	}
	return err.Error()
}
