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
func Allocs(ctx context.Context, o Options, stages []string) error {
	l, servers, w, err := o.prepare(ctx, stages)
	if err != nil {
		return err
	}
	length := cmp.Or(o.Duration, allocLength)
	var views []*allocView
	for _, server := range servers {
		o.Tell("recording %s on %s", server.Name, w.Name)
		v, err := l.allocations(ctx, server, w, length)
		if err != nil {
			return err
		}
		views = append(views, v)
	}
	if len(views) == 1 {
		views[0].text(o.Out)
		return nil
	}
	allocTable(o.Out, views)
	if o.Workload != "" {
		return nil
	}
	return l.allocMatrix(ctx, o, servers, views)
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
	row := func(name string, value func(*allocView) string) {
		figures := ""
		for _, v := range views {
			figures += fmt.Sprintf("%6s ", value(v))
		}
		say(out, figures+" ", strings.Repeat(" ", 7*len(views)+3), name)
	}
	row("", func(v *allocView) string { return harness.ShortName(v.server) })
	for _, where := range sorted(views...) {
		row(where.String(), func(v *allocView) string { return count(v.sites[where].objects) })
	}
	row("objects in all", func(v *allocView) string { return count(v.all.objects) })
	row("bytes in all", func(v *allocView) string { return count(v.all.bytes) })
	fmt.Fprintln(out)
}

// allocMatrix shows the sums for every workload that ought to need none. What
// views already has is not measured again.
func (l *lab) allocMatrix(ctx context.Context, o Options, servers []run.Server, views []*allocView) error {
	out, tell := o.Out, o.Tell
	const each = 100 * time.Millisecond // counts do not get better with time
	sums := map[string][]amount{}
	for _, name := range frugal {
		w, err := workload.ByName(name)
		if err != nil {
			return err
		}
		for i, server := range servers {
			if name == views[i].workload {
				sums[name] = append(sums[name], views[i].all)
				continue
			}
			tell("recording %s on %s", server.Name, name)
			v, err := l.allocations(ctx, server, w, each)
			if err != nil {
				return err
			}
			sums[name] = append(sums[name], v.all)
		}
	}
	fmt.Fprintf(out, "Heap objects per request, by workload\n\n")
	head := ""
	for _, server := range servers {
		head += fmt.Sprintf("%6s ", harness.ShortName(server.Name))
	}
	say(out, head, "", "")
	for _, name := range frugal {
		figures := ""
		for _, a := range sums[name] {
			figures += fmt.Sprintf("%6s ", count(a.objects))
		}
		say(out, figures+" ", "", name)
	}
	return nil
}
