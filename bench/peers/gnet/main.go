// The command gnet is a server on github.com/panjf2000/gnet, with
// github.com/evanphx/wildcat as its parser: the library has none of its own.
package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/evanphx/wildcat"
	"github.com/panjf2000/gnet/v2"

	"github.com/qps-ladder/qps-ladder/bench/peers/internal/peer"
)

type server struct {
	gnet.BuiltinEventEngine
	o     peer.Options
	ready sync.Once
}

func (s *server) OnBoot(engine gnet.Engine) gnet.Action {
	go func() {
		peer.Wait()
		engine.Stop(context.Background())
	}()
	return gnet.None
}

// OnTick runs when all loops have their listeners: connections that came before
// would all be the first loop's.
func (s *server) OnTick() (time.Duration, gnet.Action) {
	s.ready.Do(func() { peer.Ready("gnet", s.o.Addr, s.o.Workers) })
	return time.Hour, gnet.None
}

// quiet keeps the library from writing to standard output, which is for the ready line.
type quiet struct{}

func (quiet) Debugf(string, ...any)               {}
func (quiet) Infof(string, ...any)                {}
func (quiet) Warnf(string, ...any)                {}
func (quiet) Errorf(format string, values ...any) { fmt.Fprintf(os.Stderr, format+"\n", values...) }
func (quiet) Fatalf(format string, values ...any) { peer.Check(fmt.Errorf(format, values...)) }

// state is what a connection keeps.
type state struct {
	parser  *wildcat.HTTPParser
	headers int // of the last request
	out     []byte
	scratch [256]byte
}

const (
	slots   = 65       // headers a request may have, and the one that wildcat wants beyond
	maxHead = 8192     // as at the stages
	merged  = 16 << 10 // a body up to this size is copied behind its head
)

func (s *server) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	c.SetContext(&state{parser: wildcat.NewSizedHTTPParser(slots)})
	return nil, gnet.None
}

var (
	endOfHead = []byte("\r\n\r\n")
	newLine   = []byte("\n")
	closing   = []byte("close")
	field     = []byte("Connection")
)

func (s *server) OnTraffic(c gnet.Conn) gnet.Action {
	st := c.Context().(*state)
	in, err := c.Peek(-1)
	if err != nil {
		return gnet.Close
	}
	st.out = st.out[:0]
	used, action := 0, gnet.None
	for action == gnet.None && used < len(in) {
		rest := in[used:]
		// Parsing a head that is not all there yet would begin anew each time.
		if !bytes.Contains(rest, endOfHead) {
			if len(rest) > maxHead {
				action = gnet.Close
			}
			break
		}
		// Assigning the whole struct forgets the length and host of the request before.
		headers := st.parser.Headers
		*st.parser = wildcat.HTTPParser{Headers: headers, TotalHeaders: slots}
		head, err := st.parser.Parse(rest)
		if err != nil {
			action = gnet.Close
			break
		}
		// What a longer request before left in the array must not be found.
		count := bytes.Count(rest[:head], newLine) - 2
		if count < st.headers {
			clear(headers[count:st.headers])
		}
		st.headers = count
		var body []byte
		total := head
		if string(st.parser.Method) == "POST" { // a GET has none here
			if n := st.parser.ContentLength(); n > 0 {
				total += int(n)
			}
		}
		if len(rest) < total {
			break
		}
		body = rest[head:total]
		used += total
		code, contentType, answer := peer.Serve(st.parser.Method, st.parser.Path, body, st.scratch[:])
		for i := range count {
			if h := &headers[i]; len(h.Name) == len(field) && bytes.EqualFold(h.Name, field) && bytes.EqualFold(h.Value, closing) {
				action = gnet.Close
			}
		}
		st.out = peer.AppendHead(st.out, code, contentType, len(answer), action == gnet.Close)
		if len(answer) <= merged {
			st.out = append(st.out, answer...)
			continue
		}
		if _, err := c.Writev([][]byte{st.out, answer}); err != nil {
			return gnet.Close
		}
		st.out = st.out[:0]
	}
	if _, err := c.Discard(used); err != nil {
		return gnet.Close
	}
	if len(st.out) > 0 {
		if _, err := c.Write(st.out); err != nil {
			return gnet.Close
		}
	}
	return action
}

func main() {
	o := peer.Flags()
	peer.StartDate()
	// Each loop listens by itself, so all must know the port: with 0 each would get another.
	listener, err := net.Listen("tcp", o.Addr)
	peer.Check(err)
	o.Addr = listener.Addr().String()
	peer.Check(listener.Close())
	peer.Check(gnet.Run(&server{o: o}, "tcp://"+o.Addr, gnet.WithNumEventLoop(o.Workers), gnet.WithReusePort(true),
		gnet.WithLockOSThread(true), gnet.WithTCPNoDelay(gnet.TCPNoDelay), gnet.WithTicker(true), gnet.WithLogger(quiet{})))
}
