package suite

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// mostHanging is after how many cases in which the server hangs the others are not tried.
const mostHanging = 8

var (
	// randomCuts is how many random fragmentations each case is sent in.
	randomCuts = thorough(4, 1)
	// byteByByte is up to twice which length every byte of a case is sent on its own. Of a longer one it is that
	// many at both ends, and in between come random pieces.
	byteByByte = thorough(12<<10, 256)
)

// unhurried keeps deadlines out of tests that are not about them: a machine that is busy enough takes seconds to
// send thousands of bytes one by one.
var unhurried = []string{"-head-timeout", "1m", "-body-timeout", "1m"}

// Conformance runs every case of testdata, in one piece, byte by byte and cut at random, and once
// more against a server that overwrites each request's bytes as soon as nobody may look at them
// any longer (-poison).
func Conformance(t *testing.T) {
	t.Parallel()
	conformance(ofTest(t))
}

func conformance(t T, p Program) {
	cases, err := Cases()
	require.NoError(t, err)
	// In the short form a case comes in every way at one of the two servers, at the other in one piece.
	random := rand.New(rand.NewPCG(drawSeed(t), 0))
	var plain, poison []bool
	for range cases {
		first := random.IntN(2) == 0
		plain = append(plain, thorough(true, first))
		poison = append(poison, thorough(true, !first))
	}
	var hanging atomic.Int32
	in := func(flags []string, everyWay []bool) func(T) {
		return func(t T) {
			t.Parallel()
			p.Start(t, flags...).runCases(t, cases, everyWay, &hanging)
		}
	}
	t.Run("plain", in(unhurried, plain))
	t.Run("poison", in(append(unhurried, "-poison"), poison))
}

func (s *Server) runCases(t T, cases []Case, everyWay []bool, hanging *atomic.Int32) {
	for i, c := range cases {
		t.Run(strings.TrimSuffix(c.File, ".cases")+"/"+c.Name, func(t T) {
			t.Parallel()
			if hanging.Load() >= mostHanging {
				t.Skipf("the server hangs in too many cases; the rest would take hours")
			}
			err := checkCase(s.Ready.Address, c, everyWay[i])
			if errors.Is(err, os.ErrDeadlineExceeded) {
				hanging.Add(1)
			}
			require.NoError(t, err, "%s:%d: %s (%s)", c.File, c.Line, c.Why, c.RFC)
		})
	}
	t.Run("all on one connection", func(t T) {
		t.Parallel()
		checkTogether(t, s, cases)
	})
}

// checkCase runs a case against the server at that address in every way there is, each on a connection of
// its own and all of them at a time, or else in one piece only. The error says which way failed, and how.
func checkCase(address string, c Case, everyWay bool) error {
	exchanges := exchangesOf(c)
	if !everyWay {
		exchanges = exchanges[:1]
	}
	failures := make([]error, len(exchanges))
	var group sync.WaitGroup
	for i, e := range exchanges {
		group.Go(func() { failures[i] = e.run(address) })
	}
	group.Wait()
	for i, err := range failures {
		if err != nil {
			return fmt.Errorf("%s: %w\nsent %s", exchanges[i].how, err, harness.Clip(c.Bytes))
		}
	}
	return nil
}

// exchange is one way to run a case, or several cases, over one connection.
type exchange struct {
	how       string
	pieces    [][]byte
	halfClose bool
	answers   []Expected
	closed    bool
	overrun   bool          // the client sends on after the request that it said is its last
	limit     time.Duration // for all of it; 0 means patience
}

// exchangesOf are all ways, the first of them in one piece.
func exchangesOf(c Case) []exchange {
	whole := exchange{how: "in one piece", pieces: [][]byte{c.Bytes}, halfClose: c.HalfClose, answers: c.Answers, closed: c.Closed, overrun: c.overrun()}
	all := []exchange{whole}
	if len(c.Bytes) > 1 {
		e := whole
		e.how, e.pieces = "byte by byte", bytePieces(c.Bytes)
		all = append(all, e)
		for i := range randomCuts {
			e := whole
			seed := seedOf(c.Name, i)
			e.how, e.pieces = fmt.Sprintf("cut at random with seed %d", seed), randomPieces(c.Bytes, seed)
			all = append(all, e)
		}
	}
	if len(c.Answers) == 0 || c.HalfClose {
		return all
	}
	if c.Certain < len(c.Bytes) {
		e := whole
		e.how, e.pieces = "as far as the answer is certain", [][]byte{c.Bytes[:c.Certain]}
		all = append(all, e)
	}
	// One byte less, and then the end of input: an incomplete request, which gets no answer.
	short := whole
	short.how, short.pieces, short.halfClose, short.closed = "one byte short of certain", [][]byte{c.Bytes[:c.Certain-1]}, true, true
	short.answers = c.Answers[:len(c.Answers)-1]
	return append(all, short)
}

