package grade

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	behaviour("handshake", "the handshake is judged and answered as RFC 6455 wants it", serving(handshakes))
	behaviour("frames", "every frame is answered as RFC 6455 wants it, in the order of its sections", frames)
	behaviour("cut-frames", "frames may be cut anywhere", talkingSocket(cutFrames, "-poison"))
	behaviour("late-sockets", "a client that reads late gets every message, and the right ones", lateSockets)
	behaviour("sockets-at-rest", "a WebSocket at rest holds no buffer", serving(socketsAtRest))
	behaviour("announced", "a frame takes the memory of what has arrived, not of what it announces", serving(announcedFrames))
	behaviour("idle-sockets", "a WebSocket that rests past -idle-timeout is closed with 1001", talkingSocket(idleSocket, "-idle-timeout="+socketIdle.String()))
	behaviour("goes-away", "a server that stops closes its WebSockets with 1001", goesAway)
	special["times round a loop"] = specialFigure{"KiB of payload", maskRounds}
	loads["small messages"] = func(random *rand.Rand) load { return socketLoad(random, 1, maxControlPayload) }
	loads["large messages"] = func(random *rand.Rand) load { return socketLoad(random, 15<<10, 17<<10) }
}

const (
	socketPath = "/websocket"

	// sampleKey and sampleAccept are those of RFC 6455, 1.3.
	sampleKey    = "dGhlIHNhbXBsZSBub25jZQ=="
	sampleAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

	upgradeRequest = "GET " + socketPath + " HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Key: " + sampleKey + "\r\nSec-WebSocket-Version: 13\r\n\r\n"

	maxControlPayload = 125
)

// The opcodes (RFC 6455, 11.8), and the bit that says that a frame ends its message.
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xa

	finBit = 0x80
)

// frameOf is a frame with that first byte, and the shortest length that will do (RFC 6455, 5.2). Those of clients are masked.
func frameOf(first byte, masked bool, payload string) string {
	b := []byte{first}
	bit := byte(0)
	if masked {
		bit = 0x80
	}
	switch n := len(payload); {
	case n < 126:
		b = append(b, bit|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, bit|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, bit|127), uint64(n))
	}
	if !masked {
		return string(b) + payload
	}
	return string(b) + masks(sampleMask, payload)
}

// sampleMask is that of the examples in RFC 6455, 5.7.
const sampleMask = "\x37\xfa\x21\x3d"

// masks is the key, and the payload under it (RFC 6455, 5.3).
func masks(key, payload string) string {
	b := []byte(payload)
	for i := range b {
		b[i] ^= key[i%4]
	}
	return key + string(b)
}

// clientFrame is a client's frame that ends its message, or is one of several parts without the bit.
func clientFrame(first byte, payload string) string { return frameOf(first, true, payload) }

// serverFrame is a server's frame.
func serverFrame(opcode byte, payload string) string { return frameOf(finBit|opcode, false, payload) }

// textMessage is a text message in one frame, as a client sends it.
func textMessage(payload string) string { return clientFrame(finBit|opText, payload) }

func closeFrame(code int, reason string) string {
	return clientFrame(finBit|opClose, string(binary.BigEndian.AppendUint16(nil, uint16(code)))+reason)
}

// upgrade makes a WebSocket of a connection.
func (c *connection) upgrade() error {
	a, err := c.ask(upgradeRequest)
	switch {
	case err != nil:
		return fmt.Errorf("the handshake: %w", err)
	case a.Status != 101 || a.Field("Sec-WebSocket-Accept") != sampleAccept:
		return fmt.Errorf("the handshake was answered with %q and Sec-WebSocket-Accept %q", a.StatusLine, a.Field("Sec-WebSocket-Accept"))
	}
	c.upgraded = true
	return nil
}

// socket connects a WebSocket that stays until the server is killed.
func (s *Server) socket() (*connection, error) {
	c, err := s.dial()
	if err == nil {
		err = c.upgrade()
	}
	return c, err
}

// talkingSocket makes a behaviour of what can be seen over one WebSocket.
func talkingSocket(f func(*Server, *connection) error, flags ...string) func(*Subject) error {
	return serving(func(server *Server) error {
		c, err := server.socket()
		if err != nil {
			return err
		}
		return f(server, c)
	}, flags...)
}

// maxFrame is more than any frame of a server here has.
const maxFrame = 4 << 20

