package suite

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// refusedAtATime is how many connections that are too many an acceptor holds at most; then the oldest makes room.
const refusedAtATime = 64

// crowd is how many come: far more than may.
var crowd = thorough(1000, 300)

// Many more clients come than may, and say nothing. They cost a bounded number of descriptors, and no timer; those that are
// admitted are served; and a client that is refused and speaks is told.
func crowded(t T, p Program) {
	for _, flags := range [][]string{{"-workers", "2"}, {"-workers", "2", "-acceptor"}} {
		t.Run(strings.Join(flags, " "), func(t T) { crowdedWith(t, p, flags) })
	}
}

func crowdedWith(t T, p Program, flags []string) {
	const admitted, workers, slack = 10, 2, 8
	needsFiles(t, uint64(3*crowd))
	s := p.Start(t, append(flags, "-max-conns", fmt.Sprint(admitted), "-linger-timeout", "1h")...)
	before := levelAtRest(t, s)
	var inside []*client
	for range admitted {
		c := dial(t, s)
		c.hello(t)
		inside = append(inside, c)
	}
	full := s.Counters(t).Total
	// A connection takes a socket, and a timer; one that is refused a socket.
	most := int(before.files) + 2*admitted + workers*refusedAtATime + slack
	outside := make([]*client, crowd)
	for i := range outside {
		outside[i] = dial(t, s)
		if i%50 == 0 {
			require.LessOrEqual(t, s.files(t), most, "after %d more", i)
			inside[i/50%admitted].hello(t)
		}
	}
	s.Await(t, "all to be accepted", func(r harness.Reading) bool {
		return r.Total.Accepts-r.Total.AcceptAgains >= full.Accepts-full.AcceptAgains+uint64(crowd)
	})
	require.LessOrEqual(t, s.files(t), most)
	require.LessOrEqual(t, s.Counters(t).Total.TimerfdCreates, full.TimerfdCreates+workers, "timers for clients that are refused")
	for _, c := range inside {
		c.hello(t)
	}

	// Some had to go: the oldest. The newest are still listened to, and told when they speak.
	require.True(t, outside[0].hasEnded(), "the oldest is still there")
	for i, request := range []string{helloRequest, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "G", "POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", helloRequest + helloRequest} {
		c := outside[crowd-1-i]
		c.send(t, request)
		want := Refusal(503)
		want.Bodiless = i == 1
		require.NoError(t, c.read(want), "%q", request)
		require.NoError(t, c.ReadEnd(), "%q", request)
	}
	for _, c := range outside {
		c.Close()
	}
	s.AwaitConnections(t, admitted)
	for _, c := range inside {
		c.hello(t)
		c.Close()
	}
	s.AwaitConnections(t, 0)
	nothingLeft(t, s, before)
}

// hasEnded waits for what the client of a connection that made room sees: an answer or none, and the end, in order or not.
func (c *client) hasEnded() bool {
	answer, err := c.answer(false)
	if err == nil {
		if Refusal(503).Check(answer) != nil {
			return false
		}
		err = c.ReadEnd()
	}
	return err == nil || ended(err)
}

// Refused clients that say nothing are told at last, and are gone soon after, all of them, though they stay; and the server then has
// as much room for others as before.
func refusedInSilence(t T, p Program) {
	const limit = 300 * time.Millisecond
	s := p.Start(t, "-max-conns", "1", "-linger-timeout", limit.String())
	before := levelAtRest(t, s)
	inside := dial(t, s)
	inside.hello(t)
	for range 3 {
		started := time.Now()
		var outside []*client
		for range refusedAtATime / 4 {
			outside = append(outside, dial(t, s))
		}
		for _, c := range outside {
			c.expect(t, Refusal(503))
			c.expectEnd(t)
			require.GreaterOrEqual(t, time.Since(started), limit)
		}
		s.AwaitConnections(t, 1)
		for _, c := range outside {
			c.Close()
		}
		inside.hello(t)
	}
	inside.Close()
	s.AwaitConnections(t, 0)
	nothingLeft(t, s, before)
}

// net/http's client, whose connections come and go, is told each time while a crowd waits.
func refusedInACrowd(t T, p Program) {
	needsFiles(t, uint64(3*crowd))
	s := p.Start(t, "-max-conns", "1", "-workers", "1", "-linger-timeout", "1h")
	before := levelAtRest(t, s)
	inside := dial(t, s)
	inside.hello(t)
	for range 2 * refusedAtATime {
		dial(t, s)
	}
	c := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 50 {
		answer, err := c.Get("http://" + s.Ready.Address + "/")
		require.NoError(t, err)
		answer.Body.Close()
		require.Equal(t, 503, answer.StatusCode)
		require.True(t, answer.Close)
	}
	inside.hello(t)
	require.LessOrEqual(t, s.files(t), int(before.files)+2+refusedAtATime+8)
}
