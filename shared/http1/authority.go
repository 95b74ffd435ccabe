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
