package netpoll

import (
	"slices"
	"time"
)

const (
	// refusedLimit is how many refused connections an acceptor holds at a time: enough for a moment's
	// rush to be answered, few enough to cost nothing.
	refusedLimit = 64

	// refusedInput is how much a client that has been refused may still send.
	refusedInput = 256 << 10
)

// Refusal says how clients are told that there is no room for them.
type Refusal struct {
	// Answer appends the answer to dst. input is the beginning of what the client sent: empty if it
	// sent nothing in Patience.
	Answer func(dst, input []byte) []byte
	// Patience is how long a client has to say something, and how long to leave once it was answered.
	Patience time.Duration
}

// refusals are the connections that an acceptor refuses. A client is answered when it has sent
// something, or has been silent for too long: Go's own HTTP client treats an answer that comes before
// its request as an error. Then its input is read and dropped for a while, since a close with unread input makes the
// kernel send a reset, and a reset lets the client's kernel throw away what it has not read yet.
//
// They have no timer each, and there are at most refusedLimit of them: for a new one the oldest goes.
type refusals struct {
	Refusal
	poller   *Poller
	counters *Counters
	open     []*refused // by deadline, which is by age, as all have the same patience
	buffer   [4096]byte
}

type refused struct {
	fd       int
	deadline time.Time
	answered bool
	closed   bool
	dropped  int // bytes read since it was answered
}

// add takes over a connection. What has arrived with it is read at once: a rush of clients may push it
// out before its event comes.
func (r *refusals) add(fd int) {
	if len(r.open) == refusedLimit {
		r.closeOldest()
	}
	if r.poller.Add(r.counters, fd, 0, Readable) != nil {
		Close(r.counters, fd)
		return
	}
	r.counters.Connections++
	one := &refused{fd: fd, deadline: time.Now().Add(r.Patience)}
	r.open = append(r.open, one)
	r.read(one)
}

// handle goes on with the connection that an event is about, unless it is closed already.
func (r *refusals) handle(fd int) {
	if i := slices.IndexFunc(r.open, func(one *refused) bool { return one.fd == fd }); i >= 0 {
		r.read(r.open[i])
	}
}

// read takes what a client has sent: answers it, the first time, and drops it later. It says whether
// there may be more.
func (r *refusals) read(one *refused) bool {
	n, err := Receive(r.counters, one.fd, r.buffer[:])
	switch {
	case err == ErrWouldBlock:
		return false
	case err != nil:
		r.forget(one)
	case !one.answered:
		r.answer(one, r.buffer[:n])
	default:
		if one.dropped += n; one.dropped > refusedInput {
			r.forget(one)
		}
	}
	return !one.closed
}

// answer tells a client that there is no room, and that no more will come. It is the youngest again.
func (r *refusals) answer(one *refused, input []byte) {
	r.counters.Requests++
	one.answered = true
	one.deadline = time.Now().Add(r.Patience)
	r.open = append(slices.DeleteFunc(r.open, func(o *refused) bool { return o == one }), one)
	// The socket is new, and has room for an answer as short as this.
	_, err := Send(r.counters, one.fd, r.Answer(nil, input))
	if err != nil || ShutdownWrite(r.counters, one.fd) != nil {
		r.forget(one)
	}
}

// timeout is how long the oldest has left, below zero if there is none.
func (r *refusals) timeout() time.Duration {
	if len(r.open) == 0 {
		return -1
	}
	return max(time.Until(r.open[0].deadline), 0)
}

// expire answers those who have been silent for too long, and closes those who do not leave.
func (r *refusals) expire() {
	if len(r.open) == 0 {
		return
	}
	for now := time.Now(); len(r.open) > 0 && !now.Before(r.open[0].deadline); {
		if one := r.open[0]; one.answered {
			r.forget(one)
		} else {
			r.answer(one, nil)
		}
	}
}

// close ends a connection before its time. What it has sent by now is read, and it is answered.
func (r *refusals) close(one *refused) {
	for r.read(one) {
	}
	if !one.closed && !one.answered {
		r.answer(one, nil)
	}
	if !one.closed {
		r.forget(one)
	}
}

// forget closes a connection that needs nothing more.
func (r *refusals) forget(one *refused) {
	one.closed = true
	r.open = slices.DeleteFunc(r.open, func(o *refused) bool { return o == one })
	Close(r.counters, one.fd)
	r.counters.Connections--
}

// closeOldest makes room for another, and says whether there was one to close.
func (r *refusals) closeOldest() bool {
	if len(r.open) == 0 {
		return false
	}
	r.close(r.open[0])
	return true
}

// end closes all of them.
func (r *refusals) end() {
	for r.closeOldest() {
	}
}
