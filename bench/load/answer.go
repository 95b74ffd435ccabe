package load

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxHead bounds the head of an answer; a server that sends more without an
// empty line is not speaking HTTP.
const maxHead = 16 << 10

// head is what the head of an answer says.
type head struct {
	size   int   // bytes, the empty line included
	status int   // 100 to 999
	length int64 // of the body
	close  bool  // the server closes after this answer
	date   int64 // seconds since 1970, 0 without one that is understood
	dated  bool  // there is a Date
	// mediaType is what Content-Type says without parameters; it lies in the bytes that were parsed.
	mediaType []byte
}

var endOfHead = []byte("\r\n\r\n")

// parseHead reads the head at the start of b. ok is false when it is not all
// there yet. An error says what makes it no answer that a client could go on
// after: from there on, the connection cannot be used.
func parseHead(b []byte) (h head, ok bool, err error) {
	end := bytes.Index(b, endOfHead)
	if end < 0 {
		if len(b) > maxHead {
			return head{}, false, fmt.Errorf("no end of head within %d bytes", maxHead)
		}
		if len(b) >= 5 && string(b[:5]) != "HTTP/" {
			return head{}, false, errNotHTTP
		}
		return head{}, false, nil
	}
	h.size = end + len(endOfHead)
	line, rest, _ := bytes.Cut(b[:end+2], []byte("\r\n"))
	// "HTTP/1.1 200 OK"
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || (line[7] != '0' && line[7] != '1') || line[8] != ' ' || (len(line) > 12 && line[12] != ' ') {
		return head{}, false, errNotHTTP
	}
	if h.status, err = strconv.Atoi(string(line[9:12])); err != nil || h.status < 100 {
		return head{}, false, errNotHTTP
	}
	h.close = line[7] == '0'
	h.length = -1
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found || len(name) == 0 {
			return head{}, false, fmt.Errorf("header line without a colon")
		}
		value = bytes.Trim(value, " \t")
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			n, err := strconv.ParseUint(string(value), 10, 62)
			if err != nil || (h.length >= 0 && h.length != int64(n)) {
				return head{}, false, fmt.Errorf("bad Content-Length")
			}
			h.length = int64(n)
		case bytes.EqualFold(name, []byte("Date")):
			h.dated = true
			if at, err := time.Parse(http.TimeFormat, string(value)); err == nil {
				h.date = at.Unix()
			}
		case bytes.EqualFold(name, []byte("Content-Type")):
			h.mediaType, _, _ = bytes.Cut(value, []byte(";"))
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return head{}, false, fmt.Errorf("Transfer-Encoding in an answer: this generator wants Content-Length")
		case bytes.EqualFold(name, []byte("Connection")):
			if bytes.EqualFold(value, []byte("close")) {
				h.close = true
			} else if bytes.EqualFold(value, []byte("keep-alive")) {
				h.close = false
			}
		}
	}
	if h.status < 200 || h.status == 204 || h.status == 304 {
		h.length = 0
	}
	if h.length < 0 {
		return head{}, false, fmt.Errorf("no Content-Length")
	}
	return h, true, nil
}

var errNotHTTP = fmt.Errorf("not an HTTP/1 answer")

// checker recognises right answers on the connections of one thread. It keeps
// the last head that passed the full check: as long as the next answer has the
// same bytes, comparing them is all there is to do. The Date in it changes
// once a second, and then the full check runs again.
type checker struct {
	status    int
	body      []byte
	mediaType string // that the right answer has; "" for any
	frames    bool   // answers have no head: each is body, a WebSocket's frame

	verified []byte // the last right head, and the body behind it when that is small
	head     head   // what it says
	whole    bool   // verified ends with the body

	dates   bool   // the server has the same clock, so that its Date can be judged
	stale   uint64 // heads whose Date was not the time
	undated uint64 // heads without a Date
}

// dateSlack is how many seconds a Date may be away from the time at which its
// head is looked at: on a busy machine an answer may have waited for long.
const dateSlack = 10

// judgeDate counts a last head that has no Date, or one that is not the time. It is called when a
// head is new and when a phase ends: a Date that never changes has no new heads.
func (c *checker) judgeDate() {
	if len(c.verified) > 0 && !c.head.dated {
		c.undated++
	}
	if !c.dates || c.head.date == 0 {
		return
	}
	if away := time.Now().Unix() - c.head.date; away > dateSlack || away < -dateSlack {
		c.stale++
	}
}

