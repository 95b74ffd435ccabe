package grade

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	behaviour("event-stream", "every subscriber of every loop gets every event, in one order, as it was published", eventStream)
	behaviour("one-place", "the bytes of an event lie in one place for all its subscribers", onePlace)
	behaviour("slow-subscriber", "a subscriber that reads too slowly is dropped, and costs the others nothing", serving(slowSubscriber, unhurried))
	behaviour("resumes", "Last-Event-ID gives what came behind that event", resumes)
	behaviour("kept-alive", "comments keep a quiet stream alive", serving(keptAlive, "-idle-timeout", quietTimeout.String()))
	behaviour("drained", "a stop ends each stream behind its last event, with the last chunk", drained)
	for _, n := range []struct {
		name        string
		subscribers int
	}{{"one subscriber", 1}, {"a thousand subscribers", 1000}} {
		costs := func(of func(eventCosts) float64) specialFigure {
			return specialFigure{"event", func(s *Subject) (float64, error) {
				costs, err := s.eventCosts(n.subscribers)
				return of(costs), err
			}}
		}
		special["writes for "+n.name] = costs(func(c eventCosts) float64 { return c.writes })
		special["bytes copied for "+n.name] = costs(func(c eventCosts) float64 { return c.copied })
		special["timer calls for "+n.name] = costs(func(c eventCosts) float64 { return c.timers })
	}
}

// publication is a POST of an event.
func publication(data string) string {
	return fmt.Sprintf("POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(data), data)
}

// publish publishes events together, and wants an answer to each.
func (c *connection) publish(all ...string) error {
	var requests strings.Builder
	for _, data := range all {
		requests.WriteString(publication(data))
	}
	if err := c.send(requests.String()); err != nil {
		return err
	}
	for range all {
		a, err := c.answer()
		if err != nil {
			return fmt.Errorf("POST /events: %w", err)
		}
		if a.Status != 204 {
			return fmt.Errorf("POST /events: the answer was %d, not 204", a.Status)
		}
	}
	return nil
}

// happening is what a subscriber gets: an event, or a comment.
type happening struct {
	number  uint64
	data    string
	comment bool
}

// subscriber is a client that reads a stream of events.
type subscriber struct {
	*connection
	head *http.Response
	body *bufio.Reader
}

// subscribe asks for the stream over a connection, with more fields and in this version of HTTP.
func (c *connection) subscribe(version string, fields ...string) (*subscriber, error) {
	request := "GET /events HTTP/" + version + "\r\nHost: a\r\n"
	for _, f := range fields {
		request += f + "\r\n"
	}
	if err := c.send(request + "\r\n"); err != nil {
		return nil, err
	}
	c.TCP.SetReadDeadline(time.Now().Add(answerLimit))
	head, err := http.ReadResponse(c.Reader, nil)
	if err != nil {
		return nil, fmt.Errorf("GET /events: %w", plain(err))
	}
	if head.StatusCode != 200 || head.Header.Get("Content-Type") != "text/event-stream" {
		return nil, fmt.Errorf("GET /events: the answer was %s with %q", head.Status, head.Header.Get("Content-Type"))
	}
	if chunked := slices.Contains(head.TransferEncoding, "chunked"); chunked == (version == "1.0") || head.ContentLength >= 0 {
		return nil, fmt.Errorf("GET /events with HTTP/%s: Transfer-Encoding %v and Content-Length %d", version, head.TransferEncoding, head.ContentLength)
	}
	return &subscriber{connection: c, head: head, body: bufio.NewReader(head.Body)}, nil
}

// subscribed is a new client with a stream, see subscribe.
func (s *Server) subscribed(version string, fields ...string) (*subscriber, error) {
	c, err := s.dial()
	if err != nil {
		return nil, err
	}
	return c.subscribe(version, fields...)
}

// next reads the stream up to the end of the next event or comment, by the rules of the HTML Living
// Standard, 9.2.6.
func (s *subscriber) next() (h happening, err error) {
	s.TCP.SetReadDeadline(time.Now().Add(answerLimit))
	var data []string
	numbered := false
	for {
		line, err := s.body.ReadString('\n')
		if err != nil {
			return h, plain(err)
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && data == nil:
			if h.comment {
				return h, nil
			}
		case line == "":
			if h.data = strings.Join(data, "\n"); !numbered {
				return h, fmt.Errorf("an event has no id: %s", clip([]byte(h.data)))
			}
			h.comment = false
			return h, nil
		case name == "":
			h.comment = true
		case name == "data":
			data = append(data, value)
		case name == "id":
			if h.number, err = strconv.ParseUint(value, 10, 64); err != nil {
				return h, fmt.Errorf("an event has the id %q, which is no number", value)
			}
			numbered = true
		default:
			return h, fmt.Errorf("the stream has the line %s", clip([]byte(line)))
		}
	}
}

// event reads the next event, and passes over comments.
func (s *subscriber) event() (happening, error) {
	for {
		if h, err := s.next(); err != nil || !h.comment {
			return h, err
		}
	}
}

// expectEvents reads n events with consecutive numbers, the first of which is given, or any if it
// is 0. data is nil if it may be anything.
func (s *subscriber) expectEvents(first uint64, n int, data []string) error {
	for i := range n {
		h, err := s.event()
		switch {
		case err != nil:
			return fmt.Errorf("event %d of %d: %w", i+1, n, err)
		case first == 0:
			first = h.number
		case h.number != first+uint64(i):
			return fmt.Errorf("event %d of %d has the number %d, not %d", i+1, n, h.number, first+uint64(i))
		}
		if data != nil && h.data != data[i] {
			return fmt.Errorf("event %d of %d has the data %s, not %s", i+1, n, clip([]byte(h.data)), clip([]byte(data[i])))
		}
	}
	return nil
}

// endsWell wants the stream to end with its last chunk, and the connection behind that.
func (s *subscriber) endsWell() error {
	s.TCP.SetReadDeadline(time.Now().Add(answerLimit))
	rest, err := io.ReadAll(s.body)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the stream ends without its last chunk: its client takes it for broken")
	case err != nil:
		return plain(err)
	case len(rest) > 0:
		return fmt.Errorf("instead of the end of the stream came %s", clip(rest))
	}
	return s.ends()
}

