package grade

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// socketServer builds and starts what exercise 23 begins with, or its reference.
func socketServer(t testing.TB, reference bool, flags ...string) *harness.Server {
	s, _ := stoppableSocketServer(t, reference, flags...)
	return s
}

// stoppableSocketServer is socketServer for a test that stops it.
func stoppableSocketServer(t testing.TB, reference bool, flags ...string) (s *harness.Server, stop func() error) {
	root, err := harness.FindRoot()
	require.NoError(t, err)
	const folder = "docs/workshop/exercises/23-websocket/"
	v := harness.Variant{Name: "websocket", Stage: "stage5", Change: harness.Change{Folder: folder + "_start", Patch: folder + "start.patch"}}
	if reference {
		v.Then = []harness.Change{{Folder: folder + "_reference", Patch: folder + "reference.patch"}}
	}
	source, err := v.Source(context.Background(), root)
	require.NoError(t, err)
	program, err := source.Build(context.Background(), t.TempDir())
	require.NoError(t, err)
	s, err = harness.StartServer(context.Background(), harness.ServerCommand{Command: harness.Command{Path: program, Args: append([]string{"-workers", "1"}, flags...)}})
	require.NoError(t, err)
	stop = sync.OnceValue(s.Stop)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("%v; standard error: %s", err, s.Stderr())
		}
	})
	return s, stop
}

// TestWebSocketsOfALibrary has the clients of a library talk to both servers.
func TestWebSocketsOfALibrary(t *testing.T) {
	for name, reference := range map[string]bool{"start": false, "reference": true} {
		t.Run(name, func(t *testing.T) {
			s := socketServer(t, reference)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			c, _, err := websocket.Dial(ctx, "ws://"+s.Ready.Address+socketPath, &websocket.DialOptions{
				CompressionMode: websocket.CompressionContextTakeover, Subprotocols: []string{"chat"},
			})
			require.NoError(t, err)
			defer c.CloseNow()
			require.Empty(t, c.Subprotocol())
			c.SetReadLimit(4 << 20)

			type received struct {
				kind websocket.MessageType
				text string
			}
			messages := make(chan received)
			ended := make(chan error, 1)
			go func() {
				for {
					kind, b, err := c.Read(ctx)
					if err != nil {
						ended <- err
						return
					}
					messages <- received{kind, string(b)}
				}
			}()
			for _, size := range []int{0, 1, 125, 126, 4000, 9464, 9465, 16 << 10, 65_535, 65_536, 1 << 20} {
				for _, kind := range []websocket.MessageType{websocket.MessageText, websocket.MessageBinary} {
					payload := fileText(size)
					require.NoError(t, c.Write(ctx, kind, []byte(payload)))
					got := <-messages
					require.Equal(t, kind, got.kind)
					require.True(t, payload == got.text, "%d bytes came back as %d others", size, len(got.text))
				}
			}
			// Each Write is a fragment.
			w, err := c.Writer(ctx, websocket.MessageText)
			require.NoError(t, err)
			for _, part := range []string{"Grü", "ße", "", " und ", strings.Repeat("mehr ", 5000)} {
				_, err := w.Write([]byte(part))
				require.NoError(t, err)
				require.NoError(t, c.Ping(ctx), "between fragments")
			}
			require.NoError(t, w.Close())
			require.Equal(t, "Grüße und "+strings.Repeat("mehr ", 5000), (<-messages).text)

			require.NoError(t, c.Write(ctx, websocket.MessageText, []byte("good \xff")))
			require.Equal(t, websocket.StatusInvalidFramePayloadData, websocket.CloseStatus(<-ended))

			c, _, err = websocket.Dial(ctx, "ws://"+s.Ready.Address+socketPath, nil)
			require.NoError(t, err)
			require.NoError(t, c.Close(4321, "enough"), "a clean end")
			_, err = s.Await(ctx, "an end of all connections", func(r harness.Reading) bool { return r.Total.Connections == 0 })
			require.NoError(t, err)
		})
	}
}

