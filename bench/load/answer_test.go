package load

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func answer(status, extra, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n%s\r\n%s", status, len(body), extra, body)
}

// readAll feeds a stream in pieces of the given size, as a connection would,
// and returns one line per answer.
func readAll(c *checker, stream string, piece int) (log []string) {
	var r reading
	var held []byte
	for len(stream) > 0 {
		n := min(piece, len(stream))
		data := append(held, stream[:n]...)
		stream = stream[n:]
		for {
			used, o := c.step(&r, data)
			data = data[used:]
			switch o {
			case right:
				log = append(log, "right")
				continue
			case wrong:
				log = append(log, r.wrong)
				continue
			case broken:
				return append(log, "broken: "+r.wrong)
			}
			break
		}
		held = bytes.Clone(data)
	}
	if len(held) > 0 || r.bodyLeft > 0 {
		log = append(log, "unfinished")
	}
	return log
}

func TestCheckerInAnyPieces(t *testing.T) {
	large := string(bytes.Repeat([]byte("0123456789"), 1000))
	for _, body := range []string{"Hello", "", large} {
		good := answer("200 OK", "", body)
		stream := good + good + answer("404 Not Found", "", "nope") + good + answer("200 OK", "", body+"x") + good + answer("200 OK", "Server: other\r\n", body) + good
		want := []string{"right", "right", "status 404", "right", fmt.Sprint("length ", len(body)+1), "right", "right", "right"}
		for _, piece := range []int{1, 2, 7, 64, 1 << 20} {
			c := checker{status: 200, body: []byte(body)}
			require.Equal(t, want, readAll(&c, stream, piece), "body of %d bytes in pieces of %d", len(body), piece)
		}
	}
}

func TestCheckerSeesEveryWrongByte(t *testing.T) {
	good := answer("200 OK", "", "Hello")
	c := checker{status: 200, body: []byte("Hello")}
	require.Equal(t, []string{"right", "body differs", "right"}, readAll(&c, good+answer("200 OK", "", "Hellx")+good, 1<<20))
	c = checker{status: 200, body: []byte("Hello")}
	require.Equal(t, []string{"body differs", "body differs", "right"}, readAll(&c, answer("200 OK", "", "xello")+answer("200 OK", "", "Hxllo")+good, 1<<20))
}

func TestCheckerSamplesLargeBodies(t *testing.T) {
	body := bytes.Repeat([]byte("a"), mergedBody+1)
	bad := bytes.Clone(body)
	bad[mergedBody/2] = 'b'
	c := checker{status: 200, body: body}
	const n = 100 * largeEvery
	log := readAll(&c, string(bytes.Repeat([]byte(answer("200 OK", "", string(bad))), n)), 1<<20)
	caught := 0
	for _, line := range log {
		if line == "body differs" {
			caught++
		}
	}
	require.InDelta(t, n/largeEvery, caught, 60, "six standard deviations")
}

func TestCheckerRefusesWhatIsNoAnswer(t *testing.T) {
	for stream, want := range map[string]string{
		"SSH-2.0-OpenSSH_9.6\r\n":                                                      "broken: not an HTTP/1 answer",
		"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n":                                 "broken: not an HTTP/1 answer",
		"HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n":                                 "broken: not an HTTP/1 answer",
		"HTTP/1.1 200 OK\r\n\r\n":                                                      "broken: no Content-Length",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n":                                "broken: bad Content-Length",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n":            "broken: bad Content-Length",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n":                        "broken: Transfer-Encoding in an answer: this generator wants Content-Length",
		"HTTP/1.1 200 OK\r\nbad line\r\n\r\n":                                          "broken: header line without a colon",
		"HTTP/1.1 200 OK\r\nX: " + string(bytes.Repeat([]byte("x"), maxHead)) + "\r\n": "broken: no end of head within 16384 bytes",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHel":                              "unfinished",
	} {
		c := checker{status: 200, body: []byte("Hello")}
		require.Equal(t, []string{want}, readAll(&c, stream, 1<<20), "%.60q", stream)
	}
}

func TestHeadSaysWhetherTheServerCloses(t *testing.T) {
	for text, want := range map[string]bool{
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":                           false,
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n":      true,
		"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n":                           true,
		"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n": false,
	} {
		h, ok, err := parseHead([]byte(text))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, h.close, text)
	}
}

func TestCheckingAllocatesNothing(t *testing.T) {
	good := []byte(answer("200 OK", "", "Hello"))
	c := checker{status: 200, body: []byte("Hello")}
	var r reading
	_, o := c.step(&r, good)
	require.Equal(t, right, o)
	require.Zero(t, testing.AllocsPerRun(100, func() { c.step(&r, good) }))
}

func BenchmarkCheck(b *testing.B) {
	good := []byte(answer("200 OK", "", "Hello"))
	c := checker{status: 200, body: []byte("Hello")}
	var r reading
	c.step(&r, good)
	for b.Loop() {
		c.step(&r, good)
	}
}
