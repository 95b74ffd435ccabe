package site

import (
	"fmt"
	"html"
	"math"
	"slices"

	"github.com/qps-ladder/qps-ladder/bench/stats"
)

// priced says which way of the lab price is the price of what a counter counts. Hand-offs have none:
// what they cost is not the call.
var priced = []struct{ counter, way string }{
	{"timerfd_settimes", "timerfd-settime"}, {"epoll_ctls", "epoll-ctl"}, {"epoll_waits", "epoll-wait"}, {"eventfd_writes", "eventfd-write"},
	{"writes", "send"}, {"reads", "recv-nothing"},
}

// predictedTable is what a step should gain on a workload by the system calls that it removes, each
// at its price of the lab, beside what it was measured to gain in server CPU.
func (b *builder) predictedTable(stage, workload string) (string, error) {
	i := slices.Index(b.stages, b.results.server(stage))
	if i < 1 {
		return "", fmt.Errorf("there is no step to %q", stage)
	}
	base := b.results.short(b.stages[i-1])
	d, _, err := b.results.with(workload, stage, base)
	if err != nil {
		return "", err
	}
	before, _ := d.Row(b.results.server(base), workload)
	after, _ := d.Row(b.results.server(stage), workload)
	measured, _, err := b.results.ratio(workload, stage, base, "cpu")
	if err != nil {
		return "", err
	}
	g := newGrid("numbers predicted", "per request on "+html.EscapeString(workload), "fewer", "price", "µs")
	saved := 0.0
	for _, p := range priced {
		fewer := before.Counters[p.counter] - after.Counters[p.counter]
		if math.Abs(fewer) < 0.005 {
			continue
		}
		_, _, w, err := b.labs.way("price.raw." + p.way)
		if err != nil {
			return "", err
		}
		part := fewer * w.Value.Median / 1e3
		saved += part
		g.row(html.EscapeString(p.way), signed(fewer), html.EscapeString(labValue(w.Value.Median, "ns")), signed(part))
	}
	cpu := before.ServerCPUMicros.Median
	if saved == 0 {
		g.row("system calls", "none", "", "0")
	}
	g.row("<strong>predicted</strong>: "+microseconds(cpu)+" of server CPU less that", "", stats.Short(1-saved/cpu)+"×", signed(saved))
	g.row("<strong>measured</strong>", "", spoken(measured), signed(cpu-after.ServerCPUMicros.Median))
	return g.String() + `<p class="measured">Prices of <a href="lab-price.html">lab price</a>, each call alone and warm. What a step brings beyond them is what its calls set off, or no call at all.</p>`, nil
}

// signed writes a difference of which a gain is the normal case.
func signed(v float64) string {
	if v < 0 {
		return fmt.Sprintf("−%.2f", -v)
	}
	return fmt.Sprintf("%.2f", v)
}
