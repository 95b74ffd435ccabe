package grade

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

const (
	warmUp          = 256  // requests before anything is counted
	countedRequests = 2048 // by the server's own counters
	watchedRequests = 512  // by watching its system calls, which is slow
	warmUpWatched   = 64

	// How far the counters and what was watched may lie apart: the turn of a loop that is under way when
	// either is read, and what the Go runtime does of its own.
	counterSlack = 0.05
	// The same for calls that come with time, as those of a scanner: under a tracer, on a busy machine, a request takes long.
	timedSlack = 0.25

	// Where no more objects than fewObjects may be allocated for a request, there may be no more than fewBytes either.
	fewObjects = 0.1
	fewBytes   = 64
)

// figure is something that can be counted per request.
type figure struct {
	counter string   // in /debug/counters; "" if there is none
	calls   []string // of a record; the largest counts
	timed   bool     // some come with time, and not with requests
}

var figures = map[string]figure{
	"hand-offs":       {counter: "handoffs", calls: []string{readsElsewhere, writesElsewhere}},
	wakeUps:           {counter: "eventfd_writes", calls: []string{wakeUps}},
	timerfdSettime:    {counter: "timerfd_settimes", calls: []string{timerfdSettime}, timed: true},
	epollCtl:          {counter: "epoll_ctls", calls: []string{epollCtl}},
	epollWait:         {counter: "epoll_waits", calls: []string{epollWait}},
	enters:            {counter: "enters", calls: []string{enters}},
	reads:             {counter: "reads", calls: []string{reads}},
	writes:            {counter: "writes", calls: []string{writes}},
	"heap objects":    {counter: "heap_objects_allocated"},
	"copied bytes":    {counter: "body_bytes_copied"},
	"epoll events":    {counter: "events"},
	"failing writes":  {counter: "write_agains"},
	"futex calls":     {calls: []string{futex}},
	"requests":        {counter: "requests"},
	"vectored writes": {counter: "vectored_writes"},
	fromMemory:        {calls: []string{fromMemory}},
}

// KnownFigure says whether a check may name that figure.
func KnownFigure(name string) bool {
	_, ok := figures[name]
	return ok || special[name].count != nil
}

// perRequest is what a workload costs, by counter and by call.
type perRequest struct {
	counters map[string]float64
	loops    loopHabit
	wrote    float64 // bytes, see wroteSoFar; below zero: not known

	// The same while its system calls are watched; nil if they could not be.
	calls        map[string]float64
	watched      map[string]float64 // by counter
	watchedWrote float64
}

// loopHabit is what the threads of loops do for a request at most.
type loopHabit struct {
	waits float64
	cpu   time.Duration
}

// Subject is a server to be graded, as a program that has been built. What is measured once is kept.
type Subject struct {
	Binary string
	// Root is the repository's root.
	Root string
	// Own is that source, Start what it was made from: text by file name.
	Own, Start map[string][]byte
	// Measured has what was measured of it, by workload; nil if that is not known, and nothing is held against it.
	Measured map[string][]Measured
	// Files are those that may be changed.
	Files []string
	// Build builds it in another way, BuildWith with one more file, BuildBase the stage it is based on.
	Build     Builder
	BuildWith func(name, text string) (binary string, err error)
	BuildBase func() (binary string, err error)
	// Seed is what is drawn by chance: numbers, sizes, types and their order.
	Seed uint64
	// Context ends what takes long.
	Context context.Context

	mutex      sync.Mutex
	measured   map[string]perRequest
	executions map[string]executions
	events     map[int]eventCosts // by the number of subscribers
	counting   string             // the program built to count what is executed in the parser too; "" before that
	blind      error              // why the server's system calls could not be watched
	values     map[string]float64
	notes      []string
}

// random draws for one purpose, the same for the same seed, whatever was drawn for others.
func (s *Subject) random(purpose string) *rand.Rand {
	h := fnv.New64a()
	io.WriteString(h, purpose)
	return rand.New(rand.NewPCG(s.Seed, h.Sum64()))
}

// Notes are lines for information, which nothing is graded by.
func (s *Subject) Notes() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.notes
}

func (s *Subject) note(text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.notes = append(s.notes, text)
}

// Blind says why system calls could not be watched, if they could not.
func (s *Subject) Blind() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.blind
}

// Values are all figures that were measured, by name.
func (s *Subject) Values() map[string]float64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.values
}

func (s *Subject) keep(name string, value float64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.values == nil {
		s.values = map[string]float64{}
	}
	s.values[name] = math.Round(value*1000) / 1000
}

// measure counts what a workload costs over a few connections: to a server with one worker by its counters, and
// to one with several while it is watched.
func (s *Subject) measure(name string) (perRequest, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if m, ok := s.measured[name]; ok {
		return m, nil
	}
	l, err := s.load(name)
	if err != nil {
		return perRequest{}, err
	}
	m, err := s.count(l)
	if err != nil {
		return m, err
	}
	if err := s.watch(l, &m); err != nil {
		return m, err
	}
	if s.measured == nil {
		s.measured = map[string]perRequest{}
	}
	s.measured[name] = m
	return m, nil
}