// socketModel is what a server answers to all that a client sends behind the handshake: RFC 6455 once more, written to be read, for
// an input that is there as a whole. ended says that a Close frame is the last of it.
func socketModel(in []byte, limit int) (out []byte, ended bool) {
	answer := func(opcode byte, payload []byte) { out = append(out, serverFrame(opcode, string(payload))...) }
	fail := func(code int) ([]byte, bool) {
		answer(opClose, binary.BigEndian.AppendUint16(nil, uint16(code)))
		return out, true
	}
	var message []byte
	var kind byte // of the message that has begun
	for len(in) > 0 {
		last, opcode := in[0]&finBit != 0, in[0]&0xf
		control := opcode >= 8
		switch {
		case in[0]&0x70 != 0, opcode > 2 && opcode < 8, opcode > 10, control && !last:
			return fail(1002)
		case !control && (opcode == opContinuation) != (kind != 0):
			return fail(1002)
		case len(in) < 2:
			return out, false
		case in[1]&0x80 == 0, control && in[1]&0x7f > 125:
			return fail(1002)
		}
		length, head := uint64(in[1]&0x7f), 2
		for form, bytes := range map[uint64]int{126: 2, 127: 8} {
			if uint64(in[1]&0x7f) != form {
				continue
			}
			if head += bytes; len(in) < head {
				return out, false
			}
			length = binary.BigEndian.Uint64(append(make([]byte, 8-bytes), in[2:head]...))
			if length < 126 || bytes == 8 && length < 65536 || length>>63 != 0 {
				return fail(1002)
			}
		}
		if !control && length > uint64(limit-len(message)) {
			return fail(1009)
		}
		if head += 4; len(in) < head {
			return out, false
		}
		n := min(int(length), len(in)-head)
		payload := []byte(masks(string(in[head-4:head]), string(in[head:head+n])))[4:]
		whole := n == int(length)
		in = in[head+n:]
		if !control {
			if kind == 0 {
				kind = opcode
			}
			if message = append(message, payload...); kind == opText && !textSoFar(message, whole && last) {
				return fail(1007)
			}
		}
		switch {
		case !whole:
			return out, false
		case opcode == opPing:
			answer(opPong, payload)
		case opcode == opClose && len(payload) == 0:
			answer(opClose, nil)
			return out, true
		case opcode == opClose && len(payload) == 1:
			return fail(1002)
		case opcode == opClose:
			code := int(binary.BigEndian.Uint16(payload))
			never := []int{1004, 1005, 1006}
			switch {
			case !utf8.Valid(payload[2:]):
				return fail(1007)
			case code < 1000, code > 1014 && code < 3000, code > 4999, slices.Contains(never, code):
				return fail(1002)
			}
			return fail(code)
		case !control && last:
			answer(kind, message)
			message, kind = nil, 0
		}
	}
	return out, false
}

// textSoFar says whether b is UTF-8, or may become it.
func textSoFar(b []byte, whole bool) bool {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			return !whole && !utf8.FullRune(b)
		}
		b = b[size:]
	}
	return true
}

// TestFrameCasesAndModelAgree holds two readings of the RFC against each other.
func TestFrameCasesAndModelAgree(t *testing.T) {
	all := frameCases()
	require.GreaterOrEqual(t, len(all), 60)
	section := func(text string) (order int) {
		for _, part := range strings.Split(text+".0.0", ".")[:3] {
			n, err := strconv.Atoi(part)
			require.NoError(t, err)
			order = order*100 + n
		}
		return order
	}
	require.True(t, slices.IsSortedFunc(all, func(a, b frameCase) int { return section(a.section) - section(b.section) }), "in the order of the RFC")
	require.True(t, slices.IsSortedFunc(handshakeCases, func(a, b handshakeCase) int { return section(a.section) - section(b.section) }))
	for _, e := range all {
		want := ""
		for _, f := range e.want {
			want += serverFrame(f.opcode, f.payload)
		}
		switch {
		case e.code > 0:
			want += serverFrame(opClose, string(binary.BigEndian.AppendUint16(nil, uint16(e.code))))
		case e.code == withoutCode:
			want += serverFrame(opClose, "")
		}
		got, ended := socketModel([]byte(e.send), socketLimit)
		require.True(t, want == string(got), "%s: %s", e.section, e.what)
		require.Equal(t, e.code != staysOpen, ended, "%s: %s", e.section, e.what)
	}
	text, want := conversation()
	got, _ := socketModel([]byte(text), socketLimit)
	for _, f := range want {
		answer := serverFrame(f.opcode, f.payload)
		require.True(t, bytes.HasPrefix(got, []byte(answer)))
		got = got[len(answer):]
	}
	require.Empty(t, got)
}

