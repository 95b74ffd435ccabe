package main

import (
	"strconv"
	"strings"

	"github.com/qps-ladder/qps-ladder/shared/http1"
	"github.com/qps-ladder/qps-ladder/shared/serve"
)

// A router finds the name of each request's route, for statistics, and passes
// the request on. It belongs to a loop.
type router struct {
	app  serve.Handler
	hits map[string]int // by name
	all  []string
}

// patterns are the routes' names. A part in braces stands for one segment that
// is not empty; a route without one goes before those that have.
func patterns() (all []string) {
	for _, group := range []string{"orders", "items", "carts", "invoices", "customers", "reviews", "stores", "coupons", "returns", "shipments"} {
		at := "/shop/" + group
		all = append(all, at, at+"/count", at+"/{id}", at+"/{id}/history")
	}
	return append(all, "/api/status", "/api/echo", "/users/{id}", "/bytes/{n}", "/middleware/{n}", "/async-middleware/{n}", "/")
}

// Serve implements serve.Handler.
func (r *router) Serve(request *http1.Request, response *http1.Response) {
	name := r.find(request.Path)
	if name != "" {
		r.hits[name]++
	}
	r.app.Serve(request, response)
	if request.Header("X-Route") != "" {
		response.ETag = strconv.Quote(name)
	}
}

func newRouter(app serve.Handler) *router {
	return &router{app: app, hits: map[string]int{}, all: patterns()}
}

// find tries one pattern after the other; "" means that none fits.
func (r *router) find(path string) string {
	for _, pattern := range r.all {
		if fits(pattern, path) {
			return pattern
		}
	}
	return ""
}

// fits compares segment by segment.
func fits(pattern, path string) bool {
	for {
		want, pattern2, moreWanted := strings.Cut(pattern, "/")
		got, path2, more := strings.Cut(path, "/")
		switch {
		case moreWanted != more:
			return false
		case strings.HasPrefix(want, "{"):
			if got == "" {
				return false
			}
		case want != got:
			return false
		}
		if !more {
			return true
		}
		pattern, path = pattern2, path2
	}
}
