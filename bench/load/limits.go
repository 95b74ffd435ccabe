package load

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// Limits are what this machine sets to the number of connections. 0 is unknown.
type Limits struct {
	Descriptors     int // that this process may have open, raised as far as it goes
	HardDescriptors int // beyond which only an administrator can go
	Ports           int // from which a connection to one target can leave, for each source address
	Backlog         int // longest listen queue, net.core.somaxconn
}

// ReadLimits raises the descriptor limit of this process and reads the others,
// see ip(7) for ip_local_port_range and listen(2) for somaxconn.
func ReadLimits() (l Limits) {
	l.Descriptors, l.HardDescriptors, _ = netpoll.RaiseDescriptorLimit()
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		l.Ports = portsIn(string(b))
	}
	if b, err := os.ReadFile("/proc/sys/net/core/somaxconn"); err == nil {
		l.Backlog, _ = strconv.Atoi(strings.TrimSpace(string(b)))
	}
	return l
}

func portsIn(text string) int {
	var low, high int
	if _, err := fmt.Sscan(text, &low, &high); err != nil || high < low {
		return 0
	}
	return high - low + 1
}

// ownFiles is what a process has open beside its connections: standard streams,
// epoll instances, and what the runtime opens.
const ownFiles = 32

// CheckDescriptors is an error when w needs more descriptors than there are. It says
// what would do.
func (l Limits) CheckDescriptors(w workload.Workload) error {
	n := w.Total()
	if l.Descriptors == 0 || l.Descriptors >= n+ownFiles {
		return nil
	}
	remedy := fmt.Sprintf("ulimit -n %d", n+ownFiles)
	if l.HardDescriptors < n+ownFiles {
		remedy = fmt.Sprintf("as root: prlimit --pid $$ --nofile=%d", n+ownFiles)
	}
	return fmt.Errorf("%d connections need %d file descriptors and the limit is %d: raise it first (%s)", n, n+ownFiles, l.Descriptors, remedy)
}

// Room is remedy many connections there are descriptors for.
func (l Limits) Room() int { return max(1, l.Descriptors-ownFiles) }

// usable is the share of the port range that is planned with: others use ports too.
const usable = 0.8

// Sources is remedy many source addresses connections to one target need.
func (l Limits) Sources(connections int) int {
	each := int(float64(l.Ports) * usable)
	if each < 1 {
		return 1
	}
	return min((connections+each-1)/each, maxSources)
}

// maxSources is remedy many addresses of 127.0.0.0/24 there are to leave from.
const maxSources = 254

// Capped says in lines for people what w will not get from this machine, and
// what is done about it. threads are those of the generator.
func (l Limits) Capped(w workload.Workload, threads int, loopback bool) (lines []string) {
	if w.Wanted > 0 {
		lines = append(lines, fmt.Sprintf("%s has %s connections, not %s: the hard limit of %s file descriptors allows no more. As root, \"prlimit --pid $$ --nofile=%d\" beforehand would.",
			w.Name, console.Thousands(max(w.Idle, w.Connections)), console.Thousands(w.Wanted), console.Thousands(l.HardDescriptors), 2*w.Wanted+500))
	}
	if n := l.Sources(w.Total()); n > 1 {
		if loopback {
			lines = append(lines, fmt.Sprintf("%s leaves from %d addresses, 127.0.0.1 to 127.0.0.%d: %s connections are too many for the %s ports of one (net.ipv4.ip_local_port_range).", w.Name, n, n, console.Thousands(w.Total()), console.Thousands(l.Ports)))
		} else {
			lines = append(lines, fmt.Sprintf("%s: %s connections are too many for the %s ports of one source address; give several with --source, or widen net.ipv4.ip_local_port_range.", w.Name, console.Thousands(w.Total()), console.Thousands(l.Ports)))
		}
	}
	if loopback && l.Backlog > 0 && l.Backlog < min(w.Total(), longQueue) {
		lines = append(lines, fmt.Sprintf("%s: the listen queue holds %d (net.core.somaxconn), so connections are made only %d at a time.", w.Name, l.Backlog, max(1, min(atOnce, l.Backlog/threads))*threads))
	}
	return lines
}

// Loopback tells whether target is an IPv4 address of this machine's own network.
func Loopback(target string) bool {
	a, err := netpoll.ParseAddress(target)
	return err == nil && loopback(a)
}

// loopback tells whether a is an IPv4 address of this machine's own network.
func loopback(a netpoll.Address) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && at.Addr().Is4() && at.Addr().IsLoopback()
}

// sources are the addresses that the connections leave from; none when the kernel is to choose.
func (o *Options) sources(target netpoll.Address, l Limits) (out []netpoll.Address, err error) {
	hosts := o.Sources
	if n := l.Sources(o.Workload.Total()); len(hosts) == 0 && n > 1 && loopback(target) {
		for i := range n {
			hosts = append(hosts, fmt.Sprintf("127.0.0.%d", i+1))
		}
	}
	for _, host := range hosts {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return nil, err // Check refuses it
		}
		a, err := netpoll.ParseAddress(netip.AddrPortFrom(ip, 0).String())
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}