// FuzzFrames sends the reference any bytes behind a handshake, in one piece and cut in two, and compares with the model.
func FuzzFrames(f *testing.F) {
	for _, e := range frameCases() {
		if len(e.send) < 4096 {
			f.Add([]byte(e.send), uint16(len(e.send)/2))
		}
	}
	text, _ := conversation()
	f.Add([]byte(text), uint16(77))
	const limit = 20_000
	s := socketServer(f, true, fmt.Sprintf("-max-body=%d", limit), "-poison")
	f.Fuzz(func(t *testing.T, in []byte, cut uint16) {
		want, _ := socketModel(in, limit)
		for _, at := range []int{len(in), int(cut) % (len(in) + 1)} {
			c, err := dial(s.Ready.Address)
			require.NoError(t, err)
			require.NoError(t, c.upgrade())
			// It may have ended the connection before the second piece.
			_ = c.Write(in[:at])
			_ = c.Write(in[at:])
			_ = c.TCP.CloseWrite()
			got, err := c.ReadRest()
			c.Close()
			if !bytes.Equal(want, got) {
				t.Fatalf("%q, cut at %d:\n%q came back, not\n%q (%v)", in, at, got, want, err)
			}
		}
	})
}

// TestMessageThatStops: a client that leaves a frame, or a message between two frames, for too long is told so.
func TestMessageThatStops(t *testing.T) {
	s := socketServer(t, true, "-body-timeout=300ms")
	large := clientFrame(finBit|opBinary, fileText(30_000))
	for _, begun := range []string{large[:1], large[:6], large[:1000], large[:20_000], clientFrame(opText, "and"), clientFrame(opText, "and") + clientFrame(finBit|opPing, "")} {
		c, err := dial(s.Ready.Address)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.upgrade())
		require.NoError(t, c.echoes("before"))
		require.NoError(t, c.send(begun))
		if strings.Contains(begun, clientFrame(finBit|opPing, "")) {
			require.NoError(t, c.expectFrame(opPong, ""))
		}
		require.NoError(t, c.expectClose(1008), "%.20q", begun)
	}
	r, err := s.Await(t.Context(), "an end of all connections", func(r harness.Reading) bool { return r.Total.Connections == 0 })
	require.NoError(t, err)
	require.Zero(t, int64(r.Total.HeldBytes), "what they held is given back")
}

// TestStopAnswersWhatHasArrived stops the server while messages lie in its sockets: they are answered before the 1001. The same
// for a handshake that comes too late.
func TestStopAnswersWhatHasArrived(t *testing.T) {
	s, stop := stoppableSocketServer(t, true)
	var all []*connection
	for range 3 {
		c, err := dial(s.Ready.Address)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.upgrade())
		all = append(all, c)
	}
	late, err := dial(s.Ready.Address)
	require.NoError(t, err)
	defer late.Close()
	require.NoError(t, late.hello())

	require.NoError(t, s.Pause())
	for i, c := range all {
		require.NoError(t, c.send(strings.Repeat(textMessage("in time"), 40*(i+1))+textMessage("half of it")[:i]))
	}
	require.NoError(t, late.send(upgradeRequest))
	require.NoError(t, s.Signal(syscall.SIGTERM))
	require.NoError(t, s.Resume())
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for i, c := range all {
		for range 40 * (i + 1) {
			require.NoError(t, c.expectFrame(opText, "in time"))
		}
		require.NoError(t, c.expectCloseAnswered(1001))
	}
	a, err := late.answer()
	require.NoError(t, err)
	if a.Status == 101 { // it was seen before the signal
		require.NoError(t, late.expectCloseAnswered(1001))
	} else {
		require.Equal(t, 503, a.Status)
		require.NoError(t, late.ends())
	}
	require.NoError(t, <-stopped)
}

// TestUpgradeElsewhere: a request that asks for a WebSocket where there is none is answered as if it had not (RFC 9110, 7.8).
func TestUpgradeElsewhere(t *testing.T) {
	s := socketServer(t, true)
	c, err := dial(s.Ready.Address)
	require.NoError(t, err)
	defer c.Close()
	a, err := c.ask("GET / HTTP/1.1\r\nHost: a\r\n" + usualFields + "\r\n")
	require.NoError(t, err)
	require.Equal(t, 200, a.Status)
	require.NoError(t, c.hello())
}
