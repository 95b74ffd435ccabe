package load

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// echoing is a rigged server that opens a WebSocket with one answer, and answers each message of w in two pieces.
func echoing(w workload.Workload, opening string, answer func(n int) []byte) func(net.Conn, func() bool) {
	return func(c net.Conn, next func() bool) {
		if !next() {
			return
		}
		_, err := io.WriteString(c, opening)
		message := make([]byte, len(w.Request))
		for n := 0; err == nil; n++ {
			if _, err = io.ReadFull(c, message); err != nil || string(message) != string(w.Request) {
				return
			}
			b := answer(n)
			if _, err = c.Write(b[:1]); err == nil {
				_, err = c.Write(b[1:])
			}
		}
	}
}

const opening = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

func TestMessagesOverWebSockets(t *testing.T) {
	for _, name := range []string{"ws125", "ws16k"} {
		w, err := workload.ByName(name)
		require.NoError(t, err)
		w.Connections = 4
		use := func(o *Options) { o.Workload = w }

		r := rig(t, echoing(w, opening, func(int) []byte { return w.Body }))
		result, err := Run(t.Context(), options(r, use))
		require.NoError(t, err)
		require.NotZero(t, result.Requests)
		require.Zero(t, result.Failures(), "%v %v", result.Errors, result.ConnectErrors)
		require.Equal(t, 4, result.Established)
		require.Equal(t, 4, result.Answered)
		require.GreaterOrEqual(t, result.BytesRead, result.Requests*uint64(len(w.Body)))

		r = rig(t, say("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))
		_, err = Run(t.Context(), options(r, use))
		require.ErrorContains(t, err, "no WebSocket: status 404")
	}
}

func TestWrongMessagesAreErrors(t *testing.T) {
	w, err := workload.ByName("ws125")
	require.NoError(t, err)
	w.Connections = 1
	use := func(o *Options) { o.Workload = w }
	wrong := []byte(strings.Replace(string(w.Body), "abc", "abd", 1))
	r := rig(t, echoing(w, opening, func(n int) []byte {
		if n == 10 {
			return wrong
		}
		return w.Body
	}))
	result, err := Run(t.Context(), options(r, use))
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"body differs": 1}, result.Errors)

	r = rig(t, echoing(w, opening, func(int) []byte { return append([]byte(nil), string(w.Body)+string(w.Body)...) }))
	result, err = Run(t.Context(), options(r, use))
	require.NoError(t, err)
	require.NotZero(t, result.Errors["answer to no request"])
}
