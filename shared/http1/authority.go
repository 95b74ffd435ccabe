package http1

// authority scans uri-host [ ":" port ] (RFC 9112, 3.2.3; RFC 9110, 7.2; RFC 3986, 3.2.2 and 3.2.3):
// the value of a Host field, and what follows the user information in a URI. A port is any number
// of digits, none too, with a value up to 65535. The zero value is ready.
type authority struct {
	state    authorityState
	needHost bool   // an empty host is refused at the byte after it
	hasHost  bool   // the host is not empty
	port     uint32 // the port's value so far, if hasPort
	hasPort  bool   // the port has a digit
	literal  bool   // the host is in brackets
	address  ipv6
}

// authorityState is what the next byte belongs to.
type authorityState uint8

const (
	authorityStart     authorityState = iota
	authorityName                     // reg-name, which an IPv4 address is too
	authorityEscape1                  // the first digit of a %XX in a reg-name
	authorityEscape2                  // the second
	authorityLiteral                  // what follows "["
	authorityIPv6                     // IPv6address
	authorityVersion1                 // the first digit of the version of an IPvFuture
	authorityVersion                  // the others, and the dot
	authorityFuture1                  // the first byte of an IPvFuture's address
	authorityFuture                   // the others, and the bracket
	authorityAfterHost                // after "]"
	authorityPort
)

const maxPort = 65535

// scan takes the bytes b[i:end] as far as they may stand where they stand, and returns the offset of
// the first one that may not, or end. Whether the authority may end there says whole.
func (a *authority) scan(b []byte, i, end int) int {
	from := i
	for i < end && a.take(b, &i, end) {
	}
	look(min(i+1, end) - from)
	return i
}

// take takes a byte or, of a reg-name, as many as there are, and moves i past them.
func (a *authority) take(b []byte, i *int, end int) bool {
	c := b[*i]
	ok, next := false, a.state
	switch a.state {
	case authorityStart:
		if c == '[' {
			ok, next = true, authorityLiteral
			a.hasHost, a.literal = true, true
			break
		}
		a.state, next = authorityName, authorityName
		fallthrough
	case authorityName:
		k := *i
		for k < end && is(b[k], nameByte) {
			k++
		}
		if k > *i {
			*i = k
			a.hasHost = true
			return true
		}
		switch c {
		case '%':
			ok, next = true, authorityEscape1
			a.hasHost = true
		case ':':
			ok, next = a.hasHost || !a.needHost, authorityPort
		}
	case authorityEscape1:
		ok, next = is(c, hexByte), authorityEscape2
	case authorityEscape2:
		ok, next = is(c, hexByte), authorityName
	case authorityLiteral:
		if c == 'v' || c == 'V' {
			ok, next = true, authorityVersion1
			break
		}
		next = authorityIPv6
		fallthrough
	case authorityIPv6:
		ok = a.address.take(c)
		if c == ']' {
			next = authorityAfterHost
		}
	case authorityVersion1:
		ok, next = is(c, hexByte), authorityVersion
	case authorityVersion:
		ok = c == '.' || is(c, hexByte)
		if c == '.' {
			next = authorityFuture1
		}
	case authorityFuture1:
		ok, next = c == ':' || is(c, nameByte), authorityFuture
	case authorityFuture:
		ok = c == ']' || c == ':' || is(c, nameByte)
		if c == ']' {
			next = authorityAfterHost
		}
	case authorityAfterHost:
		ok, next = c == ':', authorityPort
	case authorityPort:
		if isDigit(c) {
			a.hasPort = true
			a.port = a.port*10 + uint32(c-'0')
			ok = a.port <= maxPort
		}
	}
	if ok {
		a.state = next
		*i++
	}
	return ok
}

// whole reports whether the bytes taken so far are a whole authority.
func (a *authority) whole() bool {
	switch a.state {
	case authorityStart, authorityName, authorityAfterHost, authorityPort:
		return a.hasHost || !a.needHost
	}
	return false
}

// plain reports whether the bytes taken so far could stand in user information as well: no bracket,
// and no %XX that is cut short.
func (a *authority) plain() bool {
	return !a.literal && a.state != authorityEscape1 && a.state != authorityEscape2
}

// validHost reports whether v is a valid value of the Host field. An empty one is (RFC 9110, 7.2).
func validHost(v []byte) bool {
	// Nearly every client sends a name or an IPv4 address, and perhaps a port. That needs none of the
	// states, which cost more than all the rest of the line.
	i := 0
	for i < len(v) && is(v[i], nameByte) {
		i++
	}
	look(i)
	if i == len(v) {
		return true
	}
	if v[i] == ':' {
		return validPort(v[i+1:])
	}
	var a authority
	if i > 0 {
		a = authority{state: authorityName, hasHost: true}
	}
	return a.scan(v, i, len(v)) == len(v) && a.whole()
}

// validPort reports whether v is any number of digits, none too, with a value up to maxPort.
func validPort(v []byte) bool {
	port := 0
	for i, c := range v {
		if port = port*10 + int(c-'0'); !isDigit(c) || port > maxPort {
			look(i + 1)
			return false
		}
	}
	look(len(v))
	return true
}

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
