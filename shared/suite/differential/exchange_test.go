package differential

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// input is what a client does.
type input struct {
	bytes []byte
	cuts  []int // where bytes is cut, ascending
	shut  bool  // the client then ends its side
	late  bool  // the client reads nothing before it has sent everything: the answers have to wait

	urgent uint64 // bit i says that the last byte of piece i is urgent (tcp(7), MSG_OOB)
	sips   bool   // the client's window is the smallest, and it reads little at a time: the window closes and opens
}

func (in *input) pieces() [][]byte {
	pieces := make([][]byte, 0, len(in.cuts)+1)
	from := 0
	for _, cut := range in.cuts {
		pieces = append(pieces, in.bytes[from:cut])
		from = cut
	}
	return append(pieces, in.bytes[from:])
}

func (in *input) String() string {
	var b strings.Builder
	for i, piece := range in.pieces() {
		if in.isUrgent(i) {
			b.WriteString("  with its last byte urgent:")
		}
		if len(piece) > 1000 {
			fmt.Fprintf(&b, "  %q… (%d bytes)\n", piece[:200], len(piece))
		} else {
			fmt.Fprintf(&b, "  %q\n", piece)
		}
	}
	if in.shut {
		b.WriteString("  and the end of input\n")
	}
	if in.late {
		b.WriteString("  before anything is read\n")
	}
	if in.sips {
		b.WriteString("  through a small window, read in sips\n")
	}
	return b.String()
}

func (in *input) isUrgent(piece int) bool { return piece < 64 && in.urgent>>piece&1 == 1 }

// outcome is what a server does.
type outcome struct {
	received []byte // with all dates masked
	end      string // "closed", "reset", or what else became of it
}

// compare runs one exchange with each target, all at a time. nil means that there is no difference, between them and to the model.
//
// A client that sends on after the request that it said is its last breaks its word. A server need not linger for it: as it
// happens, that client sees the end of the connection in order or a reset, which may cost it the end of the answers.
func compare(targets []target, in *input) error {
	m := modelOf(in.bytes)
	sent := in.pieces()
	if !in.shut && !m.byClient {
		last := zeros[:1]
		if !m.closed {
			last = make([]byte, m.zeros)
		}
		sent = append(sent, last)
		m = modelOf(bytes.Join(sent, nil))
	}
	outcomes := make([]outcome, len(targets))
	var exchanges sync.WaitGroup
	for i, t := range targets {
		exchanges.Go(func() { outcomes[i] = exchange(t.address, sent, in) })
	}
	exchanges.Wait()
	mayBeReset := m.byClient && m.behind
	reference := 0
	for i, o := range outcomes {
		if mayBeReset && o.end == "closed" {
			reference = i
		}
	}
	first := outcomes[reference]
	for i, o := range outcomes {
		same := samePart(o.received, first.received)
		switch {
		case o.end == first.end && same == len(o.received) && same == len(first.received):
		case mayBeReset && o.end == "reset" && (same == len(o.received) || first.end == "reset" && same == len(first.received)):
		default:
			return fmt.Errorf("%s differs from %s on\n%s%s\n%s", targets[i].name, targets[reference].name, in, first.text(targets[reference], same), o.text(targets[i], same))
		}
	}
	if mayBeReset && first.end == "reset" {
		return nil
	}
	if first.end != "closed" {
		return fmt.Errorf("all stages alike: %s, on\n%s%s", first.end, in, first.text(targets[reference], len(first.received)))
	}
	if err := m.check(first.received); err != nil {
		return fmt.Errorf("all stages alike: %w, on\n%s%s", err, in, first.text(targets[reference], 0))
	}
	return nil
}

// samePart is the length of what a and b begin with alike.
func samePart(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// text shows what was received around the offset at.
func (o *outcome) text(t target, at int) string {
	const before, after = 300, 600
	from, to := max(at-before, 0), min(at+after, len(o.received))
	return fmt.Sprintf("%s: %d bytes, then %s; from byte %d:\n  %q", t.name, len(o.received), o.end, from, o.received[from:to])
}

// enough is time for the largest answers of all targets at once, on a machine that is busy and has the race detector on.
const enough = 5 * harness.Patience

// exchange sends the pieces, and reads to the end of the connection: meanwhile, or then.
func exchange(address string, pieces [][]byte, in *input) outcome {
	dial := harness.Dial
	if in.sips {
		dial = func(address string) (*harness.Conn, error) { return harness.DialWindow(address, 1) }
	}
	c, err := dial(address)
	if err != nil {
		return outcome{end: err.Error()}
	}
	c.Timeout = enough
	// A reset in place of the last handshake: or the ports of a hundred thousand connections would rest in TIME_WAIT.
	defer c.Reset()

	var received []byte
	var reading sync.WaitGroup
	read := func() {
		if in.sips {
			received, err = readInSips(c.TCP)
		} else {
			received, err = c.ReadRest()
		}
	}
	if !in.late {
		reading.Go(read)
	}
	var sending error
	for i, piece := range pieces {
		if i > 0 {
			// Gives the server time to read, so that the pieces stay pieces; nothing depends on that.
			if len(pieces) < 16 {
				time.Sleep(20 * time.Microsecond)
			} else {
				runtime.Gosched()
			}
		}
		if sending = send(c, piece, in.isUrgent(i)); sending != nil {
			break // it has closed: what came before says more
		}
	}
	if in.shut {
		c.CloseWrite()
	}
	if in.late {
		reading.Go(read)
	}
	reading.Wait()
	maskDates(received)
	if err == nil && errors.Is(sending, syscall.ECONNRESET) {
		err = sending // a socket tells of a reset once: the call that was told was this one
	}
	return outcome{received, endOf(err)}
}

// send sends b, its last byte as urgent data if that is so.
func send(c *harness.Conn, b []byte, urgent bool) error {
	if !urgent || len(b) == 0 {
		return c.Write(b)
	}
	last := len(b) - 1
	if err := c.Write(b[:last]); err != nil {
		return err
	}
	return c.SendUrgent(b[last])
}

// readInSips reads to the end: at first little at a time, with pauses in which the window closes, and then with the window opened.
func readInSips(c *net.TCPConn) (received []byte, err error) {
	c.SetReadDeadline(time.Now().Add(enough))
	part := make([]byte, 300)
	for range 20 {
		n, err := c.Read(part)
		received = append(received, part[:n]...)
		if err == io.EOF {
			return received, nil
		}
		if err != nil {
			return received, err
		}
		time.Sleep(20 * time.Microsecond)
	}
	if err := openWindow(c); err != nil {
		return received, err
	}
	rest, err := io.ReadAll(c)
	return append(received, rest...), err
}

func endOf(err error) string {
	switch {
	case err == nil:
		return "closed"
	case harness.TimedOut(err):
		return "open, and no answer"
	case harness.WasReset(err):
		return "reset"
	}
	return err.Error()
}

var (
	dateBegin = []byte("\r\nDate: ")
	dateMask  = []byte("Sun, 06 Nov 1994 08:49:37")
	dateEnd   = []byte(" GMT\r\n")
)

// maskDates overwrites the value of each Date field. One that stands in a body is masked too: in that of every stage.
func maskDates(b []byte) {
	for {
		i := bytes.Index(b, dateBegin)
		if i < 0 {
			return
		}
		b = b[i+len(dateBegin):]
		if len(b) > len(dateMask) && bytes.HasPrefix(b[len(dateMask):], dateEnd) {
			copy(b, dateMask)
		}
	}
}
