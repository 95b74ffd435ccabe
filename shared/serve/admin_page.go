package serve

import (
	_ "embed"
	"fmt"
	"html"
	"net/http"
	"strings"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

//go:embed admin.html
var adminPage string

// index is for people: a page for a browser, which says that it takes HTML, and some lines for all else.
func (a *admin) index(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "%s\n\n/debug/counters  what each loop has done, as JSON\n/metrics         the same, for Prometheus\n/debug/pprof/    profiles\n", a.stage)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; frame-ancestors 'none'")
	fmt.Fprint(w, a.page())
}

// page has what the counters are at this moment; its script asks for them again each second.
func (a *admin) page() string {
	loops := a.loops()
	read := make([]netpoll.Counters, len(loops))
	var total netpoll.Counters
	var heads, calls, rows strings.Builder
	for i, loop := range loops {
		read[i] = loop.Load()
		total.Add(read[i])
		fmt.Fprintf(&heads, `<th scope="col">loop %d</th>`, i)
	}
	total.Each(func(name string, value uint64) {
		help := html.EscapeString(netpoll.CounterHelp(name))
		if isSystemCall(name) {
			fmt.Fprintf(&calls, `<tr data-call="%s"><th scope="row">%s</th><td>–</td><td>–</td><td class="bar"><i></i></td></tr>`+"\n", name, help)
		}
		level, now := "", ""
		if netpoll.IsGauge(name) {
			level, now = " data-level", " <em>now</em>"
		}
		fmt.Fprintf(&rows, `<tr data-counter="%s"%s><th scope="row"><code>%s</code>%s<small>%s</small></th><td>–</td><td>–</td>`, name, level, name, now, help)
		fmt.Fprint(&rows, strings.Repeat("<td>–</td>", len(read)))
		fmt.Fprintf(&rows, "<td>%s</td></tr>\n", appendValue(nil, name, value))
	})
	return strings.NewReplacer("STAGE", html.EscapeString(a.stage), "LOOPS", heads.String(), "CALLS", calls.String(), "COUNTERS", rows.String()).Replace(adminPage)
}

// isSystemCall says whether a counter counts system calls of its own, and not some of another one's.
func isSystemCall(name string) bool {
	switch name {
	case "accepts", "closes", "reads", "writes", "epoll_waits", "epoll_ctls", "eventfd_writes", "enters", "timerfd_creates", "timerfd_settimes", "shutdowns", "ioctls":
		return true
	}
	return false
}
