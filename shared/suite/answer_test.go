package suite

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

const goodAnswer = "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\nConnection: close\r\nContent-Length: 23\r\n" +
	"Content-Type: text/plain; charset=utf-8\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\nServer: qps-ladder\r\n\r\n405 Method Not Allowed\n"

func readOne(text string, bodiless bool) (*Answer, error) {
	return readFrom(bufio.NewReader(strings.NewReader(text)), bodiless)
}

func readFrom(reader *bufio.Reader, bodiless bool) (*Answer, error) {
	r, err := harness.ReadResponse(reader, bodiless)
	if err != nil {
		return nil, err
	}
	return CheckAnswer(r)
}

func TestAnswer(t *testing.T) {
	reader := bufio.NewReader(strings.NewReader("HTTP/1.1 100 Continue\r\n\r\n" + goodAnswer + "rest"))
	answer, err := readFrom(reader, false)
	require.NoError(t, err)
	require.Equal(t, 100, answer.Status)
	answer, err = readFrom(reader, false)
	require.NoError(t, err)
	require.Equal(t, "405 Method Not Allowed\n", string(answer.Body))
	rest, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, "rest", string(rest))

	e := Refusal(405)
	e.Allow = "GET, HEAD"
	require.NoError(t, e.Check(answer))
	sent := time.Date(1994, 11, 15, 8, 12, 31, 999e6, time.UTC)
	require.NoError(t, answer.CheckDate(sent, sent, 0))
	require.Error(t, answer.CheckDate(sent.Add(time.Second), sent.Add(time.Second), 0))
	require.NoError(t, answer.CheckDate(sent.Add(time.Second), sent.Add(time.Second), time.Second))
	require.Error(t, answer.CheckDate(sent.Add(-2*time.Second), sent.Add(-time.Second), 0))

	for _, wrong := range []func(*Expected){
		func(e *Expected) { e.Status = 404 },
		func(e *Expected) { e.Connection = "" },
		func(e *Expected) { e.Type = "text/html" },
		func(e *Expected) { e.Allow = "GET" },
		func(e *Expected) { e.Body = "405 Method not allowed\n" },
		func(e *Expected) { e.Body = "405" },
		func(e *Expected) { e.Length = 22 },
	} {
		bad := e
		wrong(&bad)
		require.Error(t, bad.Check(answer))
	}
}

func TestAnswerToHead(t *testing.T) {
	head, _, _ := strings.Cut(goodAnswer, "\r\n\r\n")
	answer, err := readOne(head+"\r\n\r\n", true)
	require.NoError(t, err)
	require.EqualValues(t, 23, answer.Length)
	e := Refusal(405)
	e.Allow, e.Bodiless = "GET, HEAD", true
	require.NoError(t, e.Check(answer))
}

func TestAnswerWithoutContent(t *testing.T) {
	answer, err := readOne("HTTP/1.1 204 No Content\r\nAllow: GET\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\nServer: qps-ladder\r\n\r\n", false)
	require.NoError(t, err)
	require.NoError(t, Expected{Status: 204, Allow: "GET"}.Check(answer))
	_, err = readOne("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nDate: Tue, 15 Nov 1994 08:12:31 GMT\r\nServer: qps-ladder\r\n\r\n", false)
	require.ErrorContains(t, err, "Content-Length")
}

// Whatever differs from the contract in a single thing is refused.
func TestAnswerIsStrict(t *testing.T) {
	_, err := readOne(goodAnswer, false)
	require.NoError(t, err)
	for change, message := range map[string]string{
		"HTTP/1.1 405=HTTP/1.0 405":                                 "status line",
		"405 Method Not Allowed\r\n=405 Not Allowed\r\n":            "status line",
		"Allowed\r\n=Allowed\n":                                     "bare LF",
		"Allow: GET, HEAD\r\nConnection=Connection: close\r\nAllow": "order",
		"Allow: GET, HEAD=Allow:GET, HEAD":                          "malformed",
		"Allow: GET, HEAD=Allow: GET, HEAD ":                        "malformed",
		"Allow: GET, HEAD=Allow:  GET, HEAD":                        "malformed",
		"Allow: GET, HEAD=Allow: ":                                  "malformed",
		"Allow: GET, HEAD=allow: GET, HEAD":                         "unknown or misspelled",
		"Allow: GET, HEAD=Age: 3":                                   "unknown or misspelled",
		"Connection: close=Connection: close\r\nConnection: close":  "order",
		"Connection: close=Connection: clo\x01se":                   "control byte",
		"Connection: close=Connection: clo\rse":                     "control byte",
		"Content-Length: 23=Content-Length: 023":                    "Content-Length",
		"Content-Length: 23=Content-Length: -1":                     "Content-Length",
		"Content-Length: 23\r\n=":                                   "Content-Length",
		"Content-Length: 23=Content-Length: 24":                     "unexpected EOF",
		"Content-Length: 23=Content-Length: 99999999999":            "Content-Length",
		"Tue, 15=Wed, 15":                                           "Date",
		"08:12:31=8:12:31":                                          "Date",
		"GMT=UTC":                                                   "Date",
		"Date: Tue, 15 Nov 1994 08:12:31 GMT\r\n=":                  "Date",
		"Server: qps-ladder=Server: nginx":                          "Server",
		"Server: qps-ladder\r\n=":                                   "Server",
		"\r\n\r\n405 Method Not Allowed\n=\r\n":                     "unexpected EOF",
	} {
		old, new, _ := strings.Cut(change, "=")
		text := strings.Replace(goodAnswer, old, new, 1)
		require.NotEqual(t, goodAnswer, text, change)
		_, err := readOne(text, false)
		require.ErrorContains(t, err, message, text)
	}
	_, err = readOne("HTTP/1.1 100 Continue\r\nDate: x\r\n\r\n", false)
	require.ErrorContains(t, err, "interim")
	_, err = readOne("", false)
	require.ErrorIs(t, err, io.EOF)
	_, err = readOne("HTTP/1.1 2", false)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = readOne(strings.Repeat("a", 100_000), false)
	require.ErrorContains(t, err, "no end")
}
