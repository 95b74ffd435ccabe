package main

import (
	"strconv"
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
	first handler
	seen  [layerCount]atomic.Int64
	trace string
}

type handler func(*http1.Request, *http1.Response)

func newLayers(app serve.Handler) *layers {
	l := &layers{app: app}
	l.first = l.chain(0)
	return l
}

// Serve implements serve.Handler: through all layers to the app, and back.
func (l *layers) Serve(request *http1.Request, response *http1.Response) {
	l.first(request, response)
}

// chain makes a layer and those behind it. None of them has anything to wait
// for, so they run where they are called.
func (l *layers) chain(number int) handler {
	if number == layerCount {
		return l.app.Serve
	}
	next := l.chain(number + 1)
	return func(request *http1.Request, response *http1.Response) {
		if l.enter(number, request, response) {
			return
		}
		next(request, response)
		l.leave(number, request, response)
	}
}
