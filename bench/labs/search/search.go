// Package search is a lab: how to find the end of a line.
package search

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Lines adds up the lengths of all lines of head, line feeds included: what a parser does that only
// wants to know where lines end. next returns the index of the first line feed, or -1.
func Lines(head []byte, next func([]byte) int) (sum int) {
	for line := 1; ; line++ {
		n := next(head) + 1
		if n == 0 {
			return sum
		}
		sum += n * line // so that each line counts, and not only all of them
		head = head[n:]
	}
}

// Index leaves it to the library, which has assembly for it: 32 bytes at a time where the CPU can.
func Index(b []byte) int { return bytes.IndexByte(b, '\n') }

// Loop looks at one byte after the other.
func Loop(b []byte) int {
	for i, c := range b {
		if c == '\n' {
			return i
		}
	}
	return -1
}

const (
	ones      = 0x0101010101010101
	highs     = 0x8080808080808080
	lineFeeds = '\n' * ones
)

// Eight looks at eight bytes at a time, in a word: (x - 1) &^ x has its high bit set where a byte of x
// is zero. It may be set above such a byte as well, so the lowest one counts.
func Eight(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:]) ^ lineFeeds
		if found := (x - ones) &^ x & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b); i++ {
		if b[i] == '\n' {
			return i
		}
	}
	return -1
}

// Words is Lines in one pass: the line feeds of eight bytes are bits of one word, which are taken one
// after the other. So each of them counts, and no byte may borrow from the next: a byte plus 0x7f has
// its high bit set unless the byte was zero.
func Words(head []byte) (sum int) {
	line, begin, i := 1, 0, 0
	for ; i+8 <= len(head); i += 8 {
		x := binary.LittleEndian.Uint64(head[i:]) ^ lineFeeds
		for found := ^(x&^highs + ^uint64(highs) | x) & highs; found != 0; found &= found - 1 {
			end := i + bits.TrailingZeros64(found)/8 + 1
			sum += (end - begin) * line
			line, begin = line+1, end
		}
	}
	for ; i < len(head); i++ {
		if head[i] == '\n' {
			sum += (i + 1 - begin) * line
			line, begin = line+1, i+1
		}
	}
	return sum
}

// Vector looks at 32 bytes at a time. It is nil without GOEXPERIMENT=simd, or where the CPU cannot.
var Vector func(b []byte) int

// Pass is Words for 32 bytes at a time. It is nil where Vector is.
var Pass func(head []byte) int

// A Way adds up the lines of a head.
type Way struct {
	Name  string
	Lines func(head []byte) int
}

// Ways returns those that there are here.
func Ways() []Way {
	ways := []Way{
		{"index", func(head []byte) int { return Lines(head, Index) }},
		{"loop", func(head []byte) int { return Lines(head, Loop) }},
		{"eight", func(head []byte) int { return Lines(head, Eight) }},
		{"words", Words},
	}
	if Vector != nil {
		ways = append(ways, Way{"vector", func(head []byte) int { return Lines(head, Vector) }}, Way{"pass", Pass})
	}
	return ways
}
