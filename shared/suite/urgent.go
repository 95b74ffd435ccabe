package suite

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// sendWithUrgent sends text, with the bytes at these places urgent.
func (c *client) sendWithUrgent(text string, places []int) error {
	from := 0
	for _, place := range places {
		if err := c.Send(text[from:place]); err != nil {
			return err
		}
		if err := c.SendUrgent(text[place]); err != nil {
			return err
		}
		from = place + 1
	}
	return c.Send(text[from:])
}

// An urgent byte is a byte of the stream like any other (RFC 6093, 6), wherever it is and however many there are, and what
// lies behind it is not left unread.
func urgentBytes(t T, p Program) {
	s := p.Start(t, "-head-timeout", "1h", "-body-timeout", "1h", "-linger-timeout", "1h")
	before := levelAtRest(t, s)
	body := strings.Repeat("0123456789", 4)
	upload := fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	long := strings.Repeat("b", 20_000)
	whole := []step{
		{helloRequest + upload, []Expected{Hello(), echoed(body)}},
		{"\r\n" + lastHello, []Expected{closing(Hello())}},
		{"GET /% HTTP/1.1\r\nHost: a\r\n\r\n", []Expected{Refusal(400)}},
		{fmt.Sprintf("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(long), long) + helloRequest,
			[]Expected{echoed(long), Hello()}},
	}
	var exchanges []*urgentExchange
	add := func(w step, shut bool, places ...int) {
		exchanges = append(exchanges, &urgentExchange{step: w, places: places, shut: shut})
	}
	random := rand.New(rand.NewPCG(drawSeed(t), 0))
	for _, w := range whole {
		for place := 0; place < len(w.send); place += 1 + place/200*997 {
			add(w, place%3 == 0, place)
		}
		last := len(w.send) - 1
		add(w, false, last)
		add(w, true, last)
		add(w, false, 0, 1, 2, last/2, last/2+1, last)
		add(w, true, 3, last-1)
	}

	// As the bytes arrive, and then all of them at once, so that they lie in the socket when the server reads.
	for _, together := range []bool{false, true} {
		if together {
			s.Pause(t)
			t.Cleanup(func() { s.Server.Resume() })
		}
		// In the short form, half of them each time, by the seed.
		random.Shuffle(len(exchanges), func(i, j int) { exchanges[i], exchanges[j] = exchanges[j], exchanges[i] })
		exchanges := exchanges[:thorough(len(exchanges), (len(exchanges)+1)/2)]
		for _, e := range exchanges {
			c, err := connect(s.Ready.Address)
			require.NoError(t, err)
			t.Cleanup(func() { c.Close() })
			e.client = c
			require.NoError(t, e.begin(), "%s", e)
		}
		if together {
			s.Resume(t)
		}
		for _, e := range exchanges {
			require.NoError(t, e.finish(), "%s, all at once: %t", e, together)
			e.client.Close()
		}
	}
	nothingLeft(t, s, before)
}

// An urgent byte behind a client's last request is something that it still sends. A read stops before it, and so does not tell of it;
// a close then would reset the connection, perhaps before the client has its answer.
func urgentBehindLast(t T, p Program) {
	s := p.Start(t, "-linger-timeout", "1h")
	for _, used := range []bool{false, true} {
		before := s.Counters(t).Total.Shutdowns
		c := dial(t, s)
		if used {
			c.hello(t)
		}
		s.Pause(t) // it finds both
		c.send(t, lastHello)
		require.NoError(t, c.SendUrgent('x'))
		s.Resume(t)
		c.expect(t, closing(Hello()))
		c.expectEnd(t)
		s.Await(t, "the server to say that no more will come", func(r harness.Reading) bool { return r.Total.Shutdowns == before+1 })
		c.Close()
		s.AwaitConnections(t, 0)
	}
}

// urgentExchange is an exchange with some bytes urgent.
type urgentExchange struct {
	step
	places []int
	shut   bool // and then the end of input
	client *client
}

func (e *urgentExchange) String() string {
	return fmt.Sprintf("%.80q (%d bytes), urgent %v, end of input %t", e.send, len(e.send), e.places, e.shut)
}

func (e *urgentExchange) begin() error {
	if err := e.client.sendWithUrgent(e.send, e.places); err != nil || !e.shut {
		return err
	}
	return e.client.CloseWrite()
}

// finish reads the answers, and looks whether the connection is as it should be.
func (e *urgentExchange) finish() error {
	for i, want := range e.answers {
		if err := e.client.read(want); err != nil {
			return fmt.Errorf("answer %d: %w", i, err)
		}
	}
	if e.shut || e.answers[len(e.answers)-1].Connection == "close" {
		return e.client.ReadEnd()
	}
	return e.client.tryHello()
}
