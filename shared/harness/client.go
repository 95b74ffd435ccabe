package harness

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// HelloRequest is the request that everything begins with, and HelloBody the body of its answer.
const (
	HelloRequest = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	HelloBody    = "Hello, World!"
)

// Conn is a client's side of one connection: it sends bytes as they are given, and reads responses as
// they come. One goroutine may write while another reads.
type Conn struct {
	// TCP is the connection, for what is not done every day. What is read from it past Reader is lost
	// for the other methods.
	TCP    *net.TCPConn
	Reader *bufio.Reader
	// Timeout is how long each call waits at most, a write or a whole response.
	Timeout time.Duration
	// Opened is a moment before anything was sent.
	Opened time.Time
}

// Dial connects, within Patience, which is the connection's Timeout too.
func Dial(address string) (*Conn, error) { return dialWith(address, nil) }

// DialWindow is Dial with a receive buffer of so many bytes from before the handshake on (SO_RCVBUF,
// socket(7)): the first window that is announced is as small, and the segments that come are too.
func DialWindow(address string, receiveBuffer int) (*Conn, error) {
	return dialWith(address, func(_, _ string, raw syscall.RawConn) error {
		var err error
		controlErr := raw.Control(func(fd uintptr) { err = setReceiveBuffer(fd, receiveBuffer) })
		return cmp.Or(controlErr, err)
	})
}

func dialWith(address string, control func(network, address string, raw syscall.RawConn) error) (*Conn, error) {
	opened := time.Now()
	dialer := net.Dialer{Timeout: Patience, Control: control}
	c, err := dialer.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Conn{TCP: c.(*net.TCPConn), Reader: bufio.NewReader(c), Timeout: Patience, Opened: opened}, nil
}

// DialSlow is Dial with a receive buffer of so many bytes that does not grow (SO_RCVBUF, socket(7)), so
// that the server soon finds the socket full. The loopback's segments have 64 KiB: a buffer that
// has no room for some of them never opens its window.
func DialSlow(address string, receiveBuffer int) (*Conn, error) {
	c, err := Dial(address)
	if err != nil {
		return nil, err
	}
	if err := c.TCP.SetReadBuffer(receiveBuffer); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Write sends bytes as they are.
func (c *Conn) Write(b []byte) error {
	c.TCP.SetWriteDeadline(time.Now().Add(c.Timeout))
	n, err := c.TCP.Write(b)
	return c.failed(fmt.Sprintf("sent %d of %d bytes", n, len(b)), err)
}

// Send is Write for text.
func (c *Conn) Send(text string) error { return c.Write([]byte(text)) }

// ReadResponse reads one response; head says that it is one to a HEAD. An interim response (1xx) is
// one of its own.
func (c *Conn) ReadResponse(head bool) (*Response, error) {
	c.TCP.SetReadDeadline(time.Now().Add(c.Timeout))
	r, err := ReadResponse(c.Reader, head)
	return r, c.timedOut(err)
}

// Do sends a request and reads its response.
func (c *Conn) Do(request string) (*Response, error) {
	if err := c.Send(request); err != nil {
		return nil, err
	}
	return c.ReadResponse(strings.HasPrefix(request, "HEAD "))
}

// ReadEnd wants the connection to end with nothing more on it, and not by a reset.
func (c *Conn) ReadEnd() error {
	c.TCP.SetReadDeadline(time.Now().Add(c.Timeout))
	rest, err := io.ReadAll(io.LimitReader(c.Reader, 4096))
	if len(rest) > 0 {
		return &ResponseError{What: "want the end of the connection", Got: rest}
	}
	return c.failed("want the end of the connection", err)
}

// ReadRest reads everything up to the end of the connection. What has come is returned with an error too.
func (c *Conn) ReadRest() ([]byte, error) {
	c.TCP.SetReadDeadline(time.Now().Add(c.Timeout))
	rest, err := io.ReadAll(c.Reader)
	return rest, c.failed(fmt.Sprintf("after %d bytes", len(rest)), err)
}

// AwaitFirst waits until a byte has come, and leaves it there.
func (c *Conn) AwaitFirst() error {
	c.TCP.SetReadDeadline(time.Now().Add(c.Timeout))
	_, err := c.Reader.Peek(1)
	return c.failed("want a byte", err)
}

// CloseWrite ends this side: the server reads the end of input, and may still answer.
func (c *Conn) CloseWrite() error { return c.TCP.CloseWrite() }

// Close closes the connection.
func (c *Conn) Close() error { return c.TCP.Close() }

// Reset closes it with a reset in place of an end in good order, see SO_LINGER in socket(7).
func (c *Conn) Reset() error {
	err := c.TCP.SetLinger(0)
	return cmp.Or(c.TCP.Close(), err)
}

// failed puts what was done before err, and for how long it was waited.
func (c *Conn) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, c.timedOut(err))
}

func (c *Conn) timedOut(err error) error {
	if TimedOut(err) {
		return fmt.Errorf("nothing more for %v: %w", c.Timeout, err)
	}
	return err
}

// TimedOut says whether err is that of something that did not come in time.
func TimedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// WasReset says whether err is that the other side has reset the connection, or was gone when
// something was sent to it.
func WasReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Gone says whether err is that the other side has ended the connection, in good order or not.
func Gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || WasReset(err)
}

// Response is one response as it came.
type Response struct {
	StatusLine string // "HTTP/1.1 200 OK"
	Status     int
	Fields     []Field // in order, as they were spelled
	Length     int64   // of Content-Length, -1 without one
	Body       []byte  // nil for a HEAD, 1xx, 204 and 304
}

