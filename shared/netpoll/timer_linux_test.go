package netpoll

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func timer(t *testing.T, c *Counters) int {
	t.Helper()
	fd, err := NewTimer(c)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestTimer(t *testing.T) {
	var c Counters
	p := poller(t, &c)
	c = Counters{}
	fd := timer(t, &c)
	require.NoError(t, p.Add(&c, fd, 1, Readable))
	quiet(t, p, &c)

	begin := time.Now()
	require.NoError(t, SetTimer(&c, fd, 20*time.Millisecond))
	e := wait(t, p, &c)
	require.GreaterOrEqual(t, time.Since(begin), 20*time.Millisecond)
	require.Equal(t, fd, e.FD())
	require.True(t, e.Readable())
	require.True(t, wait(t, p, &c).Readable(), "until it is set again")

	require.NoError(t, SetTimer(&c, fd, time.Hour))
	quiet(t, p, &c)
	require.NoError(t, SetTimer(&c, fd, -time.Second))
	require.True(t, wait(t, p, &c).Readable(), "less than nothing is at once")
	require.NoError(t, SetTimer(&c, fd, 0))
	quiet(t, p, &c)
	require.Equal(t, Counters{EpollCtls: 1, EpollWaits: 6, Events: 3, TimerfdCreates: 1, TimerfdSettimes: 4}, c)

	var setting unix.ItimerSpec
	require.NoError(t, SetTimer(&c, fd, math.MaxInt64))
	require.NoError(t, unix.TimerfdGettime(fd, &setting))
	require.Positive(t, setting.Value.Sec)
	require.Zero(t, setting.Interval, "it expires once")
	require.NoError(t, SetTimer(&c, fd, 0))
	require.NoError(t, unix.TimerfdGettime(fd, &setting))
	require.Zero(t, setting.Value, "disarmed")
}

func TestTimerEdgeTriggeredNeedsNoRead(t *testing.T) {
	var c Counters
	p := poller(t, &c)
	fd := timer(t, &c)
	require.NoError(t, p.Add(&c, fd, 1, Readable|EdgeTriggered))
	for range 3 {
		require.NoError(t, SetTimer(&c, fd, time.Millisecond))
		require.True(t, wait(t, p, &c).Readable())
		quiet(t, p, &c)
	}
}