// frame reads one of the server's: its opcode and payload.
func (c *connection) frame() (opcode byte, payload []byte, err error) {
	c.TCP.SetReadDeadline(time.Now().Add(answerLimit))
	var head [8]byte
	read := func(n int) uint64 {
		clear(head[:])
		if err == nil {
			_, err = io.ReadFull(c.Reader, head[8-n:])
		}
		return binary.BigEndian.Uint64(head[:])
	}
	first, length := read(1), read(1)
	masked := length&0x80 != 0
	switch length &= 0x7f; length {
	case 126:
		length = read(2)
	case 127:
		length = read(8)
	}
	switch {
	case err != nil:
		return 0, nil, plain(err)
	case first&^0xf != finBit:
		return 0, nil, fmt.Errorf("a frame began with the byte %#02x: whole messages and no extensions are wanted", first)
	case masked:
		return 0, nil, errors.New("a frame of the server was masked (RFC 6455, 5.1)")
	case length > maxFrame:
		return 0, nil, fmt.Errorf("a frame announced %d bytes", length)
	}
	payload = make([]byte, length)
	if _, err := io.ReadFull(c.Reader, payload); err != nil {
		return 0, nil, plain(err)
	}
	return byte(first & 0xf), payload, nil
}

var opcodeNames = map[byte]string{opText: "text", opBinary: "binary", opClose: "Close", opPing: "Ping", opPong: "Pong"}

func describe(opcode byte, payload []byte) string {
	name := opcodeNames[opcode]
	if name == "" {
		name = fmt.Sprintf("opcode %d", opcode)
	}
	if opcode == opClose && len(payload) > 1 {
		return fmt.Sprintf("Close with %d", binary.BigEndian.Uint16(payload))
	}
	return name + " " + clip(payload)
}

// expectFrame reads a frame and wants this one.
func (c *connection) expectFrame(opcode byte, payload string) error {
	got, b, err := c.frame()
	if err != nil {
		return err
	}
	if got != opcode || string(b) != payload {
		if got == opcode && len(b) == len(payload) && len(b) > 60 {
			at := firstDifference(string(b), payload)
			return fmt.Errorf("a message of %d bytes differs from byte %d on: %s, not %s", len(b), at, clip(b[at:]), clip([]byte(payload[at:])))
		}
		return fmt.Errorf("a frame was %s, not %s", describe(got, b), describe(opcode, []byte(payload)))
	}
	return nil
}

// expectClose reads a Close frame with this code, 0 for none, and what reason there may be; then the end.
func (c *connection) expectClose(code int) error {
	got, b, err := c.frame()
	if err != nil {
		return fmt.Errorf("in place of a Close frame: %w", err)
	}
	if got != opClose || code == 0 && len(b) > 0 || code != 0 && (len(b) < 2 || int(binary.BigEndian.Uint16(b)) != code) {
		want := fmt.Sprintf("Close with %d", code)
		if code == 0 {
			want = "Close without a code"
		}
		return fmt.Errorf("a frame was %s, not %s", describe(got, b), want)
	}
	if err := c.ends(); err != nil {
		return fmt.Errorf("behind its Close frame: %w", err)
	}
	return nil
}

// echoes sends a text message and wants it back.
func (c *connection) echoes(payload string) error {
	if err := c.send(textMessage(payload)); err != nil {
		return err
	}
	return c.expectFrame(opText, payload)
}

// socketLoad are binary messages of sizes between these, and what is in them nobody knows beforehand.
func socketLoad(random *rand.Rand, least, most int) load {
	l := load{socket: true}
	for range 16 {
		payload := letters(random, least+random.IntN(most-least+1))
		l.requests = append(l.requests, request{clientFrame(finBit|opBinary, payload), payload})
	}
	return l
}

// handshakes sends each request of its table over a connection of its own.
func handshakes(server *Server) error {
	for _, e := range handshakeCases {
		if err := over(server.dial, e.check, e.what, e.section); err != nil {
			return err
		}
	}
	return nil
}

// over checks one case over a connection of its own, and says which one does not hold.
func over(open func() (*connection, error), check func(*connection) error, what, section string) error {
	c, err := open()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := check(c); err != nil {
		return fmt.Errorf("%s: %w (RFC 6455, %s)", what, err, section)
	}
	return nil
}

func (e *handshakeCase) check(c *connection) error {
	if err := c.send(e.request()); err != nil {
		return err
	}
	a, err := c.ReadResponse(strings.HasPrefix(e.line, "HEAD "))
	switch {
	case err != nil:
		return plain(err)
	case a.Status != e.status:
		return fmt.Errorf("the answer was %d, not %d", a.Status, e.status)
	case a.Status == 101 && a.Field("Sec-WebSocket-Accept") != sampleAccept:
		return fmt.Errorf("Sec-WebSocket-Accept was %q, not %q", a.Field("Sec-WebSocket-Accept"), sampleAccept)
	case a.Status == 101 && (a.Field("Sec-WebSocket-Extensions") != "" || a.Field("Sec-WebSocket-Protocol") != ""):
		return errors.New("it agrees to an extension or a subprotocol, and there is none")
	case a.Status == 426 && a.Field("Sec-WebSocket-Version") != "13":
		return errors.New("a 426 has to say which version would do, Sec-WebSocket-Version: 13")
	case (a.Status == 101 || a.Status == 426) && !strings.EqualFold(a.Field("Upgrade"), "websocket"):
		return fmt.Errorf("the Upgrade of a %d was %q", a.Status, a.Field("Upgrade"))
	case a.Status != 101:
		return nil
	}
	if e.behind == "" {
		return c.echoes("it is one")
	}
	return c.expectFrame(opText, e.behind)
}

