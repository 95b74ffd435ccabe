package profile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// admin asks a server's admin listener. One connection serves all questions, so
// that each costs the server as little as can be.
type admin struct {
	address string
	client  *http.Client
}

// askLimit is how long an answer may take beyond the time it was asked to take.
const askLimit = 20 * time.Second

func newAdmin(address string) *admin {
	return &admin{address: address, client: &http.Client{Transport: &http.Transport{}}}
}

func (a *admin) close() { a.client.CloseIdleConnections() }

func (a *admin) get(ctx context.Context, path string, takes time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, takes+askLimit, fmt.Errorf("no answer within %s", takes+askLimit))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.address+path, nil)
	if err != nil {
		return nil, err
	}
	failed := func(err error) error { return fmt.Errorf("cannot get %s from the admin listener: %w", path, err) }
	answer, err := a.client.Do(request)
	if err != nil {
		return nil, failed(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return nil, failed(fmt.Errorf("it was cut short after %d bytes: %w", len(body), err))
	case answer.StatusCode != http.StatusOK:
		return nil, failed(fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(body))))
	}
	return body, nil
}

// counters is one reading of /debug/counters.
type counters struct {
	Stage   string           `json:"stage"`
	Total   map[string]int64 `json:"total"`
	Runtime map[string]int64 `json:"runtime"`
}

func (a *admin) counters(ctx context.Context) (c counters, err error) {
	body, err := a.get(ctx, "/debug/counters", 0)
	if err != nil {
		return c, err
	}
	if err = json.Unmarshal(body, &c); err != nil {
		err = fmt.Errorf("the counters are not understood: %w", err)
	} else if len(c.Total) == 0 {
		err = errors.New("the admin listener gives no counters")
	}
	return c, err
}

// less is what has happened since before; gauges make no sense in it.
func (c counters) less(before counters) counters {
	minus := func(a, b map[string]int64) map[string]int64 {
		out := make(map[string]int64, len(a))
		for name, value := range a {
			out[name] = value - b[name]
		}
		return out
	}
	return counters{Total: minus(c.Total, before.Total), Runtime: minus(c.Runtime, before.Runtime)}
}

// heap is what has been allocated so far, by site. It is complete up to the
// collection that the question starts.
func (a *admin) heap(ctx context.Context) (*profile.Profile, error) {
	body, err := a.get(ctx, "/debug/pprof/heap?gc=1", 0)
	if err != nil {
		return nil, err
	}
	return parseProfile(body)
}

// cpuRecording is a CPU profile under way.
type cpuRecording struct {
	ended chan struct{} // closed when body and err are there
	body  []byte
	err   error
}

// record starts a CPU profile of whole seconds and returns when the server has
// really begun. While it waits for requests it takes no sample, so that it may
// well begin early and end late.
func (a *admin) record(ctx context.Context, seconds int) (*cpuRecording, error) {
	r := &cpuRecording{ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.body, r.err = a.get(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds), time.Duration(seconds)*time.Second)
	}()
	// The profiler has a goroutine of its own, from its first moment on.
	for {
		text, err := a.get(ctx, "/debug/pprof/goroutine?debug=1", 0)
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(text), "runtime/pprof.profileWriter") {
			return r, nil
		}
		if r.over() {
			return nil, cmp.Or(r.err, errors.New("the CPU profile ended before it had begun"))
		}
	}
}

func (r *cpuRecording) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// result awaits the end of the recording.
func (r *cpuRecording) result(ctx context.Context) (*profile.Profile, error) {
	select {
	case <-r.ended:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if r.err != nil {
		return nil, r.err
	}
	return parseProfile(r.body)
}

func parseProfile(b []byte) (*profile.Profile, error) {
	p, err := profile.ParseData(b)
	if err != nil {
		return nil, fmt.Errorf("the profile of %d bytes is damaged or cut short: %w", len(b), err)
	}
	return p, nil
}
