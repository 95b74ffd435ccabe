package http1

// target scans a request target (RFC 9112, 3.2) in whichever of the four forms its first byte and
// the method allow, up to the space after it. start must be set before the first byte.
type target struct {
	state      targetState
	form       TargetForm
	connect    bool // the method is CONNECT: authority-form
	options    bool // the method is OPTIONS: asterisk-form is allowed
	absolute   bool // the target is a URI with an authority, whatever it means
	web        bool // the scheme is http or https: a host is needed, user information is refused
	userInfo   bool // what looks like the host may turn out to be user information
	escaped    bool // the path has a %XX
	hasQuery   bool
	start, end int
	host       Span // in absolute-form and authority-form, without user information
	path       Span
	query      Span
	authority  authority
	fault      *Fault
}

// targetState is what the next byte belongs to.
type targetState uint8

const (
	targetStart     targetState = iota
	targetPath                  // path-abempty
	targetEscape1               // the first digit of a %XX in a path or a query
	targetEscape2               // the second
	targetQuery                 // query
	targetAsterisk              // nothing more: the target is "*"
	targetScheme                // scheme, and the colon
	targetSlash1                // the first slash before an authority
	targetSlash2                // the second
	targetAuthority             // uri-host [ ":" port ], or user information that looks like it
	targetUserInfo              // what can only be user information, and the "@"
	targetUserInfo1             // the first digit of a %XX in it
	targetUserInfo2             // the second
)

// event is why a scanner returns.
type event uint8

const (
	needMore event = iota // all bytes are used up
	lineDone              // a field line that the judge must read has ended
	allDone               // the part has ended
	refused               // the byte at the offset makes a fault certain
)

// prepare makes ready for the target of a request with this method, which begins at offset start.
func (t *target) prepare(method []byte, start int) {
	t.start = start
	switch string(method) {
	case "CONNECT":
		t.connect = true
	case "OPTIONS":
		t.options = true
	}
}

// scan takes the bytes b[i:end]. When the target is done it has returned the offset of the space.
func (t *target) scan(b []byte, i, end int) (int, event) {
	got := needMore
	for i < end && got == needMore {
		from := i
		i, got = t.step(b, i, end)
		look(min(i+1, end) - from)
	}
	return i, got
}

// step takes as many bytes as belong to the present state, of which there is at least one.
func (t *target) step(b []byte, i, end int) (int, event) {
	c := b[i]
	switch t.state {
	case targetStart:
		if c != '/' || t.connect {
			return t.begin(c, i)
		}
		t.state = targetPath
		t.path.Start = int32(i)
		i++
		fallthrough
	case targetPath:
		for i < end && is(b[i], pathByte) {
			i++
			for i+2 < end && b[i] == '%' && is(b[i+1], hexByte) && is(b[i+2], hexByte) {
				t.escaped = t.escaped || t.state == targetPath
				i += 3
			}
		}
		if i == end {
			return i, needMore
		}
		switch b[i] {
		case ' ':
			t.path.End = int32(i)
			return t.finish(i)
		case '%':
			t.escaped = true
			t.state = targetEscape1
		case '?':
			t.path.End = int32(i)
			t.beginQuery(i)
		default:
			return t.refuse(i, faultTargetByte)
		}
	case targetQuery:
		for i < end && is(b[i], queryByte) {
			i++
			for i+2 < end && b[i] == '%' && is(b[i+1], hexByte) && is(b[i+2], hexByte) {
				t.escaped = t.escaped || t.state == targetPath
				i += 3
			}
		}
		if i == end {
			return i, needMore
		}
		switch b[i] {
		case ' ':
			t.query.End = int32(i)
			return t.finish(i)
		case '%':
			t.state = targetEscape1
		default:
			return t.refuse(i, faultTargetByte)
		}
	case targetEscape1:
		if !is(c, hexByte) {
			return t.refuse(i, faultEscape)
		}
		t.state = targetEscape2
	case targetEscape2:
		if !is(c, hexByte) {
			return t.refuse(i, faultEscape)
		}
		t.state = targetPath
		if t.hasQuery {
			t.state = targetQuery
		}
	case targetAsterisk:
		if c != ' ' {
			return t.refuse(i, faultTargetByte)
		}
		return t.finish(i)
	case targetScheme:
		for i < end && is(b[i], schemeByte) {
			i++
		}
		if i == end {
			return i, needMore
		}
		if b[i] != ':' {
			return t.refuse(i, faultScheme)
		}
		t.web = isWeb(b[t.start:i])
		t.state = targetSlash1
	case targetSlash1:
		if c != '/' {
			return t.refuse(i, faultScheme)
		}
		t.state = targetSlash2
	case targetSlash2:
		if c != '/' {
			return t.refuse(i, faultScheme)
		}
		t.beginAuthority(i+1, !t.web)
	case targetAuthority:
		i = t.authority.scan(b, i, end)
		if i == end {
			return i, needMore
		}
		return t.afterAuthority(b[i], i)
	case targetUserInfo:
		for i < end && (is(b[i], nameByte) || b[i] == ':') {
			i++
		}
		if i == end {
			return i, needMore
		}
		switch b[i] {
		case '%':
			t.state = targetUserInfo1
		case '@':
			t.beginAuthority(i+1, false)
		default:
			return t.refuse(i, faultAuthority)
		}
	case targetUserInfo1:
		if !is(c, hexByte) {
			return t.refuse(i, faultAuthority)
		}
		t.state = targetUserInfo2
	case targetUserInfo2:
		if !is(c, hexByte) {
			return t.refuse(i, faultAuthority)
		}
		t.state = targetUserInfo
	}
	return i + 1, needMore
}

