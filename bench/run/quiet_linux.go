package run

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

const (
	// unquiet is the share of the CPUs' time from which others are worth a warning beforehand.
	unquiet = 0.10
	// lookAround is how long is looked at who uses the CPUs before a run.
	lookAround = 300 * time.Millisecond
)

// lookBefore says in lines for people what will disturb a run that is about to
// begin, and what to do about it. It takes lookAround.
func lookBefore(ctx context.Context, cpus []int) (lines []string) {
	before, err := readCPUs(cpus)
	if err == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookAround):
		}
		after, readErr := readCPUs(cpus)
		if readErr == nil {
			lines = append(lines, busyLine(after.less(before), loadAverage())...)
		}
	}
	return append(lines, clockLines(governor(cpus), onBattery(powerFolder))...)
}

// busyLine warns of CPUs that others use. A high load average alone does not: it
// is of the last minute, in which somebody may have built and measured.
func busyLine(used cpuTicks, load float64) []string {
	total := used.busy + used.idle + used.steal
	if total == 0 || float64(used.busy+used.steal)/float64(total) < unquiet {
		return nil
	}
	return []string{fmt.Sprintf("Not quiet: before the first measurement other processes kept the CPUs %.0f%% busy (load average %.1f). Expect wide intervals; end those processes, or measure when they are done.",
		100*float64(used.busy+used.steal)/float64(total), load)}
}

// clockLines warn of CPUs whose frequency may change from one measurement to the next.
func clockLines(governor string, battery bool) (lines []string) {
	if battery {
		lines = append(lines, "On battery: the CPUs may be throttled at any time. Connect the mains supply.")
	}
	if governor != "" && governor != "performance" {
		lines = append(lines, fmt.Sprintf("The CPUs' frequency governor is %q: the clock may differ between measurements. \"cpupower frequency-set -g performance\" as root fixes it.", governor))
	}
	return lines
}

// presence makes a run of the bench visible to others on this machine.
type presence struct {
	listener net.Listener
	met      atomic.Bool
}

// slots is how many runs at a time can see each other.
const slots = 8

// bePresent tells other runs of this one, and finds out whether there are any.
// What it holds goes away with the process, however that ends: names that begin
// with @ are not in the file system, see unix(7).
func bePresent(name string) *presence {
	p := &presence{}
	for i := range slots {
		address := fmt.Sprintf("@%s-%d", name, i)
		if c, err := net.DialTimeout("unix", address, time.Second); err == nil {
			p.met.Store(true) // the other learns of this one by being dialled
			c.Close()
			continue
		}
		if p.listener == nil {
			p.listener, _ = net.Listen("unix", address) // taken just now by another: it dials this one, or its successor
		}
	}
	if p.listener != nil {
		go func() {
			for {
				c, err := p.listener.Accept()
				if err != nil {
					return
				}
				p.met.Store(true)
				c.Close()
			}
		}()
	}
	return p
}

func (p *presence) leave() {
	if p.listener != nil {
		p.listener.Close()
	}
}

// Company is what a run says that was not alone.
const Company = "Not alone: another run of the bench was going on on this machine at the same time, and each disturbs the other. Measure one after the other."

// Begin looks at what will disturb the run, adds it to b.Remarks, and makes the
// run visible to others until end is called. Call it between Prepare and Run.
func (b *Bench) Begin(ctx context.Context) (end func()) {
	b.presence = bePresent("qps-ladder-bench")
	cpus, err := netpoll.CPUs()
	if err == nil {
		b.Remarks = append(b.Remarks, lookBefore(ctx, cpus)...)
	}
	if b.presence.met.Load() {
		b.Remarks = append(b.Remarks, Company)
	}
	return b.presence.leave
}

// remarkCompany adds what Begin could not know yet.
func (b *Bench) remarkCompany() {
	if b.presence == nil || !b.presence.met.Load() {
		return
	}
	for _, line := range b.Remarks {
		if line == Company {
			return
		}
	}
	b.Remarks = append(b.Remarks, Company)
}
