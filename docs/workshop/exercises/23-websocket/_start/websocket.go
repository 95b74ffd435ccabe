package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
	"github.com/qps-ladder/qps-ladder/shared/serve"
)

// A socket is a WebSocket that a library serves, on a goroutine of its own. The
// connection stays its loop's, which counts it and closes it, and hears no more
// of its events.
type socket struct {
	net     net.Conn // nil until the library has it
	library *websocket.Conn
	idle    *time.Timer
}

// away reports whether the library has the connection.
func (s *socket) away() bool { return s != nil && s.net != nil }

// handOver gives the connection to the library, once the handshake has been
// answered. What has been read behind the handshake goes with it.
func (c *conn) handOver() {
	early := bytes.Clone(c.in[c.start:c.end])
	c.start, c.next = c.end, c.end
	c.more, c.untilEmpty, c.unserved = false, false, false
	l := c.loop
	if l.poller.Remove(&l.counters, c.fd) != nil || c.socket.open(c.fd, early, l.config) != nil {
		c.close()
		return
	}
	l.server.running.Go(func() {
		c.socket.echo(l.config)
		l.post(new(netpoll.Counters), message{conn: c, what: released})
	})
	if l.draining {
		c.socket.goAway()
	}
}

// open makes a net.Conn of a copy of the descriptor, and a WebSocket of that.
func (s *socket) open(fd int, early []byte, config *serve.Config) error {
	own, err := syscall.Dup(fd)
	if err != nil {
		return err
	}
	syscall.CloseOnExec(own)
	file := os.NewFile(uintptr(own), "")
	connection, err := net.FileConn(file) // another copy
	file.Close()
	if err != nil {
		return err
	}
	reader := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(early), connection), max(4096, len(early)))
	if _, err := reader.Peek(len(early)); err != nil {
		connection.Close()
		return err
	}
	response := &answered{http.Header{}, connection, bufio.NewReadWriter(reader, bufio.NewWriter(connection))}
	if s.library, err = websocket.Accept(response, judged, nil); err != nil {
		connection.Close()
		return err
	}
	s.library.SetReadLimit(config.MaxBody)
	s.idle = time.AfterFunc(config.IdleTimeout, s.goAway)
	s.net = connection
	return nil
}

// judged stands for the request, which handshake has judged.
var judged = &http.Request{Method: "GET", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{
	"Connection": {"Upgrade"}, "Upgrade": {"websocket"},
	"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="},
}}

// answered is where the library would answer the handshake: that has been done.
type answered struct {
	header   http.Header
	net      net.Conn
	buffered *bufio.ReadWriter
}

func (a *answered) Header() http.Header         { return a.header }
func (a *answered) WriteHeader(int)             {}
func (a *answered) Write(b []byte) (int, error) { return len(b), nil }

// Hijack implements http.Hijacker.
func (a *answered) Hijack() (net.Conn, *bufio.ReadWriter, error) { return a.net, a.buffered, nil }

// echo sends each message back, until the connection ends. The library answers
// pings, and says what is wrong with frames; that text is UTF-8 it leaves to us.
func (s *socket) echo(config *serve.Config) {
	defer s.library.CloseNow()
	defer s.idle.Stop()
	var message bytes.Buffer
	for {
		kind, reader, err := s.library.Reader(context.Background())
		if err != nil {
			return
		}
		message.Reset()
		if _, err := message.ReadFrom(reader); err != nil {
			return
		}
		if kind == websocket.MessageText && !utf8.Valid(message.Bytes()) {
			s.library.Close(websocket.StatusInvalidFramePayloadData, "")
			return
		}
		if s.library.Write(context.Background(), kind, message.Bytes()) != nil {
			return
		}
		s.idle.Reset(config.IdleTimeout)
	}
}

// goAway ends the connection from our side, with a handshake that may take
// seconds.
func (s *socket) goAway() { go s.library.Close(websocket.StatusGoingAway, "") }

// close ends it at once.
func (s *socket) close() { s.net.Close() }
