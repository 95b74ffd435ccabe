package grade

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func init() {
	behaviour("half-close", "a client that ends its side right behind its request is answered, then closed", serving(halfClose))
	behaviour("halves", "requests that arrive in halves do not mix with those of others", serving(halves))
	behaviour("heap-at-rest", "a connection at rest holds no buffer: not in the heap either", heapAtRest)
	special["held bytes"] = specialFigure{"idle connection", heldBytes}
}

// halfClose sends a request and the end of input together, and in other ways, many times: which of them the
// server sees as one event is chance.
func halfClose(server *Server) error {
	for i := range 40 {
		c, err := server.dial()
		if err != nil {
			return err
		}
		if i%2 == 1 {
			if err := c.hello(); err != nil {
				return err
			}
		}
		// While the server stands still, both arrive, and are one event.
		still := i%4 >= 2
		if still {
			if err := server.Pause(); err != nil {
				return err
			}
		}
		err = c.send(helloRequest)
		if err == nil {
			err = c.CloseWrite()
		}
		if still {
			if again := server.Resume(); err == nil {
				err = again
			}
		}
		if err != nil {
			return plain(err)
		}
		if err := c.expect(200, greeting); err != nil {
			return err
		}
		if err := c.ends(); err != nil {
			return fmt.Errorf("after its answer: %w", err)
		}
	}
	if r, ok := server.await(func(r harness.Reading) bool { return r.Total.Connections == 0 }); !ok {
		return fmt.Errorf("%d connections are still open when all clients have gone", r.Total.Connections)
	}
	return nil
}

// halves has half of a request lie on several connections at a time, while others send whole ones.
func halves(server *Server) error {
	var all [8]*connection
	var rest [len(all)]string
	for i := range all {
		var err error
		if all[i], err = server.dial(); err != nil {
			return err
		}
	}
	seen := uint64(0)
	for round := range 3 {
		for i, c := range all {
			text := echoRequest("text/plain", fmt.Sprintf("round %d, connection %d", round, i))
			cut := 5 + (i*17+round*29)%(len(text)-10)
			if err := c.send(text[:cut]); err != nil {
				return err
			}
			rest[i] = text[cut:]
			seen += uint64(cut)
		}
		// Each half has been read before anybody sends more.
		if _, ok := server.await(func(r harness.Reading) bool { return r.Total.ReadBytes >= seen }); !ok {
			return errors.New("the first halves of some requests are not read")
		}
		other, err := dial(server.Ready.Address)
		if err != nil {
			return err
		}
		for range 20 {
			if err := other.hello(); err != nil {
				return err
			}
		}
		other.Close()
		seen += 20 * uint64(len(helloRequest))
		for i := len(all) - 1; i >= 0; i-- {
			if err := all[i].send(rest[i]); err != nil {
				return err
			}
			seen += uint64(len(rest[i]))
			if err := all[i].expect(200, fmt.Sprintf("round %d, connection %d", round, i)); err != nil {
				return fmt.Errorf("a request sent in two halves, with others between: %w", err)
			}
		}
	}
	return nil
}

// resting opens connections that have each had an answer and are idle now. They stay as those of dial do.
func (s *Server) resting(n int) (all []*connection, err error) {
	return s.restingAfter(n, (*connection).hello)
}

// restingAfter is resting for connections that each have had another use.
func (s *Server) restingAfter(n int, use func(*connection) error) (all []*connection, err error) {
	for range n {
		c, err := s.dial()
		if err != nil {
			return all, err
		}
		all = append(all, c)
		if err := use(c); err != nil {
			return all, err
		}
	}
	s.await(func(r harness.Reading) bool { return r.Total.Connections >= uint64(n) })
	return all, nil
}

func closeAll(all []*connection) {
	for _, c := range all {
		c.Close()
	}
}

// used opens connections that have been used in all kinds of ways, and are idle now: some have not been used yet.
func (s *Server) used(n int, random *rand.Rand) error {
	for range n {
		c, err := s.dial()
		if err != nil {
			return err
		}
		body := ""
		switch random.IntN(5) {
		case 0:
			continue
		case 1:
			err = c.send(helloRequest)
			body = greeting
		case 2:
			err = c.send(headOf("GET / HTTP/1.1\r\nHost: a\r\n", 300+random.IntN(1000)))
			body = greeting
		case 3:
			body = letters(random, 1+random.IntN(5000))
		default:
			body = letters(random, 20_000+random.IntN(20_000))
		}
		if body != greeting {
			err = c.send(echoRequest("text/plain", body))
		}
		if err != nil {
			return err
		}
		if err := c.expect(200, body); err != nil {
			return err
		}
	}
	if _, ok := s.await(func(r harness.Reading) bool { return r.Total.Connections >= uint64(n) }); !ok {
		return fmt.Errorf("%d connections are not open at once", n)
	}
	return nil
}

// heldBytes is what the server says that it holds for a connection at rest.
func heldBytes(s *Subject) (each float64, err error) {
	const n = 200
	err = s.with(func(server *Server) error {
		if err := server.used(n, s.random("held bytes")); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
		r, err := server.read()
		each = float64(r.Total.HeldBytes) / n
		return err
	})
	return each, err
}

const (
	// heapPerConnection is above what a connection's own state takes, and below what would do for most requests.
	heapPerConnection = 1024
	// mostStatic is by how much more memory a program may begin with than the stage that it is based on.
	mostStatic = 64 << 10
)

// heapAtRest weighs the heap after a collection, with and without idle connections, and looks where else a buffer
// could be: in a variable of the program, or on the stack of a goroutine.
func heapAtRest(s *Subject) error {
	const n = 400
	base, err := s.BuildBase()
	if err != nil {
		return err
	}
	if more := int64(staticBytes(s.Binary)) - int64(staticBytes(base)); more > mostStatic {
		return fmt.Errorf("its variables take %d KiB from the start, more than those of the stage it is based on", more>>10)
	}
	return s.with(func(server *Server) error {
		before, err := server.heap()
		if err != nil {
			return err
		}
		idle, err := server.read()
		if err != nil {
			return err
		}
		if err := server.used(n, s.random("heap at rest")); err != nil {
			return err
		}
		after, err := server.heap()
		if err != nil {
			return err
		}
		if each := (after - before) / n; each > heapPerConnection {
			return fmt.Errorf("%d idle connections take %d bytes of heap each", n, each)
		}
		r, err := server.read()
		if more := r.Process.Goroutines - idle.Process.Goroutines; more > n/10 {
			return fmt.Errorf("%d idle connections have %d goroutines, and each of these a stack", n, more)
		}
		return err
	})
}

// staticBytes is the memory that a program's variables take, in its file or not; 0 if that cannot be read.
func staticBytes(binary string) (size uint64) {
	file, err := elf.Open(binary)
	if err != nil {
		return 0
	}
	defer file.Close()
	for _, section := range file.Sections {
		if section.Flags&elf.SHF_WRITE != 0 {
			size += section.Size
		}
	}
	return size
}

// heap is how much is in use after a garbage collection.
func (s *Server) heap() (int64, error) {
	for range 2 { // what a finalizer or a pool keeps goes with the second
		if err := s.Collect(context.Background()); err != nil {
			return 0, err
		}
	}
	r, err := s.read()
	return r.Process.HeapBytes, err
}