// socketLimit is the -max-body of the table's server.
const socketLimit = 100_000

// frames sends each conversation of the table over a WebSocket of its own.
func frames(s *Subject) error {
	return s.with(func(server *Server) error {
		for _, e := range frameCases() {
			if err := over(server.socket, e.check, e.what, e.section); err != nil {
				return err
			}
		}
		return nil
	}, fmt.Sprintf("-max-body=%d", socketLimit), "-poison")
}

func (e *frameCase) check(c *connection) error {
	sending := make(chan error, 1)
	go func() { sending <- c.send(e.send) }()
	for _, f := range e.want {
		if err := c.expectFrame(f.opcode, f.payload); err != nil {
			return err
		}
	}
	if e.code == staysOpen {
		if err := <-sending; err != nil {
			return err
		}
		return c.echoes("still here")
	}
	err := c.expectClose(max(e.code, 0))
	<-sending // which may fail, for the server is gone
	return err
}

// conversation is a few frames of all kinds, and the frames that come back.
func conversation() (text string, want []wantedFrame) {
	long := fileText(300)
	text = clientFrame(finBit|opText, "Grüße, 世界 🌍") + clientFrame(opText, "one, ") + clientFrame(finBit|opPing, "between") + clientFrame(0, "zw\xc3") + clientFrame(finBit, "\xb6lf") +
		clientFrame(finBit|opBinary, "\xff\x00\xfe") + clientFrame(finBit|opBinary, long) + clientFrame(finBit|opPing, "") + clientFrame(finBit|opText, "") + clientFrame(finBit|opPong, "?") +
		clientFrame(opBinary, long[:150]) + clientFrame(finBit, long[150:])
	want = []wantedFrame{{opText, "Grüße, 世界 🌍"}, {opPong, "between"}, {opText, "one, zwölf"}, {opBinary, "\xff\x00\xfe"}, {opBinary, long},
		{opPong, ""}, {opText, ""}, {opBinary, long}}
	return text, want
}

