package profile

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Allocs lists the heap allocations per request of stages, by site, from a heap profile that misses
// none. Several are put side by side; when no workload was asked for, every one follows that the
// ladder promises to serve without an allocation from stage3 on. No stages means all.
func Allocs(ctx context.Context, o Options, stages []string) (*AllocTable, error) {
	l, servers, w, err := o.prepare(ctx, stages)
	if err != nil {
		return nil, err
	}
	length := cmp.Or(o.Duration, allocLength)
	var views []*allocView
	for _, server := range servers {
		o.step("recording %s on %s", server.Name, w.Name)
		v, err := l.allocations(ctx, server, w, length)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	o.step("")
	if len(views) == 1 {
		views[0].text(o.Out)
		return newAllocTable(views), nil
	}
	allocTable(o.Out, views)
	if o.Workload == "" {
		more, err := l.allocMatrix(ctx, o, servers, views)
		if err != nil {
			return nil, err
		}
		views = append(views, more...)
	}
	return newAllocTable(views), nil
}

// AllocTable is what stages allocate, as `ladder allocs` writes it as JSON.
type AllocTable struct {
	header
	Runs []AllocRun `json:"runs"`
}

// AllocRun is what one server allocated for a request of one workload.
type AllocRun struct {
	Server   string      `json:"server"`
	Workload string      `json:"workload"`
	Requests int64       `json:"requests"`
	Objects  float64     `json:"objects_per_request"`
	Bytes    float64     `json:"bytes_per_request"`
	Sites    []AllocSite `json:"sites"` // those with the most objects first
}

// AllocSite is one place that asks for memory.
type AllocSite struct {
	Where   string  `json:"where"`         // the function: not the runtime
	Whom    string  `json:"for,omitempty"` // the nearest function of the project, when that is another one
	Objects float64 `json:"objects_per_request"`
	Bytes   float64 `json:"bytes_per_request"`
}

func newAllocTable(views []*allocView) *AllocTable {
	t := &AllocTable{header: newHeader("allocs")}
	for _, v := range views {
		run := AllocRun{Server: v.server, Workload: v.workload, Requests: v.outcome.requests, Objects: v.all.objects, Bytes: v.all.bytes, Sites: []AllocSite{}}
		for _, where := range sorted(v) {
			a := v.sites[where]
			run.Sites = append(run.Sites, AllocSite{where.where, where.whom, a.objects, a.bytes})
		}
		t.Runs = append(t.Runs, run)
	}
	return t
}

const allocLength = 500 * time.Millisecond

// frugal are the workloads that need no allocation from stage3 on: the request
// fits the read buffer, and the answer fits the stage's own or is sent as it is.
var frugal = []string{workload.Hello, "pipelined", "json", "params", "echo", "browser"}

// A site is where objects are allocated.
type site struct {
	where string // the function that asks for memory: not the runtime
	whom  string // the nearest function of the project, when that is another one
}

type amount struct{ objects, bytes float64 } // per request

// allocView is what one server allocated.
type allocView struct {
	server   string
	workload string
	outcome  outcome
	sites    map[site]amount
	all      amount
}

// allocations drives a server and compares its heap profile before and after.
func (l *lab) allocations(ctx context.Context, server run.Server, w workload.Workload, length time.Duration) (v *allocView, err error) {
	server.Env = []string{"GODEBUG=" + strings.TrimPrefix(os.Getenv("GODEBUG")+",memprofilerate=1", ",")}
	recorder := &heapRecorder{}
	o, err := l.drive(ctx, server, w, length, recorder)
	if err != nil {
		return nil, err
	}
	v = &allocView{server: server.Name, workload: w.Name, outcome: o}
	v.sites, v.all, err = sitesOf(recorder.before, recorder.after, float64(o.requests))
	return v, err
}

// heapRecorder takes the heap profile at both ends.
type heapRecorder struct {
	server        *session
	before, after *profile.Profile
}

func (r *heapRecorder) start(ctx context.Context, s *session) (err error) {
	r.server = s
	r.before, err = heapOf(ctx, s)
	return err
}

func (r *heapRecorder) finish(ctx context.Context) (err error) {
	r.after, err = heapOf(ctx, r.server)
	return err
}

func (r *heapRecorder) abandon() {}

// sitesOf is what was allocated between two heap profiles, for each request. What
// the admin listener and the profiler need for themselves is left out.
func sitesOf(before, after *profile.Profile, requests float64) (map[site]amount, amount, error) {
	objects, bytes := -1, -1
	for i, t := range after.SampleType {
		switch t.Type {
		case "alloc_objects":
			objects = i
		case "alloc_space":
			bytes = i
		}
	}
	if objects < 0 || bytes < 0 {
		return nil, amount{}, fmt.Errorf("the heap profile has no counts of allocations")
	}
	sites := map[site]amount{}
	add := func(p *profile.Profile, sign float64) {
		for _, s := range p.Sample {
			f := frames(s)
			if isAdmin(f) {
				continue
			}
			where := siteOf(f)
			a := sites[where]
			a.objects += sign * float64(s.Value[objects]) / requests
			a.bytes += sign * float64(s.Value[bytes]) / requests
			sites[where] = a
		}
	}
	add(before, -1)
	add(after, 1)
	var all amount
	for where, a := range sites {
		// A handful of objects over the whole run is not the price of a request.
		const few = 20
		if a.objects*requests < few {
			delete(sites, where)
			continue
		}
		all.objects += a.objects
		all.bytes += a.bytes
	}
	return sites, all, nil
}

func siteOf(frames []frame) (s site) {
	for _, f := range frames {
		if s.where == "" && f.kind != runtimeCode && f.kind != kernelCode {
			s.where = f.name
		}
		if f.kind == projectCode {
			if f.name != s.where {
				s.whom = f.name
			}
			return s
		}
	}
	if s.where == "" {
		s.where = frames[0].name
	}
	return s
}

// String leaves away the folders and the marks of receivers, so that a table of
// six stages has room for it.
func (s site) String() string {
	where := plainName(s.where)
	if s.whom == "" {
		return where
	}
	return where + " for " + plainName(s.whom)
}

// plainName is "textproto.Reader.ReadLine" for "net/textproto.(*Reader).ReadLine".
func plainName(name string) string {
	name = strings.TrimPrefix(name[strings.LastIndexByte(name, '/')+1:], "main.")
	return strings.NewReplacer("(*", "", ")", "").Replace(name)
}

// sorted are the sites of several views, those with the most objects first.
func sorted(views ...*allocView) []site {
	most := map[site]float64{}
	for _, v := range views {
		for where, a := range v.sites {
			most[where] = max(most[where], a.objects)
		}
	}
	return slices.SortedFunc(maps.Keys(most), func(a, b site) int {
		return cmp.Or(cmp.Compare(most[b], most[a]), strings.Compare(a.String(), b.String()))
	})
}

func (v *allocView) text(out io.Writer) {
	fmt.Fprintf(out, "Heap allocations of %s on %s, per request; %s requests\n\n", harness.ShortName(v.server), v.workload, console.Thousands(v.outcome.requests))
	if len(v.sites) == 0 {
		fmt.Fprintln(out, "None.")
		return
	}
	fmt.Fprintf(out, "%8s %8s  %s\n", "objects", "bytes", "where")
	for _, where := range sorted(v) {
		a := v.sites[where]
		fmt.Fprintf(out, "%8.3f %8.1f  %s\n", a.objects, a.bytes, where)
	}
	fmt.Fprintf(out, "%8.3f %8.1f  all\n", v.all.objects, v.all.bytes)
}

// allocTable shows several servers side by side, objects only.
func allocTable(out io.Writer, views []*allocView) {
	fmt.Fprintf(out, "Heap objects per request on %s, by site\n\n", views[0].workload)
	allocRow(out, "", views, func(v *allocView) string { return harness.ShortName(v.server) })
	for _, where := range sorted(views...) {
		allocRow(out, where.String(), views, func(v *allocView) string { return count(v.sites[where].objects) })
	}
	allocRow(out, "objects in all", views, (*allocView).objects)
	allocRow(out, "bytes in all", views, func(v *allocView) string { return count(v.all.bytes) })
	fmt.Fprintln(out)
}

func (v *allocView) objects() string { return count(v.all.objects) }

// allocRow is a figure of each server, and behind them what it is: names are long.
func allocRow(out io.Writer, name string, views []*allocView, value func(*allocView) string) {
	figures := ""
	for _, v := range views {
		figures += fmt.Sprintf("%6s ", value(v))
	}
	say(out, figures+" ", strings.Repeat(" ", 7*len(views)+3), name)
}

// allocMatrix shows the sums for every workload that ought to need none, and returns what it
// measured for that: what views already has is not measured again.
func (l *lab) allocMatrix(ctx context.Context, o Options, servers []run.Server, views []*allocView) (measured []*allocView, err error) {
	const each = 100 * time.Millisecond // counts do not get better with time
	rows := map[string][]*allocView{views[0].workload: views}
	for _, name := range frugal {
		if rows[name] != nil {
			continue
		}
		w, err := workload.ByName(name)
		if err != nil {
			return nil, err
		}
		for _, server := range servers {
			o.step("recording %s on %s", server.Name, name)
			v, err := l.allocations(ctx, server, w, each)
			if err != nil {
				return nil, err
			}
			rows[name] = append(rows[name], v)
			measured = append(measured, v)
		}
	}
	o.step("")
	fmt.Fprintf(o.Out, "Heap objects per request, by workload\n\n")
	allocRow(o.Out, "", views, func(v *allocView) string { return harness.ShortName(v.server) })
	for _, name := range frugal {
		allocRow(o.Out, name, rows[name], (*allocView).objects)
	}
	return measured, nil
}