// longestType is how much of a wrong Content-Type is told.
const longestType = 40

const (
	// mergedBody is up to which size a body is compared together with its head.
	mergedBody = 4096
	// largeEvery says which share of the bodies above that size is compared: one
	// in so many, by chance, so that no pattern of wrong ones slips through.
	// Comparing all would cost the client a tenth of its time, and a server that
	// sends wrong bytes does so more than once.
	largeEvery = 16
)

// reading is how far one connection has got with its answers.
type reading struct {
	bodyLeft int64 // bytes of the current answer's body still to come
	bodyAt   int64 // bytes of it that came
	head     head  // of the current answer
	compare  bool  // its body byte by byte
	wrong    string
}

// outcome of one step of reading.
type outcome uint8

const (
	needMore outcome = iota // everything usable is used up
	right                   // one right answer has ended
	wrong                   // one answer has ended that is not the right one: see reading.wrong
	broken                  // the connection cannot be used any more: see reading.wrong
)

// step reads from b until an answer ends or b does. It returns how many bytes
// it used: what is left after needMore is the start of a head, to be given
// again with more behind it.
func (c *checker) step(r *reading, b []byte) (used int, o outcome) {
	if r.bodyLeft == 0 && r.bodyAt == 0 && c.frames {
		if len(b) == 0 {
			return 0, needMore
		}
		c.beginBody(r, int64(len(c.body)))
		r.wrong = ""
	} else if r.bodyLeft == 0 && r.bodyAt == 0 {
		if v := c.verified; c.whole && len(b) >= len(v) && bytes.Equal(b[:len(v)], v) {
			r.head.close = c.head.close
			return len(v), right
		}
		if used, o = c.beginHead(r, b); o != right {
			return used, o
		}
	}
	n := min(int64(len(b)-used), r.bodyLeft)
	part := b[used : used+int(n)]
	if r.compare && r.wrong == "" && !bytes.Equal(part, c.body[r.bodyAt:r.bodyAt+n]) {
		r.wrong = "body differs"
	}
	r.bodyLeft -= n
	r.bodyAt += n
	used += int(n)
	if r.bodyLeft > 0 {
		return used, needMore
	}
	r.bodyAt = 0
	if r.wrong != "" {
		return used, wrong
	}
	return used, right
}

// beginHead reads a head; right means that one is there, not that it is the
// right one.
func (c *checker) beginHead(r *reading, b []byte) (used int, o outcome) {
	r.wrong = ""
	if v := c.verified; !c.whole && len(v) > 0 && len(b) >= len(v) && bytes.Equal(b[:len(v)], v) {
		r.head = c.head
	} else {
		if len(b) == 0 {
			return 0, needMore
		}
		h, ok, err := parseHead(b)
		if err != nil {
			r.wrong = err.Error()
			return 0, broken
		}
		if !ok {
			return 0, needMore
		}
		r.head = h
		switch {
		case h.status != c.status:
			r.wrong = "status " + strconv.Itoa(h.status)
		case h.length != int64(len(c.body)):
			r.wrong = "length " + strconv.FormatInt(h.length, 10)
		case h.dated && h.date == 0:
			r.wrong = "the Date is garbled"
		case c.mediaType != "" && !strings.EqualFold(string(h.mediaType), c.mediaType):
			r.wrong = "Content-Type " + strconv.Quote(string(h.mediaType[:min(len(h.mediaType), longestType)]))
		default:
			c.remember(b[:h.size], h)
		}
	}
	c.beginBody(r, r.head.length)
	return r.head.size, right
}

// beginBody decides how the next body of so many bytes is read.
func (c *checker) beginBody(r *reading, length int64) {
	r.bodyLeft = length
	r.compare = len(c.body) <= mergedBody || rand.IntN(largeEvery) == 0
}

// remember keeps a head that passed; the body behind it is what it must be,
// since a small one is compared with it.
func (c *checker) remember(b []byte, h head) {
	c.head = h
	c.head.mediaType = nil // it lies in a buffer that is read into again
	c.verified = append(c.verified[:0], b...)
	c.judgeDate()
	c.whole = len(c.body) <= mergedBody
	if c.whole {
		c.verified = append(c.verified, c.body...)
	}
}
