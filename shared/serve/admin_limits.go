package serve

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// adminLimits bounds what clients of the admin listener can hold, and for how long.
type adminLimits struct {
	conns int           // open connections; one more is closed as soon as it is accepted
	head  time.Duration // for a request's head; from the accept for a connection's first
	body  time.Duration // for a request's body, of which no route needs much
	idle  time.Duration // between requests
	write time.Duration // for the client to make room for writePiece bytes
	trace int           // bytes of a trace that wait for the client; then the trace ends
}

var defaultAdminLimits = adminLimits{
	conns: 64,
	head:  10 * time.Second,
	body:  10 * time.Second,
	idle:  2 * time.Minute,
	write: 30 * time.Second,
	trace: 32 << 20,
}

const (
	maxAdminHead = 16 << 10 // bytes
	maxAdminBody = 64 << 10 // bytes
	writePiece   = 16 << 10 // bytes
	// sendBuffer is small, since the kernel wakes a writer only when a third of it is free: a client that
	// reads a few KB a second still gets its whole answer.
	sendBuffer = 64 << 10 // bytes
)

// newServer sets no WriteTimeout, which would end a profile of 60 s, and no ReadTimeout: while a handler
// runs, net/http reads on, and takes a timeout for a client that has gone.
func (a *admin) newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength != 0 {
				r.Body = http.MaxBytesReader(w, r.Body, maxAdminBody)
				http.NewResponseController(w).SetReadDeadline(time.Now().Add(a.limits.body))
			}
			handler.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: a.limits.head,
		IdleTimeout:       a.limits.idle,
		MaxHeaderBytes:    maxAdminHead,
		// Both are called by goroutines that are waited for: Serve's, then the connection's own.
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				a.running.Add(1)
			case http.StateClosed:
				a.running.Done()
			}
		},
	}
}

// adminListener bounds the connections that are open at a time. Those beyond are closed at once: left in
// the kernel's queue, they would hold descriptors of their clients, and the server would look hung.
type adminListener struct {
	net.Listener
	limits adminLimits
	open   atomic.Int64
}

func (l *adminListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= int64(l.limits.conns) {
			c.(*net.TCPConn).SetWriteBuffer(sendBuffer)
			return &adminConn{Conn: c, listener: l}, nil
		}
		l.open.Add(-1)
		c.Close()
	}
}

// adminConn gives each piece of an answer a deadline of its own, so that an answer may take as long as
// its client needs, and ends when the client takes nothing.
type adminConn struct {
	net.Conn
	listener *adminListener
	once     sync.Once
}

func (c *adminConn) Write(p []byte) (written int, err error) {
	for err == nil && written < len(p) {
		c.SetWriteDeadline(time.Now().Add(c.listener.limits.write))
		var n int
		n, err = c.Conn.Write(p[written:min(len(p), written+writePiece)])
		written += n
	}
	return written, err
}

func (c *adminConn) Close() error {
	c.once.Do(func() { c.listener.open.Add(-1) })
	return c.Conn.Close()
}

// refuseOtherHosts answers 403 to a Host that is not this listener's. A page of another site can have its
// own name resolved to a loopback address ("DNS rebinding"), and would then read profiles and counters as
// if they were its own. Its browser still sends that name as the Host.
func (a *admin) refuseOtherHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.isHost(r.Host) {
			refuse(w, fmt.Sprintf("the admin listener does not answer for the host %q: ask for localhost, 127.0.0.1 or the host of -admin", r.Host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isHost says whether host, a Host header with or without a port, is a loopback name (RFC 6761, 6.3), a
// loopback address or the host of -admin. Where that is 0.0.0.0 or [::], it is every address, since this
// machine may have it and only names can be rebound. The port does not matter: it may be forwarded.
func (a *admin) isHost(host string) bool {
	name := host
	if before, _, err := net.SplitHostPort(host); err == nil {
		name = before
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") || name != "" && name == strings.ToLower(a.host) {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	if err != nil {
		return false
	}
	ip = ip.Unmap()
	own, err := netip.ParseAddr(a.host)
	return ip.IsLoopback() || err == nil && (own.Unmap() == ip || own.IsUnspecified())
}

// refuseOtherSites answers 403 to what a page of another origin makes a browser send: it could not read
// the answer, but a profile, a trace or a garbage collection (?gc=1) costs time.
func refuseOtherSites(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isOfOtherSite(r.Header, r.Host) {
			refuse(w, "profiles are not for pages of other sites: open the address itself")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOfOtherSite goes by Fetch Metadata (Sec-Fetch-Site), or the Origin (RFC 6454, 7) from a browser that
// does not send it. What is no browser sends neither.
func isOfOtherSite(h http.Header, host string) bool {
	if site := h.Get("Sec-Fetch-Site"); site != "" {
		return site != "same-origin" && site != "none"
	}
	origin := h.Get("Origin")
	return origin != "" && origin != "http://"+host
}

// refuse answers 403 with one line, and closes: nothing that the client sent behind it is looked at.
func refuse(w http.ResponseWriter, line string) {
	w.Header().Set("Connection", "close")
	http.Error(w, line, http.StatusForbidden)
}
