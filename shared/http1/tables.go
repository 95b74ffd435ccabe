package http1

// What a byte may be part of, as bits of class.
const (
	tokenByte  uint8 = 1 << iota // token (RFC 9110, 5.6.2)
	pathByte                     // pchar without pct-encoded, and "/" (RFC 3986, 3.3)
	queryByte                    // the same, and "?" (RFC 3986, 3.4)
	nameByte                     // reg-name without pct-encoded: unreserved, sub-delims (RFC 3986, 3.2.2)
	hexByte                      // HEXDIG, in either case (RFC 5234, B.1)
	schemeByte                   // ALPHA, DIGIT, "+", "-", "." (RFC 3986, 3.1)
	quotedByte                   // qdtext (RFC 9110, 5.6.4)
	valueByte                    // field-content, SP and HTAB (RFC 9110, 5.5)
)

const (
	digits    = "0123456789"
	letters   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	subDelims = "!$&'()*+,;="
)

// class says of each byte what it may be part of.
var class = func() (t [256]uint8) {
	set := func(bit uint8, members string) {
		for i := range len(members) {
			t[members[i]] |= bit
		}
	}
	set(tokenByte, letters+digits+"!#$%&'*+-.^_`|~")
	set(nameByte, letters+digits+"-._~"+subDelims)
	set(pathByte, letters+digits+"-._~"+subDelims+":@/")
	set(queryByte, letters+digits+"-._~"+subDelims+":@/?")
	set(hexByte, digits+"ABCDEFabcdef")
	set(schemeByte, letters+digits+"+-.")
	for c := range 256 {
		if c == '\t' || c >= ' ' && c != 0x7f {
			t[c] |= valueByte
			if c != '"' && c != '\\' {
				t[c] |= quotedByte
			}
		}
	}
	return t
}()

// is reports whether c may be part of any of the things in the set.
func is(c, set uint8) bool { return class[c]&set != 0 }

// isDigit reports whether c is a DIGIT (RFC 5234, B.1).
func isDigit(c byte) bool { return c-'0' < 10 }

// isBlank reports whether c is SP or HTAB, what optional white space is made of (RFC 9110, 5.6.3).
func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// hexValue is the value of each hexadecimal digit.
var hexValue = func() (t [256]uint8) {
	for i := range 10 {
		t['0'+i] = uint8(i)
	}
	for i := range 6 {
		t['a'+i], t['A'+i] = uint8(10+i), uint8(10+i)
	}
	return t
}()
