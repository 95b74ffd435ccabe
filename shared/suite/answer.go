package suite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// PlainText is the content type of error bodies and of the greeting.
	PlainText = "text/plain; charset=utf-8"
	// Greeting is the body of GET /.
	Greeting = "Hello, World!"

	// maxAnswerLine is far above any line that a server of this project sends.
	maxAnswerLine = 4096
	// maxAnswerBody is the largest body that a route gives.
	maxAnswerBody = 16 << 20
)

// phrases are the reason phrases of RFC 9110, section 15 (431: RFC 6585) that a server here may use.
var phrases = map[int]string{
	100: "Continue", 200: "OK", 204: "No Content", 304: "Not Modified",
	400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
	413: "Content Too Large", 414: "URI Too Long", 417: "Expectation Failed",
	431: "Request Header Fields Too Large", 500: "Internal Server Error", 501: "Not Implemented",
	503: "Service Unavailable", 505: "HTTP Version Not Supported",
}

// fieldNames are the only fields that an answer may have, as they must be written.
var fieldNames = []string{
	"Allow", "Connection", "Content-Length", "Content-Type", "Date", "ETag", "Last-Modified", "Server",
}

// Answer is one response as it came over the wire, after [ReadAnswer] has found nothing wrong with it.
type Answer struct {
	// Status is the status code.
	Status int
	// Fields has the header fields by name, exactly as spelled in the answer.
	Fields map[string]string
	// Date is the Date field; zero in an interim answer (1xx), which has no fields.
	Date time.Time
	// Length is the declared length in bytes; 0 where the field must be absent.
	Length int
	// Body is the body; nil for HEAD, 1xx, 204 and 304.
	Body []byte
}

// ReadAnswer reads one response and is as strict as the contract: the status line in full, fields
// known, spelled and ordered as promised and none twice, Server and a well-formed Date always there,
// Content-Length exact or, with 204 and 304, absent, and no byte of body where none belongs. bodiless says
// that the request was a HEAD. The error is io.EOF only when not a single byte came.
//
// Whether the fields fit the request is not looked at: that is [Expected.Check].
func ReadAnswer(r *bufio.Reader, bodiless bool) (*Answer, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	answer := &Answer{Fields: map[string]string{}}
	if answer.Status, err = parseStatusLine(line); err != nil {
		return nil, err
	}
	last := ""
	for {
		line, err := readLine(r)
		if err != nil {
			return nil, fmt.Errorf("in the head of a %d: %w", answer.Status, unexpected(err))
		}
		if line == "" {
			break
		}
		name, value, found := strings.Cut(line, ": ")
		if !found || value == "" || strings.TrimSpace(value) != value {
			return nil, fmt.Errorf("malformed header line %q", line)
		}
		if !slices.Contains(fieldNames, name) {
			return nil, fmt.Errorf("unknown or misspelled field %q", line)
		}
		if name <= last {
			return nil, fmt.Errorf("field %q after %q: not in alphabetical order, or twice", name, last)
		}
		last = name
		answer.Fields[name] = value
	}
	if answer.Status < 200 {
		if len(answer.Fields) > 0 {
			return nil, fmt.Errorf("fields in an interim answer: %v", answer.Fields)
		}
		return answer, nil
	}
	if err := answer.checkFields(); err != nil {
		return nil, fmt.Errorf("in a %d: %w", answer.Status, err)
	}
	if bodiless || answer.Status == 204 || answer.Status == 304 {
		return answer, nil
	}
	answer.Body = make([]byte, answer.Length)
	if n, err := io.ReadFull(r, answer.Body); err != nil {
		return nil, fmt.Errorf("after %d of %d bytes of the body of a %d: %w", n, answer.Length, answer.Status, unexpected(err))
	}
	return answer, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readLine reads up to CRLF and refuses every other use of CR and LF.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		c, err := r.ReadByte()
		switch {
		case err != nil && len(line) > 0:
			return "", fmt.Errorf("after %q: %w", line, unexpected(err))
		case err != nil:
			return "", err
		case c == '\n' && len(line) > 0 && line[len(line)-1] == '\r':
			line = line[:len(line)-1]
			if i := slices.IndexFunc(line, func(c byte) bool { return c < ' ' || c >= 0x7f }); i >= 0 {
				return "", fmt.Errorf("control byte in the line %q", line)
			}
			return string(line), nil
		case c == '\n':
			return "", fmt.Errorf("bare LF after %q", line)
		case len(line) == maxAnswerLine:
			return "", fmt.Errorf("endless line %q…", line[:80])
		}
		line = append(line, c)
	}
}

// statusLines has every status line that a server here may send.
var statusLines = func() map[string]int {
	lines := map[string]int{}
	for code, phrase := range phrases {
		lines[fmt.Sprintf("HTTP/1.1 %d %s", code, phrase)] = code
	}
	return lines
}()

func parseStatusLine(line string) (int, error) {
	if code, known := statusLines[line]; known {
		return code, nil
	}
	return 0, fmt.Errorf("unknown status line %q", line)
}

func (a *Answer) checkFields() error {
	if got := a.Fields["Server"]; got != "qps-ladder" {
		return fmt.Errorf("field Server is %q", got)
	}
	date, err := time.Parse(http.TimeFormat, a.Fields["Date"])
	// Parse forgives a wrong day of the week and numbers without a leading zero; the way back does not.
	if err != nil || date.Format(http.TimeFormat) != a.Fields["Date"] {
		return fmt.Errorf("field Date is %q", a.Fields["Date"])
	}
	a.Date = date
	length, given := a.Fields["Content-Length"]
	if a.Status == 204 || a.Status == 304 {
		if given {
			return fmt.Errorf("field Content-Length %q where RFC 9110, 8.6 forbids or spares it", length)
		}
		return nil
	}
	a.Length, err = strconv.Atoi(length)
	if err != nil || a.Length < 0 || strconv.Itoa(a.Length) != length || a.Length > maxAnswerBody {
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
	e := standardError(status)
	e.Connection = "close"
	return e
}

func standardError(status int) Expected {
	return Expected{Status: status, Type: PlainText, Body: fmt.Sprintf("%d %s\n", status, phrases[status])}
}

// Check holds an answer to what was expected; nil means that they agree.
func (e Expected) Check(a *Answer) error {
	if a.Status != e.Status {
		return fmt.Errorf("status %d, want %d (body %s)", a.Status, e.Status, clip(a.Body))
	}
	if e.Status < 200 {
		return nil
	}
	for name, want := range map[string]string{"Connection": e.Connection, "Content-Type": e.Type, "Allow": e.Allow} {
		if got := a.Fields[name]; got != want {
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
	if a.Length != length {
		return fmt.Errorf("a %d of %d bytes %s, want %d bytes", a.Status, a.Length, clip(a.Body), length)
	}
	if !e.Bodiless && e.Length == 0 && string(a.Body) != e.Body {
		return fmt.Errorf("body of the %d is %s, want %s", e.Status, clip(a.Body), clip([]byte(e.Body)))
	}
	return nil
}

// clip quotes the beginning of b, for messages.
func clip(b []byte) string {
	const most = 120
	if len(b) > most {
		return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
	}
	return strconv.Quote(string(b))
}
