package grade

import (
	"fmt"

	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// load is what a figure is counted with: requests sent in turn over one connection.
type load struct {
	name     string
	requests []request
	pipeline int
}

// request is one of a load, and the body of its answer.
type request struct{ send, body string }

// loads are those that the bench does not have.
var loads = map[string]load{
	// Types of the same length, one after the other.
	"changing types": {requests: []request{
		{echoRequest("text/plain", "changing"), "changing"}, {echoRequest("text/troff", "changing"), "changing"},
		{echoRequest("font/woff2", "changing"), "changing"}, {echoRequest("image/jpeg", "changing"), "changing"},
	}},
	"users": {requests: users(40)},
}

func users(n int) (all []request) {
	for i := range n {
		id := i * 7919 % 10007
		all = append(all, request{fmt.Sprintf("GET /users/%d HTTP/1.1\r\nHost: a\r\n\r\n", id), fmt.Sprintf(`{"id":"%d"}`, id)})
	}
	return all
}

func loadByName(name string) (load, error) {
	if l, ok := loads[name]; ok {
		l.name, l.pipeline = name, 1
		return l, nil
	}
	w, err := workload.ByName(name)
	if err != nil {
		return load{}, err
	}
	return load{name: name, requests: []request{{string(w.Request), string(w.Body)}}, pipeline: w.Pipeline}, nil
}
