package site

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/profile"
	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// eventsName is what an event costs a server that has subscribers: exercise 22, its start and its
// reference.
const eventsName = "events"

// eventBytes is the data of an event.
const eventBytes = 1000

// eventLoads are numbers of subscribers, and how many events a round has.
var eventLoads = []struct {
	name                string
	subscribers, events int
}{{"1 subscriber", 1, 1500}, {"1,000 subscribers", 1000, 30}}

// eventVariants are the start and the reference of exercise 22.
func eventVariants() []harness.Variant {
	const exercise = "docs/workshop/exercises/22-server-sent-events/"
	start := harness.Change{Folder: exercise + "_start", Patch: exercise + "start.patch"}
	reference := harness.Change{Folder: exercise + "_reference"}
	return []harness.Variant{
		{Name: "start", Stage: "stage5", Then: []harness.Change{start}},
		{Name: "reference", Stage: "stage5", Then: []harness.Change{start, reference}},
	}
}

// events measures both, the start twice for the noise floor, in rounds.
func (r *refreshing) events() error {
	place, err := run.Locate("")
	if err != nil {
		return err
	}
	rounds := 12
	if r.Quick {
		rounds = 2
	}
	if r.Rounds > 0 {
		rounds = r.Rounds
	}
	d := &results.Document{
		Schema: results.Schema, Version: results.Version, Created: time.Now().UTC().Truncate(time.Second), Ended: results.Complete,
		Command: "ladder docs refresh --only " + eventsName, Machine: run.Machine(),
		Method: results.Method{
			Layout: place.Layout, ServerCPUs: place.Server, LoadCPUs: place.Load, Workers: 1, LoadThreads: 1, Generator: run.Embedded,
			Rounds: rounds, Revision: run.Revision(r.root), UserSystem: results.Ticks,
		},
	}
	var servers []run.Server
	for _, v := range eventVariants() {
		s, err := run.BuildVariant(r.ctx, r.root, r.work, v)
		if err != nil {
			return err
		}
		servers = append(servers, s)
	}
	start, reference, again := servers[0], servers[1], servers[0]
	again.Name += run.Again
	servers = append(servers, again)
	for _, s := range servers {
		d.Servers = append(d.Servers, results.Server{Name: s.Name, Counters: true})
	}
	for _, l := range eventLoads {
		d.Workloads = append(d.Workloads, results.Workload{
			Name: l.name, Summary: "events of 1,000 bytes, each behind the one before", Connections: l.subscribers, Pipeline: 1, BodyBytes: eventBytes,
		})
		for _, metric := range []results.Metric{results.RequestsPerSecond, results.ServerCPU} {
			d.Ratios = append(d.Ratios,
				results.Ratio{Kind: results.Noise, Workload: l.name, Metric: metric, Head: again.Name, Base: start.Name},
				results.Ratio{Kind: results.Pair, Workload: l.name, Metric: metric, Head: reference.Name, Base: start.Name})
		}
	}
	began := time.Now()
	for round := 1; round <= rounds; round++ {
		for _, l := range eventLoads {
			events := l.events
			if r.Quick {
				events = max(10, events/10)
			}
			for order, i := range rand.Perm(len(servers)) {
				fmt.Fprintf(os.Stderr, "\rround %d of %d: %s, %s          ", round, rounds, servers[i].Name, l.name)
				m, err := publishTo(r.ctx, servers[i], place.Server, l.subscribers, events)
				if err != nil {
					return fmt.Errorf("%s with %s: %w", servers[i].Name, l.name, err)
				}
				m.Round, m.Order, m.Workload = round, order+1, l.name
				d.Method.Seconds += m.Seconds / float64(rounds*len(eventLoads)*len(servers)) // on average
				d.Measurements = append(d.Measurements, m)
			}
		}
	}
	fmt.Fprintln(os.Stderr)
	d.Method.Took = time.Since(began).Seconds()
	d.Build("")
	return writeWhole(d, r.data(eventsName+".json"))
}

