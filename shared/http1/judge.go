package http1

// Judge decides whether the head of one request is valid. It scans each byte once, however the bytes
// arrive; only the names and values of the few fields that it must know are read once more when they
// are whole. It never allocates and keeps no reference to the bytes. Reset must be called before the
// first Scan. Not for two goroutines at once.
type Judge struct {
	verdict Verdict
	state   judgeState
	step    uint8 // bytes taken of the version and the line end after it
	major   uint8
	at      int // offset of the next byte to look at; after a fault, of the byte that decided
	maxBody int64
	target  target
	fields  fieldLines
	meaning meaning
	head    Head
	fault   *Fault
}

// judgeState is the part of the head that the next byte belongs to.
type judgeState uint8

const (
	judgeStart judgeState = iota
	judgeEmptyLine
	judgeMethod
	judgeTarget
	judgeVersion
	judgeFields
)

// Reset makes the judge ready for the next request. A declared body of more than maxBody bytes will be
// refused.
func (j *Judge) Reset(maxBody int64) {
	*j = Judge{maxBody: maxBody}
	j.fields.names = true
}

// Scan looks at what is new in b and tells what is known by now. b begins with the request's first
// byte at every call and has at least the bytes that it had before; it may have moved in memory,
// and may go on beyond the head. Once complete or faulty the verdict stays.
func (j *Judge) Scan(b []byte) Verdict {
	if j.verdict != Incomplete {
		return j.verdict
	}
	i, got := j.emptyLine(b)
	if got == allDone {
		// One byte more than is allowed: the fault is there, and not before.
		end := min(len(b), j.head.Start+MaxHead+1)
		i, got = j.scan(b, i, end)
		if got != refused && i-j.head.Start > MaxHead {
			i, got = j.refuse(i-1, faultHeadLong)
		}
		if got == allDone {
			j.head.Length = i
			if j.fault = j.judge(); j.fault != nil {
				i, got = i-1, refused
			}
		}
	}
	j.at = i
	switch got {
	case allDone:
		j.verdict = Complete
	case refused:
		j.verdict = Faulty
	}
	return j.verdict
}

// Head is what was found out. It is valid after Complete, until Reset.
func (j *Judge) Head() *Head { return &j.head }

// Fault says what is wrong. It is valid after Faulty, until Reset.
func (j *Judge) Fault() Fault {
	if j.fault == nil {
		return Fault{}
	}
	return *j.fault
}

// emptyLine takes the one empty line that may come before the request line (RFC 9112, 2.2).
func (j *Judge) emptyLine(b []byte) (int, event) {
	i := j.at
	if j.state == judgeStart {
		if i == len(b) {
			return i, needMore
		}
		if b[i] == '\r' {
			look(1)
			j.state = judgeEmptyLine
			i++
		} else {
			j.state = judgeMethod
		}
	}
	if j.state == judgeEmptyLine {
		if i == len(b) {
			return i, needMore
		}
		look(1)
		if b[i] != '\n' {
			return j.refuse(i, faultBareCR)
		}
		i++
		j.head.Start = i
		j.state = judgeMethod
	}
	return i, allDone
}

// scan takes the bytes b[i:end] of the request line and the field lines.
func (j *Judge) scan(b []byte, i, end int) (int, event) {
	got := needMore
	switch j.state {
	case judgeMethod:
		if i, got = j.scanMethod(b, i, end); got != allDone {
			return i, got
		}
		j.state = judgeTarget
		fallthrough
	case judgeTarget:
		if i, got = j.scanTarget(b, i, end); got != allDone {
			return i, got
		}
		j.state = judgeVersion
		fallthrough
	case judgeVersion:
		if i, got = j.scanVersion(b, i, end); got != allDone {
			return i, got
		}
		j.state = judgeFields
		j.head.HeaderStart = i
	}
	for {
		i, got = j.fields.scan(b, i, end)
		switch got {
		case lineDone:
			j.readField(b, i)
		case refused:
			return j.refuse(i, j.fields.fault)
		default:
			return i, got
		}
	}
}

// scanMethod takes the method and the space after it (RFC 9112, 3.1).
func (j *Judge) scanMethod(b []byte, i, end int) (int, event) {
	from := i
	for i < end && is(b[i], tokenByte) {
		i++
	}
	look(min(i+1, end) - from)
	if i == end {
		return i, needMore
	}
	if b[i] != ' ' || i == j.head.Start {
		fault := faultMethod
		switch {
		case b[i] == '\n':
			fault = faultBareLF
		case b[i] == '\r' && i == j.head.Start && i > 0:
			fault = faultEmptyLines
		}
		return j.refuse(i, fault)
	}
	j.head.Method = Span{int32(j.head.Start), int32(i)}
	j.target.prepare(b[j.head.Start:i], i+1)
	return i + 1, allDone
}

// scanTarget takes the target and the space after it (RFC 9112, 3.2).
func (j *Judge) scanTarget(b []byte, i, end int) (int, event) {
	t := &j.target
	i, got := t.scan(b, i, min(end, t.start+MaxTarget+1))
	switch {
	case got == refused:
		return j.refuse(i, t.fault)
	case i-t.start > MaxTarget:
		return j.refuse(i-1, faultTargetLong)
	case got == needMore:
		return i, needMore
	}
	h := &j.head
	h.Target = Span{int32(t.start), int32(t.end)}
	h.Form, h.Path, h.Query, h.Host, h.Escaped = t.form, t.path, t.query, t.host, t.escaped
	return i + 1, allDone
}

// scanVersion takes the version and the end of the request line (RFC 9112, 2.3).
func (j *Judge) scanVersion(b []byte, i, end int) (int, event) {
	const usual = "HTTP/1.1\r\n"
	from := i
	if j.step == 0 && end-i >= len(usual) && string(b[i:i+len(usual)]) == usual {
		look(len(usual))
		j.major, j.head.Minor = 1, 1
		return i + len(usual), allDone
	}
	for ; i < end; i++ {
		c := b[i]
		fault := faultVersion
		ok := false
		switch j.step {
		case 5:
			ok = isDigit(c)
			j.major = c - '0'
		case 7:
			ok = isDigit(c)
			j.head.Minor = min(c-'0', 1)
		case 9:
			ok = c == '\n'
			fault = faultBareCR
		default:
			ok = c == usual[j.step]
			if c == '\n' {
				fault = faultBareLF
			}
		}
		if !ok {
			look(i + 1 - from)
			return j.refuse(i, fault)
		}
		j.step++
		if int(j.step) == len(usual) {
			look(i + 1 - from)
			return i + 1, allDone
		}
	}
	look(i - from)
	return i, needMore
}

func (j *Judge) refuse(i int, fault *Fault) (int, event) {
	j.fault = fault
	return i, refused
}
