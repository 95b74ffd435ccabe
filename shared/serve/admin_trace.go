package serve

import (
	"net/http"
	"runtime/trace"
	"strconv"
	"sync"
	"time"
)

// maxTrace is far longer than anybody traces.
const maxTrace = time.Hour

// trace answers with an execution trace of ?seconds=, 1 by default, for `go tool trace`. It is sent while
// it is taken. It ends early, and is whole still, when the client lags behind by limits.trace bytes.
//
// net/http/pprof's own handler lets the tracer write to the client. When that blocks, the runtime keeps
// what it has traced since, in memory of its own and without a bound.
func (a *admin) trace(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.ParseFloat(r.FormValue("seconds"), 64)
	if err != nil || !(seconds > 0) {
		seconds = 1
	}
	length := time.Duration(min(seconds, maxTrace.Seconds()) * float64(time.Second))
	waiting := newSpool(a.limits.trace)
	if err := trace.Start(waiting); err != nil {
		http.Error(w, "cannot trace: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="trace"`)

	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-time.After(length):
		case <-waiting.full:
		case <-r.Context().Done(): // the client has gone, or does not read
		}
		trace.Stop()
	}()
	for {
		select {
		case <-waiting.some:
			w.Write(waiting.take())
		case <-stopped:
			w.Write(waiting.take())
			return
		}
	}
}

// spool keeps what is written to it until it is taken. A Write never waits.
type spool struct {
	mutex sync.Mutex
	bytes []byte
	most  int
	some  chan struct{} // holds one when there is something to take
	full  chan struct{} // holds one when more than most bytes lay there at a time
}

func newSpool(most int) *spool {
	return &spool{most: most, some: make(chan struct{}, 1), full: make(chan struct{}, 1)}
}

// Write keeps a copy of p, also when the spool is full: the end of a trace belongs to it.
func (s *spool) Write(p []byte) (int, error) {
	s.mutex.Lock()
	s.bytes = append(s.bytes, p...)
	full := len(s.bytes) > s.most
	s.mutex.Unlock()
	raise(s.some)
	if full {
		raise(s.full)
	}
	return len(p), nil
}

// take returns what was written since the last call. It is the caller's.
func (s *spool) take() []byte {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	taken := s.bytes
	s.bytes = nil
	return taken
}

// raise leaves a token in c unless it holds one.
func raise(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