// all does the same for each subscriber, at the same time.
func all(subscribers []*subscriber, f func(*subscriber) error) error {
	errs := make([]error, len(subscribers))
	var group sync.WaitGroup
	for i, s := range subscribers {
		group.Go(func() { errs[i] = f(s) })
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("subscriber %d of %d: %w", i+1, len(subscribers), err)
		}
	}
	return nil
}

// eventCosts is what an event costs a loop, the answer to who has published it left out.
type eventCosts struct{ writes, copied, timers float64 }

// eventCosts counts with one worker; of few subscribers writes are seen from outside as well. It
// counts once.
func (s *Subject) eventCosts(subscribers int) (costs eventCosts, err error) {
	s.mutex.Lock()
	costs, ok := s.events[subscribers]
	s.mutex.Unlock()
	if ok {
		return costs, nil
	}
	const events, size = 20, 1000
	random := s.random("events")
	err = s.with(func(server *Server) error {
		return server.eventsTo(subscribers, events, func() string { return letters(random, size) }, func(f func() error) error {
			before, err := server.Settle(s.Context)
			if err != nil {
				return err
			}
			if err := f(); err != nil {
				return err
			}
			after, err := server.Settle(s.Context)
			t := after.Sub(before).Total
			costs = eventCosts{float64(t.Writes)/events - 1, float64(t.BodyBytesCopied) / events, float64(t.TimerfdSettimes) / events}
			return err
		})
	})
	if err == nil && subscribers < 10 && s.Blind() == nil {
		err = s.withWatched(func(server *Server) error {
			return server.eventsTo(subscribers, events, func() string { return letters(random, size) }, func(f func() error) error {
				before := server.record.snapshot()[writes]
				err := f()
				costs.writes = max(costs.writes, float64(server.record.snapshot()[writes]-before)/events-1)
				return err
			})
		})
	}
	if err != nil {
		return costs, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.events == nil {
		s.events = map[int]eventCosts{}
	}
	s.events[subscribers] = costs
	return costs, nil
}

// eventsTo publishes so many events to new subscribers, one after the other, with some before them;
// count is called with what publishes, and returns when every subscriber has had all.
func (s *Server) eventsTo(subscribers, events int, data func() string, count func(func() error) error) error {
	publisher, err := s.dial()
	if err != nil {
		return err
	}
	listening := make([]*subscriber, subscribers)
	for i := range listening {
		if listening[i], err = s.subscribed("1.1"); err != nil {
			return err
		}
	}
	round := func(n int) error {
		for range n {
			text := data()
			if err := publisher.publish(text); err != nil {
				return err
			}
			if err := all(listening, func(s *subscriber) error { return s.expectEvents(0, 1, []string{text}) }); err != nil {
				return err
			}
		}
		return nil
	}
	if err := round(2); err != nil {
		return err
	}
	return count(func() error { return round(events) })
}

// eventData is data of each kind, and what a subscriber makes of it.
var eventData = [][2]string{
	{"hello", "hello"}, {"", ""}, {"two\nlines", "two\nlines"}, {"a\r\nb\rc\n", "a\nb\nc\n"}, {"\n", "\n"}, {"\r\r\n\n", "\n\n\n"},
	{": no comment", ": no comment"}, {"id: 5\ndata: x\n\nevent: y", "id: 5\ndata: x\n\nevent: y"}, {" a blank", " a blank"},
	{"ⅠⅡⅢ é ä ☃", "ⅠⅡⅢ é ä ☃"}, {strings.Repeat("long", 2000), strings.Repeat("long", 2000)},
}

// eventStream has several loops and several clients that publish at the same time.
func eventStream(s *Subject) error {
	return s.with(func(server *Server) error {
		var listening []*subscriber
		for i := range 12 {
			version := "1.1"
			if i%4 == 3 {
				version = "1.0"
			}
			one, err := server.subscribed(version)
			if err != nil {
				return err
			}
			listening = append(listening, one)
		}
		publisher, err := server.dial()
		if err != nil {
			return err
		}
		var published, wanted []string
		for _, data := range eventData {
			published, wanted = append(published, data[0]), append(wanted, data[1])
		}
		if err := publisher.publish(published...); err != nil {
			return err
		}
		if err := all(listening, func(s *subscriber) error { return s.expectEvents(1, len(wanted), wanted) }); err != nil {
			return err
		}
		// One goes, which nobody may notice.
		listening[5].Close()
		listening = slices.Delete(listening, 5, 6)

		const publishers, each = 8, 100
		failed := make([]error, publishers)
		var group sync.WaitGroup
		for i := range publishers {
			group.Go(func() {
				c, err := server.dial()
				for n := 0; n < each && err == nil; n += 4 {
					err = c.publish(fmt.Sprintf("%d %d", i, n), fmt.Sprintf("%d %d", i, n+1), fmt.Sprintf("%d %d", i, n+2), fmt.Sprintf("%d %d", i, n+3))
				}
				failed[i] = err
			})
		}
		read := make(chan error, 1)
		heard := make([][]string, len(listening))
		go func() {
			places := map[*subscriber]int{}
			for i, one := range listening {
				places[one] = i
			}
			read <- all(listening, func(s *subscriber) error {
				var data []string
				for i := range publishers * each {
					h, err := s.event()
					if err != nil {
						return fmt.Errorf("event %d of %d, published by several clients at the same time: %w", i+1, publishers*each, err)
					}
					if want := uint64(len(wanted) + i + 1); h.number != want {
						return fmt.Errorf("several clients publish at the same time, and the number %d stands where %d should", h.number, want)
					}
					data = append(data, h.data)
				}
				heard[places[s]] = data
				return nil
			})
		}()
		group.Wait()
		if err := errors.Join(failed...); err != nil {
			return err
		}
		if err := <-read; err != nil {
			return err
		}
		for i := range heard {
			if !slices.Equal(heard[i], heard[0]) {
				return fmt.Errorf("subscribers 1 and %d have had events in different orders, by the same numbers", i+1)
			}
		}
		return server.eventMethods()
	}, "-workers", "3")
}

// eventMethods asks /events with other methods than those of a subscriber.
func (s *Server) eventMethods() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	a, err := c.ask("PUT /events HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
	if err != nil {
		return err
	}
	if a.Status != 405 || a.Field("Allow") != "GET, HEAD, POST" {
		return fmt.Errorf("PUT /events: the answer was %d with Allow: %s", a.Status, a.Field("Allow"))
	}
	if err := c.send("HEAD /events HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return err
	}
	c.TCP.SetReadDeadline(time.Now().Add(answerLimit))
	head, err := http.ReadResponse(c.Reader, &http.Request{Method: "HEAD"})
	if err != nil {
		return plain(err)
	}
	if head.StatusCode != 200 || head.Header.Get("Content-Type") != "text/event-stream" || !head.Close {
		return fmt.Errorf("HEAD /events: the answer was %s, with %q", head.Status, head.Header.Get("Content-Type"))
	}
	if err := c.ends(); err != nil {
		return fmt.Errorf("after HEAD /events: %w", err)
	}
	return s.helloOver(1)
}

// onePlace sends a large event to several subscribers under watch, and looks at the addresses that
// it is sent from.
func onePlace(s *Subject) error {
	if s.Blind() != nil {
		return nil // said once already
	}
	random := s.random("one place")
	return s.withWatched(func(server *Server) error {
		return server.eventsTo(8, 1, func() string { return letters(random, largePiece+2000) }, func(f func() error) error {
			before := server.record.larges()
			if err := f(); err != nil {
				return err
			}
			// A socket may take a part only: then the rest has an address of its own.
			if n := server.record.larges() - before; n > 2 {
				return fmt.Errorf("an event for 8 subscribers was sent from %d places", n)
			}
			return nil
		})
	})
}

// slowSubscriber publishes far more than a client that does not read has room for.
func slowSubscriber(server *Server) error {
	const size, together, most, tries, heap = 10_000, 50, 8000, 20, 48 << 20
	c, err := dialSlow(server.Ready.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	slow, err := c.subscribe("1.1")
	if err != nil {
		return err
	}
	good, err := server.subscribed("1.1")
	if err != nil {
		return err
	}
	publisher, err := server.dial()
	if err != nil {
		return err
	}
	text := fileText(size)
	published, dropped := 0, false
	for published < most && !dropped {
		if err := publisher.publish(slices.Repeat([]string{text}, together)...); err != nil {
			return err
		}
		if err := good.expectEvents(uint64(published)+1, together, slices.Repeat([]string{text}, together)); err != nil {
			return fmt.Errorf("while another subscriber does not read: %w", err)
		}
		published += together
		r, err := server.read()
		if err != nil {
			return err
		}
		dropped = r.Total.Connections == 2
	}
	if !dropped {
		return fmt.Errorf("it has not read one of %d events of %d bytes, and is still there", published, size)
	}
	r, err := server.read()
	if err != nil {
		return err
	}
	if n := r.Total.WriteAgains; n > tries {
		return fmt.Errorf("its socket was full, and was tried %d times, for %d events: an event tells when there is room", n, published)
	}
	if bytes, err := server.heap(); err != nil {
		return err
	} else if bytes > heap {
		return fmt.Errorf("it was dropped after %d events of %d bytes, and %d bytes of heap are in use", published, size, bytes)
	}
	// What it has had is in order, up to its end.
	for number := uint64(1); ; number++ {
		h, err := slow.event()
		switch {
		case err != nil && !errors.Is(err, errEnded) && !errors.Is(err, errReset):
			return fmt.Errorf("what it still gets: %w", err)
		case err != nil:
			return server.helloOver(1)
		case h.number != number || h.data != text:
			return fmt.Errorf("what it still gets is not in order: number %d where %d should be", h.number, number)
		}
	}
}

// resumes asks for what came behind an event, in all ways; and has a client that goes and comes
// back again and again.
func resumes(s *Subject) error {
	return s.with(func(server *Server) error {
		publisher, err := server.dial()
		if err != nil {
			return err
		}
		var texts []string
		for i := range 10 {
			texts = append(texts, fmt.Sprintf("event %d", i+1))
		}
		if err := publisher.publish(texts...); err != nil {
			return err
		}
		if err := server.delivered(); err != nil {
			return err
		}
		for _, field := range []string{"Last-Event-ID: 4", "last-event-id: 4"} {
			for range 6 { // over several loops
				one, err := server.subscribed("1.1", field)
				if err != nil {
					return err
				}
				if err := one.expectEvents(5, 6, texts[4:]); err != nil {
					return fmt.Errorf("after 10 events, with %s: %w", field, err)
				}
				one.Close()
			}
		}
		last := uint64(10)
		for _, value := range []string{"10", "", "4711", "a", "-1", "99999999999999999999"} {
			one, err := server.subscribed("1.1", "Last-Event-ID: "+value)
			if err != nil {
				return err
			}
			last++
			text := fmt.Sprintf("live %d", last)
			if err := publisher.publish(text); err != nil {
				return err
			}
			if err := one.expectEvents(last, 1, []string{text}); err != nil {
				return fmt.Errorf("after %d events, with Last-Event-ID: %q: the next one is wanted, and %w", last-1, value, err)
			}
			one.Close()
		}

		// One that comes back again and again, while there is always something new: so many events
		// at most.
		const more, ahead = 600, 40
		failed := make(chan error, 1)
		begun := last + 1
		one, err := server.subscribed("1.1", "Last-Event-ID: "+strconv.FormatUint(last, 10))
		if err != nil {
			return err
		}
		had := make(chan struct{}, more+ahead)
		for range ahead {
			had <- struct{}{}
		}
		go func() {
			var err error
			for i := 0; i < more && err == nil; i++ {
				<-had
				err = publisher.publish(fmt.Sprintf("more %d", i))
			}
			failed <- err
		}()
		for number := begun; number < begun+more; number++ {
			h, err := one.event()
			if err != nil {
				return err
			}
			if h.number != number {
				return fmt.Errorf("a client that has had event %d comes back, and gets %d", number-1, h.number)
			}
			had <- struct{}{}
			if (number-begun)%40 == 39 {
				one.Close()
				if one, err = server.subscribed("1.1", fmt.Sprintf("Last-Event-ID: %d", number)); err != nil {
					return err
				}
			}
		}
		if err := <-failed; err != nil {
			return err
		}
		one.Close()
		return server.resumesTooLate(publisher, begun+more-1)
	}, "-workers", "3")
}

// resumesTooLate wants the oldest events that there are, where the one that is asked for is gone.
func (s *Server) resumesTooLate(publisher *connection, last uint64) error {
	const more, least = 700, 50
	for range more / 10 {
		if err := publisher.publish(slices.Repeat([]string{"x"}, 10)...); err != nil {
			return err
		}
	}
	last += more
	if err := s.delivered(); err != nil {
		return err
	}
	one, err := s.subscribed("1.1", "Last-Event-ID: 1")
	if err != nil {
		return err
	}
	h, err := one.event()
	if err != nil {
		return fmt.Errorf("with the number of an event that is long gone: %w", err)
	}
	kept := int(last - h.number + 1)
	if h.number > last || kept < least {
		return fmt.Errorf("of %d events it still has %d, and should have %d or more", last, max(kept, 0), least)
	}
	return one.expectEvents(h.number+1, kept-1, nil)
}

// delivered waits until all loops are at rest: each has all that was published.
func (s *Server) delivered() error {
	last := harness.Reading{}
	alike := 0
	_, ok := s.await(func(r harness.Reading) bool {
		if alike++; r.Total != last.Total {
			alike = 0
		}
		last = r
		return alike >= 4
	})
	if !ok {
		return errors.New("it does not come to rest")
	}
	return nil
}

// quietTimeout is the idle timeout of a server whose streams have nothing to say.
const quietTimeout = 800 * time.Millisecond

func keptAlive(server *Server) error {
	var quiet []*subscriber
	for _, version := range []string{"1.1", "1.0"} {
		one, err := server.subscribed(version)
		if err != nil {
			return err
		}
		quiet = append(quiet, one)
	}
	const comments = 6
	began := time.Now()
	err := all(quiet, func(s *subscriber) error {
		for range comments {
			h, err := s.next()
			if err != nil {
				return fmt.Errorf("with -idle-timeout %v, %v after the beginning of a quiet stream: %w", quietTimeout, time.Since(began).Round(100*time.Millisecond), err)
			}
			if !h.comment {
				return fmt.Errorf("a quiet stream has an event that nobody has published: %s", clip([]byte(h.data)))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if took := time.Since(began); took < comments*quietTimeout/8 {
		return fmt.Errorf("with -idle-timeout %v it says %d times within %v that it is alive", quietTimeout, comments, took.Round(10*time.Millisecond))
	}
	publisher, err := server.dial()
	if err != nil {
		return err
	}
	if err := publisher.publish("at last"); err != nil {
		return err
	}
	return all(quiet, func(s *subscriber) error { return s.expectEvents(1, 1, []string{"at last"}) })
}

// drained stops a server that has streams, with events for them under way.
func drained(s *Subject) error {
	return s.with(func(server *Server) error {
		var listening []*subscriber
		for i := range 8 {
			one, err := server.subscribed([]string{"1.1", "1.0"}[i%2])
			if err != nil {
				return err
			}
			listening = append(listening, one)
		}
		publisher, err := server.dial()
		if err != nil {
			return err
		}
		texts := []string{"one", strings.Repeat("two\n", 3000), "three"}
		if err := publisher.publish(texts...); err != nil {
			return err
		}
		// Half a request keeps the server until all has been looked at.
		half, err := server.dial()
		if err != nil {
			return err
		}
		if err := half.send("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\no"); err != nil {
			return err
		}
		if err := server.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		return all(listening, func(s *subscriber) error {
			if err := s.expectEvents(1, len(texts), texts); err != nil {
				return err
			}
			return s.endsWell()
		})
	}, "-workers", "3", "-grace", "30s")
}
