package differential

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/http1"
	"github.com/qps-ladder/qps-ladder/shared/suite"
)

// maxBody is the servers' limit, the default.
const maxBody = 1 << 20

// answer is one that the judge in this process expects.
type answer struct {
	bodiless bool
	interim  bool // 100 (Continue)
	closes   bool
}

// model is what the judge in this process makes of the bytes of an exchange. Whether the stages agree is not its
// business, but it sees to it that they are not wrong alike in how many answers there are and which one is the last. And since
// `go test -fuzz` sees which code an input runs through in this process, and nothing of the servers, this is what tells it
// which inputs are new.
type model struct {
	answers  []answer
	closed   bool // the last answer closes
	byClient bool // because the client said of its request that it is the last
	behind   bool // and then it sent something nevertheless
	zeros    int  // if not closed: zero bytes that it takes to bring that about
}

func modelOf(sent []byte) (m model) {
	var judge http1.Judge
	var body http1.Body
	for !m.closed {
		judge.Reset(maxBody)
		switch judge.Scan(sent) {
		case http1.Incomplete:
			m.zeros = 1 // a zero byte is wrong anywhere in a head
			return m
		case http1.Faulty:
			m.add(answer{bodiless: http1.IsHead(sent), closes: true})
			return m
		}
		head := judge.Head()
		if head.ExpectContinue {
			m.add(answer{interim: true})
		}
		bodiless := string(head.Method.Of(sent)) == "HEAD"
		sent = sent[head.Length:]
		body.Reset(head, maxBody)
		_, used, verdict := body.Append(nil, sent)
		sent = sent[used:]
		switch verdict {
		case http1.Incomplete:
			m.zeros = zerosToEnd(&body)
			return m
		case http1.Faulty:
			m.add(answer{bodiless: bodiless, closes: true})
		case http1.Complete:
			m.add(answer{bodiless: bodiless, closes: !head.KeepAlive})
			m.byClient, m.behind = m.closed, len(sent) > 0
		}
	}
	return m
}

func (m *model) add(a answer) {
	m.answers = append(m.answers, a)
	m.closed = a.closes
}

var zeros [64 << 10]byte

// zerosToEnd counts the zero bytes that a body under way takes until it is wrong, or whole and followed by one, which is wrong.
func zerosToEnd(body *http1.Body) int {
	for n := 0; ; n += len(zeros) {
		if _, used, verdict := body.Append(nil, zeros[:]); verdict != http1.Incomplete {
			return n + used + 1
		}
	}
}

// check holds what came back to the model of all bytes sent.
func (m *model) check(received []byte) error {
	// The content type of an echo may have bytes that CheckAnswer does not expect.
	plain := slices.Clone(received)
	for i, c := range plain {
		if c == '\t' || c >= 0x80 {
			plain[i] = 'x'
		}
	}
	r := bufio.NewReader(bytes.NewReader(plain))
	for i, want := range m.answers {
		response, err := harness.ReadResponse(r, want.bodiless)
		if err == nil {
			_, err = suite.CheckAnswer(response)
		}
		if err != nil {
			return fmt.Errorf("answer %d of %d: %w", i+1, len(m.answers), err)
		}
		if got := (answer{want.bodiless, response.Status < 200, response.Closes()}); got != want {
			return fmt.Errorf("answer %d of %d is %+v, want %+v", i+1, len(m.answers), got, want)
		}
	}
	if rest, _ := io.ReadAll(r); len(rest) > 0 {
		return fmt.Errorf("an answer too many: %.200q", rest)
	}
	return nil
}
