package main

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/qps-ladder/qps-ladder/shared/http1"
	"github.com/qps-ladder/qps-ladder/shared/serve"
)

// layerCount is how many layers there are between the loop and the app.
const layerCount = 10

// enter is a layer's work on the way in. It counts the request, and says whether
// the layer has answered itself.
func (l *layers) enter(number int, request *http1.Request, response *http1.Response) bool {
	seen := l.seen[number].Add(1)
	if number == 0 {
		l.trace = ""
	}
	if at := request.Header("X-Stop-At"); at != "" && at == strconv.Itoa(number) {
		response.Error(503)
		return true
	}
	if request.Header("X-Trace") != "" {
		l.trace += strconv.Itoa(number)
	}
	if of := request.Header("X-Count"); of != "" && of == strconv.Itoa(number) {
		l.trace = strconv.FormatInt(seen, 10)
	}
	return false
}

// leave is its work on the way out.
func (l *layers) leave(number int, request *http1.Request, response *http1.Response) {
	if request.Header("X-Trace") != "" {
		if number == layerCount-1 {
			l.trace += "-"
		}
		l.trace += strconv.Itoa(number)
	}
	if number == 0 && l.trace != "" {
		response.ETag = strconv.Quote(l.trace)
		l.trace = ""
	}
}

// layers is what stands between a loop and the app. It belongs to the loop.
type layers struct {
	app   serve.Handler
	seen  [layerCount]atomic.Int64
	trace string
	asks  [layerCount]chan ask // to the goroutine of each layer
}

// ask is what a layer's goroutine is asked to do.
type ask struct {
	request  *http1.Request
	response *http1.Response
	out      bool
	answered chan bool
}

func newLayers(app serve.Handler) *layers {
	l := &layers{app: app}
	for number := range l.asks {
		l.asks[number] = make(chan ask)
		go func() {
			for a := range l.asks[number] {
				if a.out {
					l.leave(number, a.request, a.response)
					a.answered <- false
				} else {
					a.answered <- l.enter(number, a.request, a.response)
				}
			}
		}()
	}
	return l
}

// Serve implements serve.Handler: through all layers to the app, and back.
func (l *layers) Serve(request *http1.Request, response *http1.Response) {
	l.through(0, request, response)
}

func (l *layers) through(number int, request *http1.Request, response *http1.Response) {
	if number == layerCount {
		l.app.Serve(request, response)
		return
	}
	// The layer may have to wait for something, so it has a goroutine of its own.
	answered := answers.Get().(chan bool)
	l.asks[number] <- ask{request, response, false, answered}
	stopped := <-answered
	if !stopped {
		l.through(number+1, request, response)
		l.asks[number] <- ask{request, response, true, answered}
		<-answered
	}
	answers.Put(answered)
}

// answers has channels to be used again.
var answers = sync.Pool{New: func() any { return make(chan bool, 1) }}
