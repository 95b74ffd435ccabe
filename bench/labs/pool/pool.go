// Package pool asks how to keep connections to a database: in which order to lend them, how to find
// those that died, and who waits for an answer. It is a module of its own, as pgx is large.
package pool

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// lender lends connections to a database, each to one borrower at a time.
type lender interface {
	// borrow waits for a connection. The borrower gives it back.
	borrow(ctx context.Context) (*pgx.Conn, error)
	// giveBack takes any connection that was borrowed, in whatever state it is.
	giveBack(ctx context.Context, c *pgx.Conn)
	close()
}

// clean makes a connection what the next borrower expects: one with no transaction left open by a
// handler that returned early or panicked. It says false of one that is of no use any more.
func clean(ctx context.Context, c *pgx.Conn) bool {
	if c.IsClosed() {
		return false
	}
	const idle = 'I' // in no transaction, see the protocol's message ReadyForQuery
	if c.PgConn().TxStatus() != idle {
		if _, err := c.Exec(ctx, "rollback"); err != nil {
			c.Close(ctx)
			return false
		}
	}
	return true
}

// first is the baseline: a channel of connections. Who comes first gets the one that has rested
// longest, so that all of them take turns. A nil in it stands for one that has to be made anew.
type first struct {
	dial func(context.Context) (*pgx.Conn, error)
	free chan *pgx.Conn
}

func newFirst(size int, dial func(context.Context) (*pgx.Conn, error)) lender {
	f := first{dial, make(chan *pgx.Conn, size)}
	for range size {
		f.free <- nil
	}
	return f
}

func (f first) borrow(ctx context.Context) (*pgx.Conn, error) {
	select {
	case c := <-f.free:
		if c != nil {
			return c, nil
		}
		c, err := f.dial(ctx)
		if err != nil {
			f.free <- nil // its place stays
		}
		return c, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f first) giveBack(ctx context.Context, c *pgx.Conn) {
	if !clean(ctx, c) {
		c = nil
	}
	f.free <- c
}

func (f first) close() {
	for range cap(f.free) {
		if c := <-f.free; c != nil {
			c.Close(context.Background())
		}
	}
}

// last lends the connection that came back last, so that the same few are in use and warm, and the
// others can be closed. Before it lends one that nobody has heard of for grace, it asks whether the
// server is still there: with a grace of 0 each time, with a negative one never.
type last struct {
	dial  func(context.Context) (*pgx.Conn, error)
	grace time.Duration
	slots chan struct{} // a place for each that is lent

	mu   sync.Mutex
	free []resting
}

// resting is a connection in the pool.
type resting struct {
	*pgx.Conn
	heard time.Time // of its server
}

func newLast(size int, grace time.Duration, dial func(context.Context) (*pgx.Conn, error)) lender {
	return &last{dial: dial, grace: grace, slots: make(chan struct{}, size)}
}

func (l *last) borrow(ctx context.Context) (*pgx.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		c, ok := l.pop()
		if !ok {
			c, err := l.dial(ctx)
			if err != nil {
				<-l.slots
			}
			return c, err
		}
		if l.grace < 0 || time.Since(c.heard) < l.grace || c.Ping(ctx) == nil {
			return c.Conn, nil
		}
		c.Close(ctx) // it died; the next one may live
	}
}

func (l *last) pop() (c resting, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) == 0 {
		return c, false
	}
	c = l.free[len(l.free)-1]
	l.free = l.free[:len(l.free)-1]
	return c, true
}

func (l *last) giveBack(ctx context.Context, c *pgx.Conn) {
	if clean(ctx, c) {
		l.mu.Lock()
		l.free = append(l.free, resting{c, time.Now()})
		l.mu.Unlock()
	}
	<-l.slots
}

func (l *last) close() {
	for c, ok := l.pop(); ok; c, ok = l.pop() {
		c.Close(context.Background())
	}
}

// library is pgxpool: last in, first out; a ping after a second of rest; one that comes back within
// a transaction is closed, and made anew.
type library struct {
	*pgxpool.Pool
	mu   sync.Mutex
	lent map[*pgx.Conn]*pgxpool.Conn
}

func (l *library) borrow(ctx context.Context) (*pgx.Conn, error) {
	c, err := l.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.lent[c.Conn()] = c
	l.mu.Unlock()
	return c.Conn(), nil
}

func (l *library) giveBack(_ context.Context, c *pgx.Conn) {
	l.mu.Lock()
	lent := l.lent[c]
	delete(l.lent, c)
	l.mu.Unlock()
	lent.Release()
}

func (l *library) close() { l.Close() }
