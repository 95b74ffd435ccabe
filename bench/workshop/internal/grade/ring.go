package grade

import (
	"fmt"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	special["calls to accept and register"] = specialFigure{"connection", connectionCalls}
	special["enters of forty at once"] = specialFigure{"request", entersOfMany}
	behaviour("own-answers", "of forty connections whose requests come at one moment each gets its own answer", serving(ownAnswers))
	behaviour("stopped", "a client that sends on and on and reads nothing is kept waiting, and the others are not", serving(stopped))
	behaviour("really-closed", "a connection that the server ends is over for the client too", serving(reallyClosed, "-idle-timeout", "300ms"))
}

// connectionCalls is how many calls accept a connection and register it, and ask for its first
// request: accept4 and epoll_ctl, and recvfrom, as counted, or as seen from outside if that is
// more.
func connectionCalls(s *Subject) (float64, error) {
	const n = 60
	visit := func(server *Server) error {
		for range n {
			c, err := server.dial()
			if err != nil {
				return err
			}
			if err := c.hello(); err != nil {
				return err
			}
		}
		return nil
	}
	counted, seen := 0.0, 0.0
	err := s.with(func(server *Server) error {
		before, err := server.read()
		if err == nil {
			err = visit(server)
		}
		if err != nil {
			return err
		}
		r, ok := server.await(func(r harness.Reading) bool { return r.Total.Requests >= before.Total.Requests+n })
		if !ok {
			return fmt.Errorf("%d requests were answered, and the counters do not show it", n)
		}
		did := r.Sub(before).Total
		counted = float64(did.Accepts+did.EpollCtls+did.Reads) / n
		return nil
	})
	if err != nil || s.Blind() != nil {
		return counted, err
	}
	err = s.withWatched(func(server *Server) error {
		before := server.record.snapshot()
		if err := visit(server); err != nil {
			return err
		}
		for _, call := range []string{accepts, epollCtl, reads} {
			seen += float64(server.record.snapshot()[call]-before[call]) / n
		}
		return nil
	})
	if isBlind(err) {
		err = nil
	}
	return max(counted, seen), err
}

// many is how many connections have a request at one moment.
const many = 40

// together lets all clients send at one moment: the server stands still meanwhile.
func (s *Server) together(all []*connection, request func(i int) string) error {
	if err := s.Pause(); err != nil {
		return err
	}
	for i, c := range all {
		if err := c.send(request(i)); err != nil {
			return err
		}
	}
	return s.Resume()
}

// entersOfMany is how many calls enter the kernel for requests that are all there when the loop
// looks.
func entersOfMany(s *Subject) (float64, error) {
	enters := 0.0
	err := s.with(func(server *Server) error {
		all, err := server.resting(many)
		if err != nil {
			return err
		}
		answered := func(n uint64) (harness.Reading, error) {
			return server.AwaitRequests(s.Context, n)
		}
		before, err := answered(many)
		if err != nil {
			return err
		}
		if err := server.together(all, func(int) string { return helloRequest }); err != nil {
			return err
		}
		for _, c := range all {
			if err := c.expect(200, greeting); err != nil {
				return err
			}
		}
		after, err := answered(2 * many)
		enters = float64(after.Sub(before).Total.Enters) / many
		return err
	})
	return enters, err
}

// ownAnswers asks for what differs, with answers that are merged, and with bodies that are a part
// of the request.
func ownAnswers(server *Server) error {
	body := func(i int) string { return strings.Repeat(fmt.Sprintf("%02d,", i), 400+i) }
	for _, e := range []struct{ request, answer func(i int) string }{
		{func(i int) string { return fmt.Sprintf("GET /users/%d HTTP/1.1\r\nHost: a\r\n\r\n", i) }, func(i int) string { return fmt.Sprintf(`{"id":"%d"}`, i) }},
		{func(i int) string { return echoRequest("text/plain", body(i)) }, body},
	} {
		all, err := server.resting(many)
		if err != nil {
			return err
		}
		if err := server.together(all, e.request); err != nil {
			return err
		}
		for i, c := range all {
			if err := c.expect(200, e.answer(i)); err != nil {
				return fmt.Errorf("connection %d: %w", i, err)
			}
		}
	}
	return nil
}

// stopped lets some clients send for as long as the server takes it, and read nothing.
func stopped(server *Server) error {
	const most = 24 << 20 // the sockets of both sides hold some megabytes
	requests := strings.Repeat("GET /bytes/65536 HTTP/1.1\r\nHost: a\r\n\r\n", 2000)
	for range 2 {
		c, err := server.dial()
		if err != nil {
			return err
		}
		sent := 0
		for sent < most {
			c.TCP.SetWriteDeadline(time.Now().Add(time.Second))
			n, err := c.TCP.Write([]byte(requests))
			if sent += n; harness.TimedOut(err) {
				break
			}
			if err != nil {
				return plain(err)
			}
		}
		if sent >= most {
			return fmt.Errorf("it took %d MiB of requests from a client that reads no answer", sent>>20)
		}
		other, err := server.dial()
		if err != nil {
			return err
		}
		if err := other.hello(); err != nil {
			return fmt.Errorf("another client, meanwhile: %w", err)
		}
	}
	return nil
}

// reallyClosed ends connections in the ways that a server does: because the client said so, and
// because it has been silent.
func reallyClosed(server *Server) error {
	for _, request := range []string{"GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", helloRequest} {
		c, err := server.dial()
		if err != nil {
			return err
		}
		if err := c.send(request); err != nil {
			return err
		}
		if err := c.expect(200, greeting); err != nil {
			return err
		}
		if err := c.ends(); err != nil {
			return fmt.Errorf("behind %.16q: %w", request, err)
		}
	}
	return nil
}