// cutFrames sends the same conversation again and again, cut at another place each time, and at last byte by byte. A second client's
// two answers come between the halves: when they are there, the loop has seen the first half.
func cutFrames(server *Server, c *connection) error {
	text, want := conversation()
	expect := func(what string) error {
		for _, f := range want {
			if err := c.expectFrame(f.opcode, f.payload); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		return nil
	}
	other, err := server.dial()
	if err != nil {
		return err
	}
	for cut := 1; cut < len(text); cut++ {
		if err := c.send(text[:cut]); err != nil {
			return err
		}
		for range 2 {
			if err := other.hello(); err != nil {
				return fmt.Errorf("another client, while half a frame is there: %w", err)
			}
		}
		if err := c.send(text[cut:]); err != nil {
			return err
		}
		if err := expect(fmt.Sprintf("cut behind byte %d of %d", cut, len(text))); err != nil {
			return err
		}
	}
	for i := range len(text) {
		if err := c.send(text[i : i+1]); err != nil {
			return err
		}
	}
	if err := expect("sent byte by byte"); err != nil {
		return err
	}
	// More than any buffer of a loop holds, in pieces that end anywhere.
	large := fileText(90_000)
	for _, size := range []int{997, 4001, 9471, 9472, 9473, 40_001} {
		for piece := range slices.Chunk([]byte(clientFrame(finBit|opText, large)), size) {
			if err := c.send(string(piece)); err != nil {
				return err
			}
			if err := other.hello(); err != nil {
				return err
			}
		}
		if err := c.expectFrame(opText, large); err != nil {
			return fmt.Errorf("in pieces of %d bytes: %w", size, err)
		}
	}
	return nil
}

// lateSockets reads when the server has found the socket full, with a server that overwrites what nobody may look at any longer.
func lateSockets(s *Subject) error {
	return s.with(func(server *Server) error {
		c, err := dialSlow(server.Ready.Address)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.upgrade(); err != nil {
			return err
		}
		const n = 1500
		message := func(i int) string {
			return strings.Repeat(fmt.Sprintf("%04d,", i), []int{10, 90, 400, 1500, 4000}[i%5])
		}
		sending := make(chan error, 1)
		go func() {
			var all strings.Builder
			for i := range n {
				all.WriteString(textMessage(message(i)))
			}
			sending <- c.send(all.String())
		}()
		if err := server.full(); err != nil {
			return err
		}
		for i := range n {
			if err := c.expectFrame(opText, message(i)); err != nil {
				return fmt.Errorf("message %d of %d: %w", i+1, n, err)
			}
		}
		return <-sending
	}, "-poison", unhurried)
}

// socketsAtRest weighs the heap with and without WebSockets that have each had a message, a large one.
func socketsAtRest(server *Server) error {
	const n = 400
	before, err := server.heap()
	if err != nil {
		return err
	}
	payload := fileText(12_000)
	for range n {
		c, err := server.socket()
		if err == nil {
			err = c.echoes(payload)
		}
		if err != nil {
			return err
		}
	}
	r, ok := server.await(func(r harness.Reading) bool { return int64(r.Total.HeldBytes) == 0 })
	if !ok {
		return fmt.Errorf("it holds %d bytes for %d WebSockets that rest", int64(r.Total.HeldBytes), n)
	}
	after, err := server.heap()
	if err != nil {
		return err
	}
	if each := (after - before) / n; each > heapPerConnection {
		return fmt.Errorf("%d WebSockets that rest take %d bytes of heap each", n, each)
	}
	return nil
}

// announcedFrames has many clients announce as much as they may, and send little of it.
func announcedFrames(server *Server) error {
	const n, most = 200, 64 << 10
	before, err := server.heap()
	if err != nil {
		return err
	}
	for range n {
		c, err := server.socket()
		if err != nil {
			return err
		}
		begun := clientFrame(finBit|opBinary, strings.Repeat("x", 1<<20))[:1000]
		if err := c.send(begun); err != nil {
			return err
		}
	}
	for range 2 { // when this has been answered, all that came before has been read
		c, err := server.socket()
		if err == nil {
			err = c.echoes("between")
		}
		if err != nil {
			return err
		}
	}
	after, err := server.heap()
	if err != nil {
		return err
	}
	if each := (after - before) / n; each > most {
		return fmt.Errorf("%d clients that have sent 1000 bytes of a MiB take %d bytes of heap each", n, each)
	}
	return nil
}

const socketIdle = time.Second

func idleSocket(_ *Server, c *connection) error {
	if err := c.echoes("and now nothing"); err != nil {
		return err
	}
	since := time.Now()
	if err := c.expectCloseAnswered(1001); err != nil {
		return err
	}
	if took := time.Since(since); took < socketIdle-50*time.Millisecond {
		return fmt.Errorf("it was closed after %v, with -idle-timeout=%v", took.Round(time.Millisecond), socketIdle)
	}
	return nil
}

// expectCloseAnswered reads a Close frame that the server begins with, answers it as clients do, and wants the end.
func (c *connection) expectCloseAnswered(code int) error {
	opcode, payload, err := c.frame()
	if err != nil {
		return err
	}
	if opcode != opClose || len(payload) < 2 || int(binary.BigEndian.Uint16(payload)) != code {
		return fmt.Errorf("a frame was %s, not Close with %d", describe(opcode, payload), code)
	}
	if err := c.send(clientFrame(finBit|opClose, string(payload[:2]))); err != nil {
		return err
	}
	return c.ends()
}

// goesAway stops the server while WebSockets are open.
func goesAway(s *Subject) error {
	const n = 3
	ended := make(chan error, n)
	err := s.with(func(server *Server) error {
		for range n {
			c, err := server.socket()
			if err == nil {
				err = c.echoes("before the end")
			}
			if err != nil {
				return err
			}
			go func() { ended <- c.expectCloseAnswered(1001) }()
		}
		return nil
	})
	for range n {
		if err != nil {
			return err
		}
		err = <-ended
	}
	return err
}

// maskRounds counts the times round all loops of the files of the exercise for a message of eight KiB: a mask undone
// eight bytes at a time takes 128 of them for each KiB.
func maskRounds(s *Subject) (float64, error) {
	const n, size = 200, 8 << 10
	binary, err := s.Build("-cover", "-covermode=count")
	if err != nil {
		return 0, fmt.Errorf("cannot build it to count what is executed: %w", err)
	}
	payload := letters(s.random("masks"), size)
	var rounds [2]int
	for i := range rounds {
		executed, err := s.executedBy(binary, func(server *Server) error {
			c, err := server.socket()
			for range i * n {
				if err == nil {
					err = c.send(clientFrame(finBit|opBinary, payload))
				}
				if err == nil {
					err = c.expectFrame(opBinary, payload)
				}
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		if rounds[i], err = s.countOwn(executed, roundAt); err != nil {
			return 0, err
		}
	}
	return float64(rounds[1]-rounds[0]) / n / (size >> 10), nil
}
