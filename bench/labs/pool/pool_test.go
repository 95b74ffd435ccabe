package pool

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const never = -1 // is a connection asked whether it lives

// ways in the order of lab.yaml; the first is the baseline.
var ways = []struct {
	name string
	make func(t testing.TB, address string, size int) lender
}{
	{"channel", func(_ testing.TB, address string, size int) lender { return newFirst(size, dialer(address)) }},
	{"lifo", func(_ testing.TB, address string, size int) lender { return newLast(size, never, dialer(address)) }},
	{"lifo-ping", func(_ testing.TB, address string, size int) lender { return newLast(size, 0, dialer(address)) }},
	{"lifo-grace", func(_ testing.TB, address string, size int) lender {
		return newLast(size, time.Second, dialer(address))
	}},
	{"pgxpool", func(t testing.TB, address string, size int) lender {
		config, err := pgxpool.ParseConfig(address)
		if err != nil {
			t.Fatal(err)
		}
		config.MaxConns = int32(size)
		pool, err := pgxpool.NewWithConfig(context.Background(), config)
		if err != nil {
			t.Fatal(err)
		}
		return &library{Pool: pool, lent: map[*pgx.Conn]*pgxpool.Conn{}}
	}},
}

func dialer(address string) func(context.Context) (*pgx.Conn, error) {
	return func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, address) }
}

// with borrows a connection, uses it, and gives it back.
func with(t testing.TB, l lender, use func(*pgx.Conn)) {
	t.Helper()
	c, err := l.borrow(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer l.giveBack(context.Background(), c)
	use(c)
}

func ask[T any](t testing.TB, c *pgx.Conn, query string, args ...any) (answer T) {
	t.Helper()
	if err := c.QueryRow(context.Background(), query, args...).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// Every pool lends a connection to one borrower at a time and no more than it may, drops one that
// was found dead, and lends none with a transaction of somebody else's.
func TestSame(t *testing.T) {
	address := cluster(t)
	with(t, newFirst(1, dialer(address)), func(c *pgx.Conn) {
		if _, err := c.Exec(context.Background(), "drop table if exists orders; create table orders (id int)"); err != nil {
			t.Fatal(err)
		}
	})
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			const size = 3
			l := w.make(t, address, size)
			defer l.close()
			var all sync.WaitGroup
			var mu sync.Mutex
			used, inUse := map[uint32]bool{}, map[uint32]bool{}
			for range 2 * size {
				all.Go(func() {
					for range 20 {
						with(t, l, func(c *pgx.Conn) {
							pid := c.PgConn().PID()
							mu.Lock()
							if inUse[pid] {
								t.Error("lent to two at once")
							}
							used[pid], inUse[pid] = true, true
							mu.Unlock()
							if n := ask[int](t, c, "select $1::int", 42); n != 42 {
								t.Errorf("%d is not 42", n)
							}
							mu.Lock()
							inUse[pid] = false
							mu.Unlock()
						})
					}
				})
			}
			all.Wait()
			if len(used) > size {
				t.Errorf("%d connections, not %d", len(used), size)
			}

			one := w.make(t, address, 1)
			defer one.close()
			with(t, one, func(c *pgx.Conn) { // a handler that dies before it commits
				if _, err := c.Exec(context.Background(), "begin; insert into orders values (1)"); err != nil {
					t.Fatal(err)
				}
			})
			with(t, one, func(c *pgx.Conn) {
				if status, n := c.PgConn().TxStatus(), ask[int](t, c, "select count(*) from orders"); status != 'I' || n != 0 {
					t.Errorf("the next borrower is in a transaction: %c, and sees %d orders", status, n)
				}
			})

			kill(t, one, l)
			ctx := context.Background()
			c, err := one.borrow(ctx)
			if err != nil {
				t.Fatal(err)
			}
			// Who asks before it lends has noticed; at the others the borrower does.
			if _, err := c.Exec(ctx, "select 1"); err != nil && w.name == "lifo-ping" {
				t.Errorf("a dead connection was lent: %v", err)
			}
			one.giveBack(ctx, c)
			with(t, one, func(c *pgx.Conn) { ask[int](t, c, "select 1") })
		})
	}
}

// kill ends the server's side of the connection in a pool of one.
func kill(t *testing.T, one, other lender) {
	t.Helper()
	var pid uint32
	with(t, one, func(c *pgx.Conn) { pid = c.PgConn().PID() })
	with(t, other, func(c *pgx.Conn) {
		if !ask[bool](t, c, "select pg_terminate_backend($1, 60000)", int32(pid)) {
			t.Fatal("it was not ended")
		}
	})
}

// Within the grace nobody asks; after it, a dead connection is not lent.
func TestGrace(t *testing.T) {
	address := cluster(t)
	other := newFirst(1, dialer(address))
	defer other.close()
	for grace, lives := range map[time.Duration]bool{time.Hour: false, time.Nanosecond: true} {
		one := newLast(1, grace, dialer(address))
		kill(t, one, other)
		with(t, one, func(c *pgx.Conn) {
			if _, err := c.Exec(context.Background(), "select 1"); (err == nil) != lives {
				t.Errorf("with a grace of %s: %v", grace, err)
			}
		})
		one.close()
	}
}

func BenchmarkPool(b *testing.B) {
	address := cluster(b)
	const size = 8
	for _, c := range []struct {
		name      string
		borrowers int
	}{{"one", 1}, {"four", 4}} {
		b.Run(c.name, func(b *testing.B) {
			for _, w := range ways {
				b.Run(w.name, func(b *testing.B) {
					l := w.make(b, address, size)
					defer l.close()
					warm(b, l, size)
					b.ResetTimer()
					var all sync.WaitGroup
					for range c.borrowers {
						all.Go(func() {
							for range (b.N + c.borrowers - 1) / c.borrowers {
								with(b, l, func(c *pgx.Conn) { ask[int](b, c, "select $1::int", 42) })
							}
						})
					}
					all.Wait()
				})
			}
		})
	}
	b.Run("others", func(b *testing.B) {
		for _, w := range []struct {
			name     string
			handOver bool
		}{{"waits", false}, {"hands-over", true}} {
			b.Run(w.name, func(b *testing.B) {
				l := newLast(size, never, dialer(address))
				defer l.close()
				warm(b, l, size)
				b.ResetTimer()
				b.ReportMetric(float64(others(b, l, b.N, w.handOver)), "ns/op")
			})
		}
	})
}

// warm makes all connections of a pool.
func warm(b *testing.B, l lender, size int) {
	lent := []*pgx.Conn{}
	for range size {
		c, err := l.borrow(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		ask[int](b, c, "select $1::int", 42) // it is prepared once
		lent = append(lent, c)
	}
	for _, c := range lent {
		l.giveBack(context.Background(), c)
	}
}

// others plays a loop to which a request comes every millisecond, a hundred times a turn. Every
// tenth asks the database something that takes 5 ms. It returns the 99th percentile of how long the
// others took, from when they were due.
func others(b *testing.B, l lender, turns int, handOver bool) time.Duration {
	const requests, every, slow = 100, time.Millisecond, "select count(*) from pg_sleep(0.005)"
	var took []time.Duration
	var all sync.WaitGroup
	due := time.Now()
	for i := range turns * requests {
		due = due.Add(every)
		time.Sleep(time.Until(due))
		switch query := func() { with(b, l, func(c *pgx.Conn) { ask[int](b, c, slow) }) }; {
		case i%10 != 5:
			took = append(took, time.Since(due))
		case handOver:
			all.Go(query)
		default:
			query()
		}
	}
	all.Wait()
	slices.Sort(took)
	return took[len(took)*99/100]
}
