package grade

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	behaviour("slow-reader", "a client that reads late gets every byte, and the right ones", slowReader)
	behaviour("patient", "a client that does not read costs nothing, and nobody waits for it", serving(patient))
	behaviour("by-reference", "a large body is sent from where it lies, not from a copy", watching(byReference, "-workers", "3"))
	behaviour("many-at-once", "a thousand requests sent at once are answered", talking(manyAtOnce))
}

// slowReader sends many requests and begins to read when the server has found the socket full: once with
// answers of all kinds, once with uploads that are echoed, to a server that overwrites each request's bytes as soon as
// nobody may look at them any longer.
func slowReader(s *Subject) error {
	var all strings.Builder
	var bodies []string
	err := s.with(func(server *Server) error {
		pattern, err := server.pattern(1 << 20)
		if err != nil {
			return err
		}
		for i := range 12 {
			body := strings.Repeat(fmt.Sprintf("%02d,", i), 2000+i)
			all.WriteString(echoRequest("text/plain", body))
			id := strings.Repeat(string(rune('a'+i)), 900)
			fmt.Fprintf(&all, "GET /users/%s HTTP/1.1\r\nHost: a\r\n\r\n", id)
			size := 800_000 + i*1000
			fmt.Fprintf(&all, "GET /bytes/%d HTTP/1.1\r\nHost: a\r\n\r\n", size)
			bodies = append(bodies, body, `{"id":"`+id+`"}`, pattern[:size])
		}
		return server.readLate(all.String(), bodies)
	})
	if err != nil {
		return err
	}

	all.Reset()
	bodies = bodies[:0]
	for i := range 600 {
		body := strings.Repeat(fmt.Sprintf("%03d,", i), 2000)
		if i%3 == 0 {
			body = strings.Repeat(body, 8)
		}
		all.WriteString(echoRequest("text/plain", body))
		bodies = append(bodies, body)
	}
	return s.with(func(server *Server) error {
		if err := server.readLate(all.String(), bodies); err != nil {
			return fmt.Errorf("uploads that are sent back, with -poison: %w", err)
		}
		return nil
	}, "-poison")
}

func (s *Server) readLate(requests string, bodies []string) error {
	c, err := dialSlow(s.Ready.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	sent := make(chan error, 1)
	go func() { sent <- c.send(requests) }()
	if err := s.full(); err != nil {
		return err
	}
	for i, body := range bodies {
		if err := c.expect(200, body); err != nil {
			return fmt.Errorf("answer %d of %d: %w", i+1, len(bodies), err)
		}
	}
	if err := <-sent; err != nil {
		return err
	}
	if err := c.hello(); err != nil {
		return fmt.Errorf("afterwards: %w", err)
	}
	return nil
}

// pattern is the beginning of the body of /bytes/.
func (s *Server) pattern(size int) (string, error) {
	c, err := dial(s.Ready.Address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	a, err := c.ask(fmt.Sprintf("GET /bytes/%d HTTP/1.1\r\nHost: a\r\n\r\n", size))
	if err != nil {
		return "", err
	}
	if len(a.Body) != size {
		return "", fmt.Errorf("GET /bytes/%d gave %d bytes", size, len(a.Body))
	}
	return string(a.Body), nil
}

// full waits until what the server has written does not grow any more: the socket is full.
func (s *Server) full() error {
	var last uint64
	for range 200 {
		r, err := s.read()
		if err != nil {
			return err
		}
		if now := r.Total.WrittenBytes; now == last && now > 0 {
			return nil
		} else {
			last = now
		}
		time.Sleep(30 * time.Millisecond)
	}
	return errors.New("it goes on writing to a client that does not read")
}

// patient lets one client stall, and looks what that costs.
func patient(server *Server) error {
	return server.patientWith("GET /bytes/16777216 HTTP/1.1\r\nHost: a\r\n\r\n", 16<<20)
}

// patientWith lets the client of a large answer stall.
func (s *Server) patientWith(request string, size int) error {
	stalled, err := dialSlow(s.Ready.Address)
	if err != nil {
		return err
	}
	defer stalled.Close()
	if err := stalled.send(request); err != nil {
		return err
	}
	if _, ok := s.await(func(r harness.Reading) bool { return r.Total.WrittenBytes > 0 }); !ok {
		return fmt.Errorf("an answer of %d MiB does not begin", size>>20)
	}
	if err := s.full(); err != nil {
		return fmt.Errorf("while a client does not read: %w", err)
	}
	before, err := s.read()
	if err != nil {
		return err
	}
	for range 20 {
		c, err := dial(s.Ready.Address)
		if err != nil {
			return err
		}
		err = c.hello()
		c.Close()
		if err != nil {
			return fmt.Errorf("another client, while one does not read: %w", err)
		}
	}
	time.Sleep(200 * time.Millisecond)
	after, err := s.read()
	if err != nil {
		return err
	}
	// Twenty answers for the others; the kernel may find a little room for the stalled one now and then.
	if n := after.Total.Writes - before.Total.Writes; n > 60 {
		return fmt.Errorf("%d writes while one client does not read and 20 answers are sent to others", n)
	}
	if n := after.Total.EpollWaits - before.Total.EpollWaits; n > 1000 {
		return fmt.Errorf("the loop turned %d times while one client does not read: it is woken in vain", n)
	}
	a, err := stalled.answer()
	if err != nil {
		return fmt.Errorf("the client that begins to read at last: %w", err)
	}
	if len(a.Body) != size {
		return fmt.Errorf("the client that begins to read at last got %d bytes of %d", len(a.Body), size)
	}
	return nil
}

// referenceSize is a body that is sent whole in one piece: it fits any socket's buffer.
const referenceSize = 20_011

// byReference watches from where large bodies are sent. They all begin with the same bytes of the app's, so
// that there is one such place for all loops; a copy lies in each loop's own memory.
func byReference(server *Server) error {
	pattern := ""
	for i := range 24 {
		c, err := server.dial()
		if err != nil {
			return err
		}
		for range 2 {
			a, err := c.ask(fmt.Sprintf("GET /bytes/%d HTTP/1.1\r\nHost: a\r\n\r\n", referenceSize))
			if err != nil {
				return err
			}
			if i == 0 {
				pattern = string(a.Body)
			} else if string(a.Body) != pattern {
				return errors.New("the bodies of two answers to the same request differ")
			}
		}
	}
	switch places := server.record.places(referenceSize); places {
	case 1:
	case 0:
		return errors.New("it is not sent as a piece of its own: it was copied behind its head")
	default:
		return fmt.Errorf("48 answers with the same body were sent from %d places: those are copies", places)
	}
	return nil
}

func manyAtOnce(c *connection) error {
	sent := make(chan error, 1)
	const n = 1000
	go func() { sent <- c.send(strings.Repeat("GET /bytes/999 HTTP/1.1\r\nHost: a\r\n\r\n", n)) }()
	body := ""
	for i := range n {
		if i == 0 {
			a, err := c.answer()
			if err != nil {
				return err
			}
			body = string(a.Body)
		} else if err := c.expect(200, body); err != nil {
			return fmt.Errorf("answer %d of %d: %w", i+1, n, err)
		}
	}
	return <-sent
}
