package suite

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

const (
	// PlainText is the content type of error bodies and of the greeting.
	PlainText = "text/plain; charset=utf-8"
	// Greeting is the body of GET /.
	Greeting = harness.HelloBody

	// maxAnswerBody is the largest body that a route gives.
	maxAnswerBody = 16 << 20
)

// phrases are the reason phrases of RFC 9110, section 15 (431: RFC 6585) that a server here may use.
var phrases = map[int]string{
	100: "Continue", 200: "OK", 204: "No Content", 304: "Not Modified",
	400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
	412: "Precondition Failed", 413: "Content Too Large", 414: "URI Too Long", 417: "Expectation Failed",
	431: "Request Header Fields Too Large", 500: "Internal Server Error", 501: "Not Implemented",
	503: "Service Unavailable", 505: "HTTP Version Not Supported",
}

// fieldNames are the only fields that an answer may have, as they must be written.
var fieldNames = []string{
	"Allow", "Connection", "Content-Length", "Content-Type", "Date", "ETag", "Last-Modified", "Server",
}

// Answer is one response that [CheckAnswer] has found nothing wrong with.
type Answer struct {
	*harness.Response
	// Date is the Date field; zero in an interim answer (1xx), which has no fields.
	Date time.Time
}

// CheckAnswer holds a response to what the contract says of all of them: the status line in full, fields
// known, spelled and ordered as promised and none twice, Server and a well-formed Date always there,
// Content-Length exact or, with 204 and 304, absent. Whether the fields fit the request is not looked
// at: that is [Expected.Check].
func CheckAnswer(r *harness.Response) (*Answer, error) {
	if phrase := phrases[r.Status]; phrase == "" || r.StatusLine != fmt.Sprintf("HTTP/1.1 %d %s", r.Status, phrase) {
		return nil, fmt.Errorf("unknown status line %q", r.StatusLine)
	}
	answer := &Answer{Response: r}
	if r.Status < 200 {
		if len(r.Fields) > 0 {
			return nil, fmt.Errorf("fields in an interim answer: %v", r.Fields)
		}
		return answer, nil
	}
	if err := answer.checkFields(); err != nil {
		return nil, fmt.Errorf("in a %d: %w", r.Status, err)
	}
	return answer, nil
}

func (a *Answer) checkFields() error {
	last := ""
	for _, f := range a.Fields {
		switch {
		case !slices.Contains(fieldNames, f.Name):
			return fmt.Errorf("unknown or misspelled field %q", f)
		case f.Name <= last:
			return fmt.Errorf("field %q after %q: not in alphabetical order, or twice", f.Name, last)
		case f.Value == "" || strings.ContainsFunc(f.Value, func(c rune) bool { return c < ' ' || c >= 0x7f }):
			return fmt.Errorf("malformed value of the field %q", f)
		}
		last = f.Name
	}
	if got := a.Field("Server"); got != "qps-ladder" {
		return fmt.Errorf("field Server is %q", got)
	}
	date, err := time.Parse(http.TimeFormat, a.Field("Date"))
	// Parse forgives a wrong day of the week and numbers without a leading zero; the way back does not.
	if err != nil || date.Format(http.TimeFormat) != a.Field("Date") {
		return fmt.Errorf("field Date is %q", a.Field("Date"))
	}
	a.Date = date
	length := a.Field("Content-Length")
	if a.Status == 204 || a.Status == 304 {
		if a.Length >= 0 {
			return fmt.Errorf("field Content-Length %q where RFC 9110, 8.6 forbids or spares it", length)
		}
		return nil
	}
	if a.Length < 0 || strconv.FormatInt(a.Length, 10) != length || a.Length > maxAnswerBody {
		return fmt.Errorf("field Content-Length is %q", length)
	}
	return nil
}

// CheckDate says whether the Date lies between the moment before the request was sent and the moment
// after its answer was read, to the second. slack widens that on both sides: a clock may be set.
func (a *Answer) CheckDate(sent, read time.Time, slack time.Duration) error {
	if a.Status < 200 {
		return nil
	}
	if a.Date.Before(sent.Add(-slack).Truncate(time.Second)) || a.Date.After(read.Add(slack)) {
		return fmt.Errorf("date %v, but the request was sent at %v and answered by %v", a.Date, sent.UTC(), read.UTC())
	}
	return nil
}

// Expected is what one answer must be.
type Expected struct {
	// Status is the status code. The answer to an error has the standard short body.
	Status int
	// Bodiless says that the request was a HEAD: the fields of GET, no body.
	Bodiless bool
	// Connection, Type and Allow are the values of Connection, Content-Type and Allow; "" means absent.
	Connection, Type, Allow string
	// Body is the body that a GET would have got.
	Body string
	// Length, if not 0, stands for Body: so many bytes, whichever they are.
	Length int
}

// Hello is the answer to GET /.
func Hello() Expected {
	return Expected{Status: 200, Type: PlainText, Body: Greeting}
}

// Refusal is the standard short answer with this status, followed by the end of the connection.
func Refusal(status int) Expected {
	return closing(standardError(status))
}

// closing is e as the last answer of its connection.
func closing(e Expected) Expected {
	e.Connection = "close"
	return e
}

func standardError(status int) Expected {
	return Expected{Status: status, Type: PlainText, Body: fmt.Sprintf("%d %s\n", status, phrases[status])}
}

// Check holds an answer to what was expected; nil means that they agree.
func (e Expected) Check(a *Answer) error {
	if a.Status != e.Status {
		return fmt.Errorf("status %d, want %d (body %s)", a.Status, e.Status, harness.Clip(a.Body))
	}
	if e.Status < 200 {
		return nil
	}
	for name, want := range map[string]string{"Connection": e.Connection, "Content-Type": e.Type, "Allow": e.Allow} {
		if got := a.Field(name); got != want {
			return fmt.Errorf("field %s of the %d is %q, want %q", name, e.Status, got, want)
		}
	}
	length := e.Length
	if length == 0 {
		length = len(e.Body)
	}
	if e.Status == 204 || e.Status == 304 {
		length = 0
	}
	if got := max(a.Length, 0); got != int64(length) {
		return fmt.Errorf("a %d of %d bytes %s, want %d bytes", a.Status, got, harness.Clip(a.Body), length)
	}
	if !e.Bodiless && e.Length == 0 && string(a.Body) != e.Body {
		return fmt.Errorf("body of the %d is %s, want %s", e.Status, harness.Clip(a.Body), harness.Clip([]byte(e.Body)))
	}
	return nil
}
