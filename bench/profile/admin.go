package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// admin is what answers as a server's admin listener does, see [harness.Server].
type admin interface {
	Admin(ctx context.Context, path string, takes time.Duration) ([]byte, error)
}

// remoteAdmin is the address of the admin listener of a server that somebody else has started.
type remoteAdmin string

var remoteClient = &http.Client{Transport: &http.Transport{}} // through no proxy

func (address remoteAdmin) Admin(ctx context.Context, path string, takes time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, takes+harness.Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+string(address)+path, nil)
	if err != nil {
		return nil, err
	}
	failed := func(err error) error { return fmt.Errorf("cannot get %s from the admin listener: %w", path, err) }
	answer, err := remoteClient.Do(request)
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

func (address remoteAdmin) counters(ctx context.Context) (harness.Reading, error) {
	body, err := address.Admin(ctx, "/debug/counters", 0)
	if err != nil {
		return harness.Reading{}, err
	}
	return harness.ParseReading(body)
}

// heapOf is what has been allocated so far, by site. It is complete up to the collection that the
// question starts.
func heapOf(ctx context.Context, a admin) (*profile.Profile, error) {
	body, err := a.Admin(ctx, "/debug/pprof/heap?gc=1", 0)
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

// recordCPU starts a CPU profile of whole seconds and returns when the server has really begun.
// While it waits for requests it takes no sample, so that it may well begin early and end late.
func recordCPU(ctx context.Context, a admin, seconds int) (*cpuRecording, error) {
	r := &cpuRecording{ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.body, r.err = a.Admin(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds), time.Duration(seconds)*time.Second)
	}()
	// The profiler has a goroutine of its own, from its first moment on.
	for {
		text, err := a.Admin(ctx, "/debug/pprof/goroutine?debug=1", 0)
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(text), "runtime/pprof.profileWriter") {
			return r, nil
		}
		select {
		case <-r.ended:
			return nil, cmp.Or(r.err, errors.New("the CPU profile ended before it had begun"))
		default:
		}
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
