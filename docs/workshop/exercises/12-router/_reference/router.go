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
	app   serve.Handler
	hits  map[string]int    // by name
	fixed map[string]string // routes without a parameter
	cut   map[ends]string
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

// ends is what stands before and behind a route's parameter.
type ends struct{ before, behind string }

func newRouter(app serve.Handler) *router {
	r := &router{app: app, hits: map[string]int{}, fixed: map[string]string{}, cut: map[ends]string{}}
	for _, pattern := range patterns() {
		before, rest, found := strings.Cut(pattern, "{")
		if !found {
			r.fixed[pattern] = pattern
			continue
		}
		_, behind, _ := strings.Cut(rest, "}")
		r.cut[ends{before, behind}] = pattern
	}
	return r
}

// find looks a path up as it stands, then with its last segment as the
// parameter, then with the one before that.
func (r *router) find(path string) string {
	if name, ok := r.fixed[path]; ok {
		return name
	}
	last := strings.LastIndexByte(path, '/')
	if last+1 < len(path) {
		if name, ok := r.cut[ends{path[:last+1], ""}]; ok {
			return name
		}
	}
	if last <= 0 {
		return ""
	}
	from := strings.LastIndexByte(path[:last], '/') + 1
	if from == last {
		return ""
	}
	return r.cut[ends{path[:from], path[last:]}]
}
