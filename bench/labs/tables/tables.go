// Package tables is a lab: to compute an answer, to branch to it, or to look it up.
package tables

import "encoding/binary"

// byCode are the reason phrases that a server uses (RFC 9110, 15).
var byCode = map[int]string{
	101: "Switching Protocols", 200: "OK", 201: "Created", 204: "No Content", 206: "Partial Content",
	301: "Moved Permanently", 302: "Found", 304: "Not Modified", 308: "Permanent Redirect",
	400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
	408: "Request Timeout", 413: "Content Too Large", 417: "Expectation Failed", 429: "Too Many Requests",
	431: "Request Header Fields Too Large", 500: "Internal Server Error", 501: "Not Implemented",
	503: "Service Unavailable", 505: "HTTP Version Not Supported",
}

// Map hashes the code.
func Map(code int) string { return byCode[code] }

// Switch leaves it to the compiler, which makes a binary search of it, or a table of addresses where
// numbers are dense.
func Switch(code int) string {
	switch code {
	case 101:
		return "Switching Protocols"
	case 200:
		return "OK"
	case 201:
		return "Created"
	case 204:
		return "No Content"
	case 206:
		return "Partial Content"
	case 301:
		return "Moved Permanently"
	case 302:
		return "Found"
	case 304:
		return "Not Modified"
	case 308:
		return "Permanent Redirect"
	case 400:
		return "Bad Request"
	case 401:
		return "Unauthorized"
	case 403:
		return "Forbidden"
	case 404:
		return "Not Found"
	case 405:
		return "Method Not Allowed"
	case 408:
		return "Request Timeout"
	case 413:
		return "Content Too Large"
	case 417:
		return "Expectation Failed"
	case 429:
		return "Too Many Requests"
	case 431:
		return "Request Header Fields Too Large"
	case 500:
		return "Internal Server Error"
	case 501:
		return "Not Implemented"
	case 503:
		return "Service Unavailable"
	case 505:
		return "HTTP Version Not Supported"
	}
	return ""
}

var phrases = func() (t [600]string) {
	for code, phrase := range byCode {
		t[code] = phrase
	}
	return t
}()

// Array has a place for each code, most of them empty: 9.6 KB, of which a server uses a few cache lines.
func Array(code int) string {
	if uint(code) < uint(len(phrases)) {
		return phrases[code]
	}
	return ""
}

// Usual looks for the one code first that nine of ten answers have.
func Usual(code int) string {
	if code == 200 {
		return "OK"
	}
	return Array(code)
}

// TokenCompared tells whether all bytes of name may be part of a token, as field names are
// (RFC 9110, 5.6.2), by comparisons, those first that nearly all names need.
func TokenCompared(name []byte) bool {
	for _, c := range name {
		switch {
		case (c|0x20)-'a' < 26, c-'0' < 10, c == '-': // the alphabets are 0x20 apart
		case c == '!', c == '#', c == '$', c == '%', c == '&', c == '\'', c == '*', c == '+', c == '.',
			c == '^', c == '_', c == '`', c == '|', c == '~':
		default:
			return false
		}
	}
	return true
}

var tokenBytes = func() (t [256]bool) {
	for c := range t {
		t[c] = TokenCompared([]byte{byte(c)})
	}
	return t
}()

// TokenTable looks each byte up, in 256 bytes: four cache lines.
func TokenTable(name []byte) bool {
	for _, c := range name {
		if !tokenBytes[c] {
			return false
		}
	}
	return true
}

// tokenBits has a bit for each byte below 128.
var tokenBits = func() (bits [2]uint64) {
	for c := range 128 {
		if tokenBytes[c] {
			bits[c/64] |= 1 << (c % 64)
		}
	}
	return bits
}()

// TokenBits keeps the table in two words: no cache line is needed, but more arithmetic.
func TokenBits(name []byte) bool {
	low, high := tokenBits[0], tokenBits[1]
	for _, c := range name {
		bits := low
		if c >= 64 {
			bits = high
		}
		if c >= 128 || bits>>(c&63)&1 == 0 {
			return false
		}
	}
	return true
}

// ValueCompared tells whether all bytes of value may be part of a field value (RFC 9110, 5.5): a rule
// that takes two comparisons.
func ValueCompared(value []byte) bool {
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

var valueBytes = func() (t [256]bool) {
	for c := range t {
		t[c] = ValueCompared([]byte{byte(c)})
	}
	return t
}()

// ValueTable looks each byte up.
func ValueTable(value []byte) bool {
	for _, c := range value {
		if !valueBytes[c] {
			return false
		}
	}
	return true
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// ValueEight compares eight bytes at a time, in a word: (x - n) &^ x has a high bit set if, and only
// if, a byte of x is below n. What has such a byte may still be right, as a tab is: the rest is left to
// ValueCompared.
func ValueEight(value []byte) bool {
	for ; len(value) >= 8; value = value[8:] {
		x := binary.LittleEndian.Uint64(value)
		del := x ^ 0x7f*ones // zero where x has it
		if ((x-' '*ones)&^x|(del-ones)&^del)&highs != 0 {
			break
		}
	}
	return ValueCompared(value)
}
