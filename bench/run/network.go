package run

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// The networks between generator and server.
const (
	Loopback = "lo"     // both on the loopback of this machine
	Veth     = "veth"   // the server in a network namespace of its own, behind a pair of virtual interfaces
	Bridge   = "bridge" // as a container is published: that pair on a bridge, the address translated on the way
)

// Networks are all of them, from the least to the most between.
var Networks = []string{Loopback, Veth, Bridge}

// networkPrefix begins the names of all namespaces that this command makes, and their number is the
// process that did.
const networkPrefix = "qps-ladder-"

// network is what servers are started in. Its close removes all of it.
type network struct {
	namespace string
	server    string     // the address that servers listen on
	target    string     // the address that clients connect to
	undo      [][]string // commands, the last first
}

// CheckNetwork says why a network cannot be had here, in a line.
func CheckNetwork(kind string) error {
	if kind == Loopback || kind == "" {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("network %s needs root, since it makes a network namespace: run it as root, or use --network %s", kind, Loopback)
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return fmt.Errorf("network %s needs the command ip: install the package iproute2", kind)
	}
	if kind == Bridge {
		if _, _, err := translation("", "", ""); err != nil {
			return err
		}
	}
	return nil
}

// translation are the commands that make and remove the translation of addresses: of what this machine
// sends to one address, as Docker does for a published port.
func translation(table, from, to string) (add [][]string, remove []string, err error) {
	if _, err := exec.LookPath("nft"); err == nil {
		return [][]string{
			{"nft", "add table ip " + table},
			{"nft", "add chain ip " + table + " output { type nat hook output priority -100; }"},
			{"nft", "add rule ip " + table + " output ip daddr " + from + " meta l4proto tcp dnat to " + to},
		}, []string{"nft", "delete table ip " + table}, nil
	}
	if _, err := exec.LookPath("iptables"); err == nil {
		rule := []string{"OUTPUT", "-d", from, "-p", "tcp", "-j", "DNAT", "--to-destination", to}
		return [][]string{append([]string{"iptables", "-t", "nat", "-A"}, rule...)}, append([]string{"iptables", "-t", "nat", "-D"}, rule...), nil
	}
	return nil, nil, fmt.Errorf("network %s translates addresses, with nft or iptables, and neither is here: install the package nftables", Bridge)
}

// command runs one, for its effect.
func command(args []string) error {
	text, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, firstLine(string(text)))
	}
	return nil
}

// openNetwork makes a network. Whoever has opened it has to close it, whatever happens meanwhile.
func openNetwork(kind string) (n *network, err error) {
	if err := CheckNetwork(kind); err != nil {
		return nil, err
	}
	removeLeftovers()
	number := os.Getpid()
	// Addresses for measuring, which are routed nowhere: RFC 2544, appendix C.2.2.
	subnet := fmt.Sprintf("198.18.%d.", number%128*2)
	if kind == Bridge {
		subnet = fmt.Sprintf("198.18.%d.", number%128*2+1)
	}
	short := fmt.Sprintf("ql%d%s", number, kind[:1])
	name, outer, inner, bridge := fmt.Sprintf("%s%d-%s", networkPrefix, number, kind), short+"o", short+"i", short+"b"
	n = &network{namespace: name, server: subnet + "2", target: subnet + "2"}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cannot make network %s: %w", kind, err), n.close())
		}
	}()
	try := func(undo []string, args ...string) {
		if err == nil {
			if err = command(args); err == nil && undo != nil {
				n.undo = append(n.undo, undo)
			}
		}
	}
	inside := func(args ...string) { try(nil, append([]string{"ip", "-n", name}, args...)...) }
	holder := outer // of this machine's address
	try([]string{"ip", "netns", "del", name}, "ip", "netns", "add", name)
	if kind == Bridge {
		holder = bridge
		try([]string{"ip", "link", "del", bridge}, "ip", "link", "add", bridge, "type", "bridge")
	}
	try([]string{"ip", "link", "del", outer}, "ip", "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name)
	if kind == Bridge {
		try(nil, "ip", "link", "set", outer, "master", bridge)
		try(nil, "ip", "link", "set", bridge, "up")
	}
	try(nil, "ip", "link", "set", outer, "up")
	try(nil, "ip", "addr", "add", subnet+"1/24", "dev", holder)
	inside("link", "set", "lo", "up")
	inside("addr", "add", n.server+"/24", "dev", inner)
	inside("link", "set", inner, "up")
	if kind == Bridge && err == nil {
		n.target = subnet + "1"
		add, remove, _ := translation(tableName(number), n.target, n.server)
		for i, args := range add {
			if undo := remove; i == 0 {
				try(undo, args...)
			} else {
				try(nil, args...)
			}
		}
	}
	return n, err
}

func tableName(number int) string { return fmt.Sprintf("qps_ladder_%d", number) }

// close removes what openNetwork has made. A process that is still in the namespace keeps it alive
// without a name; servers have ended by then.
func (n *network) close() (err error) {
	for i := len(n.undo) - 1; i >= 0; i-- {
		err = errors.Join(err, command(n.undo[i]))
	}
	n.undo = nil
	return err
}

// removeLeftovers removes what a run has left that was killed without a chance to do so.
func removeLeftovers() {
	names, _ := filepath.Glob("/run/netns/" + networkPrefix + "*")
	for _, path := range names {
		name := filepath.Base(path)
		text, _, _ := strings.Cut(strings.TrimPrefix(name, networkPrefix), "-")
		number, err := strconv.Atoi(text)
		if err != nil || exists(fmt.Sprintf("/proc/%d", number)) {
			continue
		}
		// With the namespace goes the pair of interfaces. What cannot be removed was removed.
		_ = command([]string{"ip", "netns", "del", name})
		_ = command([]string{"ip", "link", "del", fmt.Sprintf("ql%dbb", number)})
		_ = command([]string{"nft", "delete table ip " + tableName(number)})
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// inside changes how a server is started: in the namespace, listening there. The command ip becomes the
// server, so that the process is the same one.
func (n *network) inside(s Server) Server {
	s.Wrapper = []string{"ip", "netns", "exec", n.namespace}
	s.Args = append(s.Args[:len(s.Args):len(s.Args)], "-addr", n.server+":0")
	if s.Admin {
		s.Args = append(s.Args, "-admin", n.server+":0")
	}
	return s
}

// reach is the address at which clients reach a server that listens at address.
func (n *network) reach(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return net.JoinHostPort(n.target, port)
}

// OverNetworks puts servers into b once for each network, on each workload, with the ratio of each
// network to the loopback, and of each server to the first on the same network.
func (b *Bench) OverNetworks(servers []Server, workloads []workload.Workload) {
	over := func(s Server, kind string) Server {
		s.Name, s.Network = harness.ShortName(s.Name)+" over "+kind, kind
		return s
	}
	for _, w := range workloads {
		item := Item{Workload: w}
		metrics := b.metrics()
		for _, s := range servers {
			for _, kind := range Networks {
				item.Server = over(s, kind)
				b.Items = append(b.Items, item)
				if kind != Loopback {
					b.Compare(results.Pair, item.Workload.Name, item.Server, over(s, Loopback), metrics...)
				}
				if s.Name != servers[0].Name {
					b.Compare(results.Pair, item.Workload.Name, item.Server, over(servers[0], kind), metrics...)
				}
			}
		}
		twin := over(servers[0], Loopback)
		item.Server = twin
		item.Server.Name += Again
		b.Items = append(b.Items, item)
		b.Compare(results.Noise, item.Workload.Name, item.Server, twin, metrics...)
	}
}
