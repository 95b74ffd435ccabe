//go:build linux

// Package timers asks what it costs to watch over the idle limit of ten thousand connections.
package timers

import (
	"container/heap"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// watch is told of every request, and finds the connections that have been idle for limit. All is
// called by one thread, as in a loop.
type watch interface {
	touch(i int)         // a request on connection i, now
	run(until time.Time) // sleeps until then, and looks after what is due meanwhile
	close()
}

// base is what all of them have. expired is called for a connection that has been idle for limit;
// its time begins anew then.
type base struct {
	limit, tick time.Duration  // tick: how late a connection may be found idle by those that look now and then
	last        []atomic.Int64 // of each connection: nanoseconds, see clock; another goroutine reads it in one of the ways
	expired     func(i int)
	woken       atomic.Int64 // how often somebody woke up to look
}

var start = time.Now()

// clock is the time since the start of the program.
func clock() int64 { return int64(time.Since(start)) }

func (b *base) touch(i int) { b.last[i].Store(clock()) }
func (b *base) close()      {}

// left is how long connection i may still be idle. One that may not is expired.
func (b *base) left(i int, now int64) time.Duration {
	left := b.last[i].Load() + int64(b.limit) - now
	if left > 0 {
		return time.Duration(left)
	}
	b.expired(i)
	b.last[i].Store(now)
	return b.limit
}

// goTimers has a timer of Go's runtime for each connection, which fires on another goroutine.
type goTimers struct {
	*base
	timer []*time.Timer
}

func newGoTimers(b *base) watch {
	g := &goTimers{b, make([]*time.Timer, len(b.last))}
	for i := range g.timer {
		g.timer[i] = time.AfterFunc(time.Hour, func() {
			b.woken.Add(1)
			g.timer[i].Reset(b.left(i, clock()))
		})
		g.timer[i].Reset(b.left(i, clock())) // now that it is stored, it may fire
	}
	return g
}

func (g *goTimers) run(until time.Time) { time.Sleep(time.Until(until)) }

// deadlines is a heap of connections, ordered by when they were to be looked at next. It sleeps
// until the first.
type deadlines struct {
	*base
	due   []int64 // of each connection
	queue []int32
}

func newDeadlines(b *base) watch {
	d := &deadlines{base: b, due: make([]int64, len(b.last))}
	for i := range b.last {
		d.due[i] = clock() + int64(b.left(i, clock()))
		heap.Push(d, int32(i))
	}
	return d
}

func (d *deadlines) Len() int           { return len(d.queue) }
func (d *deadlines) Less(a, b int) bool { return d.due[d.queue[a]] < d.due[d.queue[b]] }
func (d *deadlines) Swap(a, b int)      { d.queue[a], d.queue[b] = d.queue[b], d.queue[a] }
func (d *deadlines) Push(i any)         { d.queue = append(d.queue, i.(int32)) }
func (d *deadlines) Pop() any           { panic("no connection goes") }

func (d *deadlines) run(until time.Time) {
	end := int64(until.Sub(start))
	for {
		first := d.queue[0]
		now := clock()
		switch {
		case d.due[first] <= now:
			d.due[first] = now + int64(d.left(int(first), now))
			heap.Fix(d, 0)
		case end <= now:
			return
		default:
			if d.due[first] < end {
				d.woken.Add(1)
			}
			pause := unix.NsecToTimespec(min(d.due[first], end) - now)
			unix.Nanosleep(&pause, nil)
		}
	}
}

// wheel has a slot for each tick of a limit, with the connections to look at then.
type wheel struct {
	*base
	slots [][]int32
	at    int
}

func newWheel(b *base) watch {
	w := &wheel{base: b, slots: make([][]int32, b.limit/b.tick+2)}
	for i := range b.last {
		w.put(int32(i), b.left(i, clock()))
	}
	return w
}

func (w *wheel) put(i int32, left time.Duration) {
	slot := (w.at + 1 + int(left/w.tick)) % len(w.slots)
	w.slots[slot] = append(w.slots[slot], i)
}

func (w *wheel) run(until time.Time) {
	time.Sleep(time.Until(until))
	w.woken.Add(1)
	w.at = (w.at + 1) % len(w.slots)
	due, now := w.slots[w.at], clock()
	w.slots[w.at] = due[:0]
	for _, i := range due {
		w.put(i, w.left(int(i), now))
	}
}

// scanner looks at every connection at every tick.
type scanner struct{ *base }

func (s scanner) run(until time.Time) {
	time.Sleep(time.Until(until))
	s.woken.Add(1)
	for i, oldest := 0, clock()-int64(s.limit); i < len(s.last); i++ {
		if s.last[i].Load() <= oldest {
			s.left(i, clock())
		}
	}
}