// run sends the pieces while it reads the answers, and then looks what became of the connection.
func (e exchange) run(address string) error {
	c, err := connect(address)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Timeout = cmp.Or(e.limit, patience)
	stop, sent := make(chan struct{}), make(chan error, 1)
	go func() { sent <- e.send(c, stop) }()
	err = e.receive(c)
	close(stop)
	if err != nil {
		c.Close() // or the sender might wait for ever
		<-sent
		return err
	}
	if err := <-sent; e.closed {
		return nil // a server that has closed need not take the rest
	} else if err != nil {
		return err
	}
	if err := c.tryHello(); err != nil {
		return fmt.Errorf("the connection should still be open: %w", err)
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	return c.ReadEnd()
}

func (e exchange) send(c *client, stop <-chan struct{}) error {
	for _, piece := range e.pieces {
		if e.closed {
			select {
			case <-stop:
				return nil
			default:
			}
		}
		if err := c.Write(piece); err != nil {
			return fmt.Errorf("cannot send: %w", err)
		}
	}
	if e.halfClose {
		return c.CloseWrite()
	}
	return nil
}

func (e exchange) receive(c *client) error {
	for i, want := range e.answers {
		if err := c.read(want); err != nil {
			return fmt.Errorf("answer %d of %d: %w", i+1, len(e.answers), err)
		}
	}
	if !e.closed {
		return nil
	}
	if err := c.ReadEnd(); !e.overrun || !harness.WasReset(err) {
		return err
	}
	return nil // after all answers
}

// overrun says that the client ends the connection by a request of its own, and does not keep to that. A server need not linger
// for it (RFC 9112, 9.6): once that request is answered, a reset may meet what comes behind it.
func (c Case) overrun() bool {
	return c.Closed && !c.HalfClose && c.Certain < len(c.Bytes) && c.Answers[len(c.Answers)-1].Status < 400
}

// checkTogether runs all cases after which the connection lives on over one connection, in an order shuffled
// anew each time: first one after the other, then all sent ahead. So nothing of one request may
// stay for the next.
func checkTogether(t T, s *Server, cases []Case) {
	var open []Case
	for _, c := range cases {
		if !c.Closed && len(c.Bytes) < 64<<10 {
			open = append(open, c)
		}
	}
	require.NotEmpty(t, open)
	for i := range randomCuts {
		seed := seedOf("together", i)
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
		c := dial(t, s)
		all := exchange{limit: 3 * patience}
		for _, one := range open {
			require.NoError(t, c.Write(one.Bytes))
			for _, want := range one.Answers {
				require.NoError(t, c.read(want), "%s, on one connection with seed %d", one.Name, seed)
			}
			all.pieces = append(all.pieces, randomPieces(one.Bytes, seed)...)
			all.answers = append(all.answers, one.Answers...)
		}
		require.NoError(t, all.run(s.Ready.Address), "all sent ahead, with seed %d", seed)
	}
}

func seedOf(name string, i int) uint64 {
	h := fnv.New32a()
	io.WriteString(h, name+strconv.Itoa(i))
	return uint64(h.Sum32())
}

func bytePieces(b []byte) [][]byte {
	if len(b) > 2*byteByByte {
		pieces := bytePieces(b[:byteByByte])
		pieces = append(pieces, randomPieces(b[byteByByte:len(b)-byteByByte], uint64(len(b)))...)
		return append(pieces, bytePieces(b[len(b)-byteByByte:])...)
	}
	pieces := make([][]byte, len(b))
	for i := range b {
		pieces[i] = b[i : i+1]
	}
	return pieces
}

// randomPieces cuts b into pieces: short ones for the most part, but never many thousands of them.
func randomPieces(b []byte, seed uint64) [][]byte {
	random := rand.New(rand.NewPCG(seed, uint64(len(b))))
	var pieces [][]byte
	for len(b) > 0 {
		most := 8
		if random.IntN(3) == 0 {
			most = max(len(b)/8, 64)
		}
		n := min(1+random.IntN(most), len(b))
		pieces = append(pieces, b[:n])
		b = b[n:]
	}
	return pieces
}