// count reads the server's own counters before and after, less what a reading costs.
func (s *Subject) count(l load) (m perRequest, err error) {
	server, cleanUp, err := l.served(1, s.serve)
	if err != nil {
		return m, err
	}
	defer cleanUp()
	clients, err := server.some(s.random("clients"))
	if err != nil {
		return m, err
	}
	if err := drive(clients, l, warmUp); err != nil {
		return m, err
	}
	var at [4]harness.Reading
	for i := range at {
		if i == 3 {
			before, wrote := habits(server.PID()), wroteSoFar(server.PID())
			if err := drive(clients, l, countedRequests); err != nil {
				return m, err
			}
			after := habits(server.PID())
			m.wrote = each(wrote, wroteSoFar(server.PID()), countedRequests)
			m.loops = habitOf(atRest(server.PID(), before, after), before, after, countedRequests)
		}
		if at[i], err = server.read(); err != nil {
			return m, err
		}
	}
	idle := at[2].Sub(at[1]).Counts() // what a reading costs
	m.counters = map[string]float64{}
	for name, n := range at[3].Sub(at[2]).Counts() {
		m.counters[name] = max(0, float64(n-idle[name])) / countedRequests
	}
	if err := server.Stop(); err != nil {
		return m, err
	}
	return m, nil
}

// some are two to four clients. They go with the server.
func (s *Server) some(random *rand.Rand) (all []*connection, err error) {
	for range 2 + random.IntN(3) {
		c, err := s.dial()
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// atRest says which threads are loops: those that wait for events when there are none any more. The
// thread that was busiest is mostly one, so that it is waited for.
func atRest(pid int, before, after map[string]habit) (loops map[string]bool) {
	busiest := ""
	for thread := range after {
		if busiest == "" || after[thread].cpu-before[thread].cpu > after[busiest].cpu-before[busiest].cpu {
			busiest = thread
		}
	}
	for end := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		if loops = waiting(pid); loops[busiest] || time.Now().After(end) {
			return loops
		}
	}
}

// habitOf is what the busiest of some threads did for each of n requests.
func habitOf(threads map[string]bool, before, after map[string]habit, n int) (most loopHabit) {
	for thread := range threads {
		most.waits = max(most.waits, float64(after[thread].waits-before[thread].waits)/float64(n))
		most.cpu = max(most.cpu, (after[thread].cpu-before[thread].cpu)/time.Duration(n))
	}
	return most
}

// each is how much came for each of n requests; below zero if that is not known.
func each(before, after int64, n int) float64 {
	if before < 0 || after < 0 {
		return -1
	}
	return float64(after-before) / float64(n)
}

// watch counts system calls from outside, and the rest once more meanwhile. Where that is not
// possible it leaves m as it is.
func (s *Subject) watch(l load, m *perRequest) error {
	if s.blind != nil {
		return nil
	}
	random := s.random("watched clients")
	server, cleanUp, err := l.served(2+random.IntN(3), s.serveWatched)
	if err != nil {
		if isBlind(err) {
			s.blind = err
			return nil
		}
		return err
	}
	defer cleanUp()
	clients, err := server.some(random)
	if err != nil {
		return err
	}
	first, err := server.read()
	if err != nil {
		return err
	}
	// What the reading costs the runtime is over when these have been answered.
	if err := drive(clients, l, warmUpWatched); err != nil {
		return err
	}
	before, wrote := server.record.snapshot(), wroteSoFar(server.PID())
	if err := drive(clients, l, watchedRequests); err != nil {
		return err
	}
	after := server.record.snapshot()
	m.watchedWrote = each(wrote, wroteSoFar(server.PID()), watchedRequests)
	last, err := server.read()
	if err != nil {
		return err
	}
	m.calls, m.watched = map[string]float64{}, map[string]float64{}
	for name, n := range after {
		m.calls[name] = float64(n-before[name]) / watchedRequests
	}
	for name, n := range last.Sub(first).Counts() {
		m.watched[name] = float64(n) / (warmUpWatched + watchedRequests)
	}
	return nil
}

// What is found beside a figure has a name of its own.
const honestCounters, sameUnwatched = "honest counters", "the same unwatched"

// OfAnyFigure says whether a finding of this name comes beside those of figures, whichever is counted.
func OfAnyFigure(name string) bool { return name == honestCounters || name == sameUnwatched }

// figure answers a check's finding, and a second one if the counters do not say what was seen.
func (s *Subject) figure(c Check) ([]Finding, error) {
	f, ok := figures[c.Figure]
	if !ok {
		value, err := special[c.Figure].count(s)
		if err != nil {
			return nil, err
		}
		s.keep(c.Name(), value)
		return []Finding{c.judge(value)}, nil
	}
	m, err := s.measure(c.Of)
	if err != nil {
		return nil, err
	}
	value := m.counters[f.counter]
	seen := 0.0
	for _, call := range f.calls {
		seen = max(seen, m.calls[call])
	}
	s.keep(c.Name(), max(value, seen))
	findings := []Finding{c.judge(max(value, seen))}
	if c.Figure == "heap objects" && c.AtMost != nil && *c.AtMost <= fewObjects {
		// One large piece for many small ones is cheaper by its number only.
		if n := m.counters["heap_bytes_allocated"]; n > fewBytes {
			findings = append(findings, Finding{
				Check: c.Name(), Look: c.Look,
				Text: fmt.Sprintf("heap bytes per request (%s): %s, must be at most %d: few objects, but large ones", c.Of, number(n), fewBytes),
			})
		}
	}
	slack := counterSlack
	if f.timed {
		slack = timedSlack
	}
	if f.counter != "" && len(f.calls) > 0 && m.calls != nil && seen > value+slack+value/20 {
		findings = append(findings, Finding{
			Check: honestCounters,
			Text:  fmt.Sprintf("the counters say %s %s per request, but %s were seen from outside", number(value), c.Figure, number(seen)),
			Look:  "counters are not yours to change: each call of shared/netpoll takes those of its own loop",
		})
	}
	if l, err := s.load(c.Of); err == nil {
		if err := m.sameWatched(l); err != nil {
			findings = append(findings, Finding{
				Check: sameUnwatched,
				Text:  "a server does the same whoever looks, and with any number of workers: " + err.Error(),
				Look:  "what does it know about being watched?",
			})
		}
	}
	return findings, nil
}
