package serve

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// admin is the listener for profiles and counters, apart from the server that it tells of. It is
// net/http's: nothing is on the way of a request here, and what it costs is there only when it is asked.
// Clients that are slow, silent or many cost a bounded amount: see adminLimits.
type admin struct {
	stage    string
	host     string // of -admin
	limits   adminLimits
	listener net.Listener
	server   *http.Server
	running  sync.WaitGroup // the listener's goroutine, and one for each connection
	loops    func() []*netpoll.Published
}

// listenAdmin listens on address, as parse leaves it: it has a host. An IPv4 host, 0.0.0.0 too, means
// IPv4 alone, as it does for -addr; [::] means both.
func listenAdmin(stage, address string) (*admin, error) {
	host, _, _ := net.SplitHostPort(address)
	network := "tcp"
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		network = "tcp4" // package net takes 0.0.0.0 for every address of both families
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on -admin %s: %w", address, plain(err))
	}
	return &admin{stage: stage, host: host, limits: defaultAdminLimits, listener: listener}, nil
}

// plain is what went wrong, without the operation and address that net wraps around it.
func plain(err error) error {
	if op, ok := err.(*net.OpError); ok {
		return op.Err
	}
	return err
}

func (a *admin) addr() string { return a.listener.Addr().String() }

// serve begins to answer, with the counters that loops gives at that time.
func (a *admin) serve(loops func() []*netpoll.Published) {
	a.loops = loops
	profiles := http.NewServeMux()
	profiles.HandleFunc("GET /debug/pprof/", pprof.Index)
	profiles.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	profiles.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	profiles.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	profiles.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	profiles.HandleFunc("GET /debug/pprof/trace", a.trace)
	mux := http.NewServeMux()
	mux.Handle("/debug/pprof/", refuseOtherSites(profiles))
	mux.HandleFunc("GET /debug/counters", a.counters)
	mux.HandleFunc("GET /metrics", a.metrics)
	mux.HandleFunc("GET /{$}", a.index)
	a.server = a.newServer(a.refuseOtherHosts(mux))
	a.running.Go(func() { a.server.Serve(&adminListener{Listener: a.listener, limits: a.limits}) })
}

// close ends every connection, and returns when no goroutine of the listener is left.
func (a *admin) close() {
	a.listener.Close()
	if a.server != nil {
		a.server.Close()
	}
	a.running.Wait()
}

// counters answers with
//
//	{"stage":"…","loops":[{"requests":…},…],"total":{"requests":…},"runtime":{"heap_objects_allocated":…}}
//
// The names are those of netpoll.Counters. A gauge of one loop may be below zero, where another loop
// gave back what it took; the total is right.
func (a *admin) counters(w http.ResponseWriter, _ *http.Request) {
	var total netpoll.Counters
	b := append([]byte(`{"stage":`), strconv.Quote(a.stage)...)
	b = append(b, `,"loops":[`...)
	for i, loop := range a.loops() {
		c := loop.Load()
		total.Add(c)
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCounters(b, &c)
	}
	b = append(b, `],"total":`...)
	b = appendCounters(b, &total)
	b = append(b, `,"runtime":{`...)
	for i, f := range readRuntime() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, f.name), ':')
		b = strconv.AppendUint(b, f.value, 10)
	}
	b = append(b, "}}\n"...)
	w.Header().Set("Content-Type", "application/json")
	w.Write(b)
}

func appendCounters(b []byte, c *netpoll.Counters) []byte {
	separator := byte('{')
	c.Each(func(name string, value uint64) {
		b = append(b, separator)
		b = append(strconv.AppendQuote(b, name), ':')
		b = appendValue(b, name, value)
		separator = ','
	})
	return append(b, '}')
}

// appendValue appends a counter's value, a gauge's with its sign.
func appendValue(b []byte, name string, value uint64) []byte {
	if netpoll.IsGauge(name) {
		return strconv.AppendInt(b, int64(value), 10)
	}
	return strconv.AppendUint(b, value, 10)
}

// metrics answers in the text format of Prometheus (version 0.0.4).
func (a *admin) metrics(w http.ResponseWriter, _ *http.Request) {
	var names []string
	values := make(map[string][]uint64) // by name, one for each loop
	for i, loop := range a.loops() {
		c := loop.Load()
		c.Each(func(name string, value uint64) {
			if i == 0 {
				names = append(names, name)
			}
			values[name] = append(values[name], value)
		})
	}
	var b []byte
	for _, name := range names {
		full := family(&b, name, netpoll.IsGauge(name), netpoll.CounterHelp(name)+", of each loop")
		for i, value := range values[name] {
			b = fmt.Appendf(b, "%s{stage=%q,loop=\"%d\"} ", full, a.stage, i)
			b = append(appendValue(b, name, value), '\n')
		}
	}
	for _, f := range readRuntime() {
		if f.name == cpuTime {
			// Prometheus counts time in seconds.
			full := family(&b, "cpu_seconds", f.gauge, "seconds"+strings.TrimPrefix(f.help, "nanoseconds"))
			b = fmt.Appendf(b, "%s{stage=%q} %.9f\n", full, a.stage, float64(f.value)/1e9)
			continue
		}
		full := family(&b, f.name, f.gauge, f.help)
		b = fmt.Appendf(b, "%s{stage=%q} %d\n", full, a.stage, f.value)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(b)
}

// family appends a metric's two comment lines and returns its full name.
func family(b *[]byte, name string, gauge bool, help string) string {
	full, kind := "qps_ladder_"+name, "gauge"
	if !gauge {
		full, kind = full+"_total", "counter"
	}
	*b = fmt.Appendf(*b, "# HELP %s %s\n# TYPE %s %s\n", full, help, full, kind)
	return full
}

// figure is one figure of the process as a whole.
type figure struct {
	name  string
	value uint64
	gauge bool
	help  string
}

// cpuTime is the figure that /metrics gives in another unit than /debug/counters.
const cpuTime = "cpu_ns"

// readRuntime reads the figures of the Go runtime and the process. It stops the world for some
// microseconds: package runtime/metrics would not, but leaves out what each thread has cached, so that
// ten objects may count as none.
func readRuntime() []figure {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return []figure{
		{"heap_objects_allocated", m.Mallocs, false, "heap objects allocated since the start"},
		{"heap_bytes_allocated", m.TotalAlloc, false, "heap bytes allocated since the start"},
		{"gc_cycles", uint64(m.NumGC), false, "garbage collections since the start"},
		{"goroutines", uint64(runtime.NumGoroutine()), true, "goroutines now"},
		{"heap_bytes", m.HeapAlloc, true, "heap bytes in use, garbage not yet collected included"},
		{cpuTime, uint64(netpoll.ProcessCPUNanoseconds()), false, "nanoseconds of CPU time, user and system, of all threads since the start"},
	}
}
