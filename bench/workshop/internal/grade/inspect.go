package grade

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/witness"
)

// Inspect starts the server once, under watch where that is possible, and says what it does that no
// server here may do: start other processes, listen elsewhere, fail at plain requests, or not stop. It
// comes before everything else.
func (s *Subject) Inspect() error {
	server, err := s.serveWatched("-workers", "2")
	if isBlind(err) {
		s.mutex.Lock()
		s.blind = err
		s.mutex.Unlock()
		server, err = s.serve("-workers", "2")
	}
	return lend(server, err, inspect)
}

func inspect(server *Server) error {
	if err := server.behaves(); err != nil {
		return err
	}
	for range 3 {
		c, err := server.dial()
		if err != nil {
			return err
		}
		for _, e := range []struct{ request, body string }{
			{helloRequest, greeting},
			{"GET /users/42 HTTP/1.1\r\nHost: a\r\n\r\n", `{"id":"42"}`},
			{echoRequest("text/plain", "so it is"), "so it is"},
		} {
			err := c.send(e.request)
			if err == nil {
				err = c.expect(200, e.body)
			}
			if err != nil {
				line, _, _ := strings.Cut(e.request, " HTTP")
				return fmt.Errorf("%s: %w", line, err)
			}
		}
	}
	return server.behaves()
}

// behaves says what a server does beside serving.
func (s *Server) behaves() error {
	if s.traced != nil {
		if strange := s.traced.Strange(); len(strange) > 0 {
			return errors.New(strange[0])
		}
	}
	ports, err := listening(s.PID())
	if errors.Is(err, witness.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, address := range []string{s.Ready.Address, s.Ready.Admin} {
		_, port, _ := net.SplitHostPort(address)
		ports = slices.DeleteFunc(ports, func(p string) bool { return p == port })
	}
	if len(ports) > 0 {
		return fmt.Errorf("it listens on port %s too, where nobody asked it to", ports[0])
	}
	return nil
}