// Field is one header field.
type Field struct{ Name, Value string }

// Field is the value of the field of that name, whatever its case; "" if there is none.
func (r *Response) Field(name string) string {
	i := slices.IndexFunc(r.Fields, func(f Field) bool { return strings.EqualFold(f.Name, name) })
	if i < 0 {
		return ""
	}
	return r.Fields[i].Value
}

// Closes says whether it announces the end of the connection.
func (r *Response) Closes() bool { return strings.EqualFold(r.Field("Connection"), "close") }

// ResponseError says what came in place of a response.
type ResponseError struct {
	What string // is wrong
	Got  []byte // what came of it, from its first byte on
	Err  error  // io.EOF if not a byte came, io.ErrUnexpectedEOF, a timeout, a reset; nil for wrong bytes
}

func (e *ResponseError) Error() string {
	text := e.What
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if len(e.Got) > 0 {
		text += "; what came: " + Clip(e.Got)
	}
	return text
}

func (e *ResponseError) Unwrap() error { return e.Err }

const (
	maxHead = 64 << 10 // bytes of a response's head
	maxBody = 64 << 20 // bytes of its body: four times what any route answers with
)

// ReadResponse reads one response from r; head says that it is one to a HEAD. Its lines must end with
// CRLF, its fields be "Name: value", and its body have a Content-Length: servers here send no other
// (RFC 9112, sections 2.2, 5 and 6). Whether it is the right one is not looked at. An error is a
// [*ResponseError].
func ReadResponse(r *bufio.Reader, head bool) (*Response, error) {
	reader := responseReader{reader: r}
	response, err := reader.response(head)
	if err != nil {
		return nil, err
	}
	return response, nil
}

// responseReader keeps a head's bytes, for what is said of it.
type responseReader struct {
	reader *bufio.Reader
	got    []byte
}

func (r *responseReader) wrong(format string, arguments ...any) error {
	return &ResponseError{What: fmt.Sprintf(format, arguments...), Got: r.got}
}

func (r *responseReader) failed(what string, err error) error {
	if errors.Is(err, io.EOF) && len(r.got) > 0 {
		err = io.ErrUnexpectedEOF
	}
	return &ResponseError{What: what, Got: r.got, Err: err}
}

func (r *responseReader) response(head bool) (*Response, error) {
	line, err := r.line("want a response")
	if err != nil {
		return nil, err
	}
	response := &Response{StatusLine: line, Length: -1}
	// RFC 9112, section 4: HTTP-version SP status-code SP [ reason-phrase ].
	version, rest, _ := strings.Cut(line, " ")
	code, _, spaced := strings.Cut(rest, " ")
	response.Status, err = strconv.Atoi(code)
	if !strings.HasPrefix(version, "HTTP/1.") || err != nil || !spaced || len(code) != 3 || response.Status < 100 {
		return nil, r.wrong("no status line: %q", line)
	}
	within := fmt.Sprintf("in the head of a %d", response.Status)
	for {
		line, err := r.line(within)
		if err != nil {
			return nil, err
		}
		if line == "" {
			break
		}
		name, value, found := strings.Cut(line, ": ")
		if !found || name == "" || strings.TrimSpace(name) != name || strings.TrimSpace(value) != value {
			return nil, r.wrong("%s: malformed field line %q", within, line)
		}
		response.Fields = append(response.Fields, Field{name, value})
		if strings.EqualFold(name, "Content-Length") {
			n, err := strconv.ParseUint(value, 10, 63)
			if err != nil || response.Length >= 0 {
				return nil, r.wrong("%s: no second Content-Length, and a number: %q", within, line)
			}
			response.Length = int64(n)
		}
	}
	if head || response.Status < 200 || response.Status == 204 || response.Status == 304 {
		return response, nil
	}
	if response.Length < 0 || response.Length > maxBody {
		return nil, r.wrong("%s: want a Content-Length of %d at most", within, maxBody)
	}
	response.Body = make([]byte, response.Length)
	n, err := io.ReadFull(r.reader, response.Body)
	if err != nil {
		r.got = response.Body[:n]
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, r.failed(fmt.Sprintf("after %d of %d bytes of the body of a %d", n, response.Length, response.Status), err)
	}
	return response, nil
}

// line reads a line without its end, which must be CRLF; bare CR and LF have no place in a head.
func (r *responseReader) line(what string) (string, error) {
	from := len(r.got)
	for {
		piece, err := r.reader.ReadSlice('\n')
		r.got = append(r.got, piece...)
		if errors.Is(err, bufio.ErrBufferFull) && len(r.got) <= maxHead {
			continue
		}
		if len(r.got) > maxHead {
			return "", r.wrong("%s: it has no end within %d bytes", what, maxHead)
		}
		if err != nil {
			return "", r.failed(what, err)
		}
		break
	}
	line, ok := bytes.CutSuffix(r.got[from:], []byte("\r\n"))
	if !ok {
		return "", r.wrong("%s: a bare LF", what)
	}
	if i := slices.IndexFunc(line, func(b byte) bool { return b < ' ' && b != '\t' || b == 0x7f }); i >= 0 {
		return "", r.wrong("%s: control byte %#02x", what, line[i])
	}
	return string(line), nil
}

// Clip quotes the beginning of b, for messages.
func Clip(b []byte) string {
	const most = 120
	if len(b) > most {
		return fmt.Sprintf("%q… (%d bytes)", b[:most], len(b))
	}
	return strconv.Quote(string(b))
}