// publishTo publishes events to subscribers, each when all have had the one before. A request, in
// the measurement, is an event that a subscriber gets; its counters are per event, less the answer
// to who publishes it.
func publishTo(ctx context.Context, server run.Server, cpus []int, subscribers, events int) (m results.Measurement, err error) {
	s, err := run.Start(ctx, server, cpus, 1)
	if err != nil {
		return m, err
	}
	defer s.Close()
	var left atomic.Int64
	all := make(chan struct{}, 1)
	for range subscribers {
		c, err := harness.Dial(s.Ready.Address)
		if err != nil {
			return m, err
		}
		defer c.Close()
		if err := c.Send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			return m, err
		}
		head, err := http.ReadResponse(c.Reader, nil)
		if err != nil {
			return m, err
		}
		go func() {
			for body := bufio.NewReader(head.Body); ; {
				line, err := body.ReadSlice('\n')
				if err != nil {
					return
				}
				if bytes.HasPrefix(line, []byte("data: ")) && left.Add(-1) == 0 {
					all <- struct{}{}
				}
			}
		}()
	}
	publisher, err := harness.Dial(s.Ready.Address)
	if err != nil {
		return m, err
	}
	defer publisher.Close()
	request := fmt.Sprintf("POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", eventBytes, strings.Repeat("e", eventBytes))
	publish := func(n int) error {
		for range n {
			left.Store(int64(subscribers))
			if _, err := publisher.Do(request); err != nil {
				return err
			}
			select {
			case <-all:
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(harness.Patience):
				return errors.New("an event does not come")
			}
		}
		return nil
	}
	if err := publish(max(3, events/10)); err != nil {
		return m, err
	}
	before, err := s.Settle(ctx)
	if err != nil {
		return m, err
	}
	began := time.Now()
	if err := publish(events); err != nil {
		return m, err
	}
	took := time.Since(began).Seconds()
	after, err := s.Settle(ctx)
	if err != nil {
		return m, err
	}
	counts := after.Sub(before).Counts()
	delivered := float64(events * subscribers)
	m = results.Measurement{
		Server: server.Name, Requests: uint64(delivered), RequestsPerSecond: delivered / took, Seconds: took, Established: subscribers,
		ServerCPUNanos: float64(counts["cpu_ns"]) / delivered, Counters: map[string]float64{},
	}
	for name, n := range counts {
		m.Counters[name] = float64(n) / float64(events)
	}
	m.Counters["writes"]--
	return m, s.Stop()
}

// eventsTable is what an event costs the start and the reference of exercise 22.
func (b *builder) eventsTable() (string, error) {
	d, missing, err := b.whole(eventsName)
	if d == nil {
		return missing, err
	}
	g := newGrid("numbers", "an event of 1,000 bytes", "writes", "bytes copied", "server CPU per subscriber", "to the start")
	for _, w := range d.Workloads {
		for _, s := range d.Servers {
			row, ok := d.Row(s.Name, w.Name)
			if !ok || d.IsTwin(s.Name) {
				continue
			}
			ratio := ""
			for _, x := range d.Ratios {
				if x.Kind == results.Pair && x.Workload == w.Name && x.Head == s.Name && x.Metric == results.ServerCPU {
					ratio = spoken(x)
				}
			}
			g.row(html.EscapeString(w.Name+", "+s.Name), console.Thousands(row.Counters["writes"]), console.Thousands(row.Counters["body_bytes_copied"]),
				microseconds(row.ServerCPUMicros.Median), ratio)
		}
	}
	return g.String() + madeBy(d), nil
}

// pinName is how often the scheduler moves a server's threads, with -pin and without.
const pinName = "pin"

// pin lets all CPUs be shared: where each side has one of its own, nothing can be moved.
func (r *refreshing) pin() error {
	if _, err := exec.LookPath("perf"); err != nil {
		fmt.Fprintf(r.Out, "%s is left out: perf is not installed\n", pinName)
		return nil
	}
	seconds := "10s"
	if r.Quick {
		seconds = "1s"
	}
	out := filepath.Join(r.work, pinName+".json")
	if err := r.start(r.Out, "stat", "5", "--pin", "--layout", results.Shared, "--duration", seconds, "--json", out); err != nil {
		return err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	return os.WriteFile(r.data(pinName+".json"), text, 0o644)
}

// pinTable is what came of it.
func (b *builder) pinTable() (string, error) {
	text, err := os.ReadFile(filepath.Join(b.root, "docs", "data", pinName+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return `<p class="measured">Not measured yet: <code>` + asTyped("ladder docs refresh --only "+pinName) + `</code></p>`, nil
	}
	if err != nil {
		return "", err
	}
	var t profile.StatTable
	if err := json.Unmarshal(text, &t); err != nil {
		return "", err
	}
	g := newGrid("numbers", html.EscapeString(t.Workload), "requests counted", "threads moved to another CPU", "context switches per 1,000 requests")
	for _, s := range t.Servers {
		g.row(html.EscapeString(shortStage(s.Server)), console.Thousands(float64(s.Requests)), console.Thousands(s.Total(profile.Migrations)),
			fmt.Sprintf("%.1f", 1000*s.PerRequest["context-switches"]))
	}
	return g.String() + fmt.Sprintf(`<p class="measured">Counted on %s by <code>make stat STAGE=5 ARGS="--pin --layout shared"</code>, with %d loops on %d CPUs, which the load generator shares.</p>`,
		t.Created.Format("2 January 2006"), t.Workers, t.CPUs), nil
}
