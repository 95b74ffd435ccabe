package http1

// ipv6 takes an IPv6address (RFC 3986, 3.2.2) byte by byte, through the bracket that ends it, and
// refuses the first byte after which no valid address can follow any more. The zero value is ready.
type ipv6 struct {
	last       ipv6Piece
	compressed bool  // there was a "::"
	groups     uint8 // complete groups of 16 bits
	digits     uint8 // of the group or the octet under way
	octets     uint8 // complete octets of an IPv4 address at the end; it takes two groups' place
	octet      uint8 // the decimal value of the digits under way
	decimal    bool  // the digits under way are a dec-octet
}

// ipv6Piece is what the last byte was.
type ipv6Piece uint8

const (
	ipv6Nothing ipv6Piece = iota
	ipv6FirstColon
	ipv6Colon
	ipv6DoubleColon
	ipv6Digit
	ipv6Dot
)

// A "::" stands for one group at least, so that an address with it has at most seven others.
const (
	ipv6Groups           = 8
	ipv6GroupsCompressed = 7
)

// take takes one more byte and reports whether it may stand here.
func (a *ipv6) take(c byte) bool {
	switch {
	case is(c, hexByte):
		return a.takeDigit(c)
	case c == ':':
		return a.takeColon()
	case c == '.':
		return a.takeDot()
	case c == ']':
		return a.whole()
	}
	return false
}

func (a *ipv6) takeDigit(c byte) bool {
	if a.last != ipv6Digit {
		if a.last == ipv6FirstColon || a.compressed && a.groups == ipv6GroupsCompressed {
			return false
		}
		a.digits, a.octet, a.decimal = 0, 0, true
	}
	if a.digits > 0 && a.octet == 0 || !isDigit(c) {
		a.decimal = false
	}
	value := uint(a.octet)*10 + uint(hexValue[c])
	if value > 255 {
		a.decimal = false
	}
	if a.octets > 0 && !a.decimal || a.digits == 4 {
		return false
	}
	if a.decimal {
		a.octet = uint8(value)
	}
	a.digits++
	a.last = ipv6Digit
	return true
}

func (a *ipv6) takeColon() bool {
	switch {
	case a.octets > 0:
		return false
	case a.last == ipv6Nothing:
		a.last = ipv6FirstColon
		return true
	case a.last == ipv6Digit:
		a.groups++
		a.last = ipv6Colon
		if a.compressed {
			return a.groups < ipv6GroupsCompressed
		}
		return a.groups < ipv6Groups
	case a.compressed:
		return false
	}
	a.compressed = true
	a.last = ipv6DoubleColon
	return true
}

func (a *ipv6) takeDot() bool {
	if a.last != ipv6Digit || !a.decimal || a.octets == 3 {
		return false
	}
	if a.octets == 0 {
		if a.compressed && a.groups > ipv6GroupsCompressed-2 || !a.compressed && a.groups != ipv6Groups-2 {
			return false
		}
	}
	a.octets++
	a.last = ipv6Dot
	return true
}

// whole reports whether the bytes so far are a whole address.
func (a *ipv6) whole() bool {
	switch {
	case a.last == ipv6DoubleColon:
		return true
	case a.last != ipv6Digit:
		return false
	case a.octets > 0:
		return a.octets == 3
	}
	return a.compressed || a.groups == ipv6Groups-1
}