// begin chooses the form by the first byte c, at offset i, if it is not the usual one, which begins
// with a slash. In authority-form, c is looked at again.
func (t *target) begin(c byte, i int) (int, event) {
	switch {
	case t.connect:
		t.beginAuthority(i, false)
		t.authority.needHost = true
		return i, needMore
	case c == '*':
		if !t.options {
			return t.refuse(i, faultAsterisk)
		}
		t.form = AsteriskForm
		t.state = targetAsterisk
	case is(c, schemeByte) && c >= 'A':
		t.form = AbsoluteForm
		t.absolute = true
		t.state = targetScheme
	default:
		return t.refuse(i, faultNoTarget)
	}
	return i + 1, needMore
}

func (t *target) beginAuthority(i int, userInfo bool) {
	t.state = targetAuthority
	t.host.Start = int32(i)
	t.userInfo = userInfo
	t.authority = authority{needHost: t.web}
}

func (t *target) beginQuery(i int) {
	t.state = targetQuery
	t.hasQuery = true
	t.query.Start = int32(i + 1)
}

// afterAuthority looks at the byte c at offset i, which the authority does not take.
func (t *target) afterAuthority(c byte, i int) (int, event) {
	ends := c == ' ' || !t.connect && (c == '/' || c == '?')
	switch {
	case !ends && t.userInfo && t.authority.plain():
		t.state = targetUserInfo
		return i, needMore
	case !ends || !t.authority.whole() || t.connect && !t.authority.hasPort:
		// An empty port is refused with CONNECT alone (RFC 9110, 9.3.6).
		return t.refuse(i, faultAuthority)
	}
	t.host.End = int32(i)
	switch c {
	case '/':
		t.state = targetPath
		t.path.Start = int32(i)
	case '?':
		t.beginQuery(i)
	default:
		return t.finish(i)
	}
	return i + 1, needMore
}

// finish ends the target at the space at offset i.
func (t *target) finish(i int) (int, event) {
	t.end = i
	if t.absolute && t.options && t.path.Len() == 0 && !t.hasQuery {
		t.form = AsteriskForm
	}
	return i, allDone
}

func (t *target) refuse(i int, fault *Fault) (int, event) {
	t.fault = fault
	return i, refused
}

// isWeb reports whether the scheme is http or https, in any case (RFC 3986, 3.1).
func isWeb(scheme []byte) bool {
	return equalFold(scheme, "http") || equalFold(scheme, "https")
}

// equalFold reports whether b is the word in any case. The word has lower-case letters, digits and
// hyphens only, and b no control bytes.
func equalFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range len(b) {
		look(1)
		if b[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}
