package main

import (
	"encoding/binary"
	"unicode/utf8"
)

const (
	// A loop keeps so many buffers of messages for later, none of them larger
	// than batchBytes; the collector gets the others.
	messagePool = 16
)

// A socket is what a connection knows once it is a WebSocket. Its frames lie in
// the read buffer, and are unmasked there: in[start:next] is what has arrived of
// the present one. Only a message of several frames, and one that outgrows the
// buffer, is put together elsewhere.
type socket struct {
	frame   frameHeader
	begun   bool   // the frame's header is complete
	left    int    // bytes of its payload still to come
	key     uint32 // the mask, for the next of them
	opcode  byte   // of the message that has begun; 0: none has
	text    textCheck
	message []byte // what has been put together of it; nil: nothing
}

// advanceFrame goes on with the present frame, and reports whether it is all
// there. What has arrived is unmasked and checked at once.
func (c *conn) advanceFrame() bool {
	s := c.socket
	f := &s.frame
	if !s.begun {
		room := c.loop.config.MaxBody - int64(len(s.message))
		complete, fault := f.parse(c.in[c.start:c.end], s.opcode != 0, room)
		if fault != 0 {
			c.fail(fault)
		}
		if !complete {
			return false
		}
		s.begun, s.left, s.key = true, f.length, f.key
		c.next = c.start + f.size
		if !f.control() && f.opcode != opContinuation {
			s.opcode, s.text = f.opcode, textCheck{}
		}
	}
	arrived := c.in[c.next:min(c.end, c.next+s.left)]
	s.key = unmask(arrived, s.key)
	s.left -= len(arrived)
	c.next += len(arrived)
	if !f.control() && s.opcode == opText {
		ends := s.left == 0 && f.final
		if !s.text.take(arrived) || ends && !s.text.complete() {
			c.fail(invalidData)
			return false
		}
	}
	return s.left == 0
}

// endFrame does what a complete frame asks for.
func (c *conn) endFrame() {
	s := c.socket
	payload := c.in[c.start+s.frame.size : c.next]
	c.loop.spent += max(len(payload), requestCost)
	switch s.frame.opcode {
	case opClose:
		c.answerClose(payload)
	case opPing:
		c.send(opPong, payload)
	case opPong: // to no question of ours, which is allowed (5.5.3)
	default:
		if s.message != nil || !s.frame.final {
			c.keepPayload(payload)
			payload = s.message
		}
		if s.frame.final {
			c.loop.counters.Requests++
			c.send(s.opcode, payload)
			c.dropMessage()
			c.requestFinished()
		}
	}
	s.begun = false
	c.consumeRequest()
}

// send adds a frame to the batch in one of two ways, as respond does: merged,
// when it is small, or its payload by reference.
func (c *conn) send(opcode byte, payload []byte) {
	a := &c.loop.responses
	begin := len(a.made)
	a.made = appendFrameHeader(a.made, opcode, len(payload))
	a.answers++
	if len(a.made)-begin+len(payload) <= mergeLimit {
		a.made = c.loop.counters.CopyBody(a.made, payload)
	} else {
		a.seal()
		a.add(payload, false)
		c.flush() // the next frame, or the next message, may need its place
	}
	if a.answers == batchAnswers || a.size() >= batchBytes {
		c.flush()
	}
}

// fail closes the connection with a status code (RFC 6455, 7.1.7).
func (c *conn) fail(code int) {
	c.sendClose(code)
	c.closing = true
}

func (c *conn) sendClose(code int) {
	var payload [2]byte
	binary.BigEndian.PutUint16(payload[:], uint16(code))
	c.send(opClose, payload[:])
}

// answerClose ends the connection as the client has asked for: with the code
// that it has sent, if there is one (RFC 6455, 5.5.1).
func (c *conn) answerClose(payload []byte) {
	c.closing = true
	if len(payload) == 0 {
		c.announced = true
		c.send(opClose, nil)
		return
	}
	code := protocolError
	if len(payload) > 1 {
		if sent := int(binary.BigEndian.Uint16(payload)); mayClose(sent) {
			c.announced = true // it will send nothing more, so that nobody need wait for it
			code = sent
		}
		if !utf8.Valid(payload[2:]) {
			code = invalidData
		}
	}
	c.sendClose(code)
}

// keepPayload puts the next part of a message behind those that there are.
func (c *conn) keepPayload(payload []byte) {
	s, l := c.socket, c.loop
	if n := len(l.messages); s.message == nil && n > 0 {
		s.message, l.messages = l.messages[n-1], l.messages[:n-1]
		l.counters.Hold(cap(s.message))
	}
	s.message = append(l.counters.GrowBuffer(s.message, len(payload)), payload...)
}

// dropMessage ends a message. Its buffer goes to the next one.
func (c *conn) dropMessage() {
	s, l := c.socket, c.loop
	s.opcode = 0
	if s.message == nil {
		return
	}
	if l.config.Poison {
		overwrite(s.message)
	}
	l.counters.Release(cap(s.message))
	if cap(s.message) <= batchBytes && len(l.messages) < messagePool {
		l.messages = append(l.messages, s.message[:0])
	}
	s.message = nil
}

// spill makes room in a read buffer that holds nothing but the beginning of one
// frame: what has arrived of its payload moves to the message.
func (c *conn) spill() {
	c.keepPayload(c.in[c.start+c.socket.frame.size : c.next])
	c.socket.frame.size = 0
	c.start, c.next, c.end = 0, 0, 0
}

// awaitFrame decides what the connection waits for when all that has arrived is
// answered.
func (c *conn) awaitFrame() {
	if s := c.socket; s.begun || s.opcode != 0 || c.start < c.end {
		c.waitFor(readingBody)
	} else if c.idle.phase != idling {
		c.requestFinished()
	}
}

// goAway says that the server ends (RFC 6455, 7.4.1), once all that has arrived
// is answered.
func (c *conn) goAway() {
	if c.loop.draining && !c.more && !c.unserved && !c.closing && !c.broken && !c.blocked() {
		c.fail(goingAway)
	}
}

// socketTimedOut ends a connection that rests for too long, or takes too long
// for a message.
func (c *conn) socketTimedOut() {
	if c.input == nil {
		c.input = c.loop.input
	}
	if c.idle.phase == idling {
		c.fail(goingAway)
	} else {
		c.fail(policyViolation)
	}
	c.serve()
	c.endTurn()
}
