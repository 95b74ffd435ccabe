package main

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// The opcodes (RFC 6455, 11.8). Those with controlBit are of control frames.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xa

	controlBit = 0x8
)

// The status codes that we send (RFC 6455, 7.4.1).
const (
	goingAway       = 1001
	protocolError   = 1002
	invalidData     = 1007
	policyViolation = 1008
	messageTooBig   = 1009
)

// maxControl is the most bytes a control frame may carry (RFC 6455, 5.5).
const maxControl = 125

// frameHeader is what stands before a frame's payload (RFC 6455, 5.2).
type frameHeader struct {
	opcode byte
	final  bool
	length int    // of the payload
	key    uint32 // the mask, its first byte lowest
	size   int    // of the header itself, mask included
}

func (h *frameHeader) control() bool { return h.opcode&controlBit != 0 }

// parse reads the header at the beginning of b, of a client's frame. within says
// that a message has begun and is not at its end, room how many bytes it may
// still get. The header is complete, or more bytes are needed, or fault is the
// code to close with: at the first byte that makes it certain.
func (h *frameHeader) parse(b []byte, within bool, room int64) (complete bool, fault int) {
	if len(b) == 0 {
		return false, 0
	}
	h.final, h.opcode = b[0]&0x80 != 0, b[0]&0x0f
	switch {
	case b[0]&0x70 != 0, h.opcode&^controlBit > opBinary: // no extension gives these bits a meaning
		return false, protocolError
	case h.control() && !h.final:
		return false, protocolError
	case !h.control() && (h.opcode == opContinuation) != within:
		return false, protocolError
	case len(b) == 1:
		return false, 0
	}
	short := b[1] & 0x7f
	if b[1]&0x80 == 0 || h.control() && short > maxControl { // a client has to mask (5.1)
		return false, protocolError
	}
	length, size := uint64(short), 2
	switch short {
	case 126:
		if size = 4; len(b) < size {
			return false, 0
		}
		if length = uint64(binary.BigEndian.Uint16(b[2:])); length < 126 {
			return false, protocolError // a shorter form would do
		}
	case 127:
		if size = 10; len(b) < size {
			return false, 0
		}
		if length = binary.BigEndian.Uint64(b[2:]); length < 1<<16 || length>>63 != 0 {
			return false, protocolError
		}
	}
	if !h.control() && length > uint64(room) {
		return false, messageTooBig
	}
	if len(b) < size+4 {
		return false, 0
	}
	h.length, h.key, h.size = int(length), binary.LittleEndian.Uint32(b[size:]), size+4
	return true, 0
}

// appendFrameHeader appends the header of one of our frames: final, not masked.
func appendFrameHeader(dst []byte, opcode byte, length int) []byte {
	dst = append(dst, 0x80|opcode)
	switch {
	case length < 126:
		return append(dst, byte(length))
	case length < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, 126), uint16(length))
	}
	return binary.BigEndian.AppendUint64(append(dst, 127), uint64(length))
}

// unmask undoes the mask in place, eight bytes at a time: key's lowest byte is
// that of the first one. It answers the key for the bytes that follow
// (RFC 6455, 5.3).
func unmask(b []byte, key uint32) uint32 {
	next := bits.RotateLeft32(key, -8*(len(b)%4))
	wide := uint64(key)<<32 | uint64(key)
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^wide)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= byte(wide)
		wide >>= 8
	}
	return next
}

// textCheck tells whether text is UTF-8 as it arrives, also where a piece ends
// inside a character.
type textCheck struct {
	begun [utf8.UTFMax]byte // the character that is not all there
	n     int               // how many bytes of it are
}

// take looks at the next piece, and reports whether all of it may stand there.
func (t *textCheck) take(b []byte) bool {
	for t.n > 0 && len(b) > 0 {
		t.begun[t.n] = b[0]
		t.n++
		b = b[1:]
		if begun := t.begun[:t.n]; utf8.FullRune(begun) { // wrong ones are full too
			if !utf8.Valid(begun) {
				return false
			}
			t.n = 0
		}
	}
	whole := len(b)
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				whole = i
			}
			break
		}
	}
	if whole < len(b) {
		t.n = copy(t.begun[:], b[whole:])
	}
	return utf8.Valid(b[:whole])
}

// complete reports whether the text may end here.
func (t *textCheck) complete() bool { return t.n == 0 }

// mayClose reports whether a Close frame may carry this status code: those that
// are registered for it, and those of libraries and applications
// (RFC 6455, 7.4). 1004 to 1006 and 1015 are never sent.
func mayClose(code int) bool {
	return code >= 1000 && code <= 1003 || code >= 1007 && code <= 1014 || code >= 3000 && code <= 4999
}
