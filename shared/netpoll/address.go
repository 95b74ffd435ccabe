package netpoll

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// lookupTimeout bounds how long ParseAddress may wait for a name server.
const lookupTimeout = 10 * time.Second

// Address is an IPv4 or IPv6 address with a port, resolved and ready for [Connect]. It is a value: copy and compare it
// freely. The zero value is no address, see Valid.
type Address struct {
	ip    netip.Addr // unmapped; the zone has moved to scope
	port  uint16
	scope uint32 // interface index of a link-local IPv6 address
	any   bool   // no host was given: all addresses, of both families
}

// ParseAddress reads "host:port". The host is an IPv4 address, an IPv6 address in brackets, a name, which is looked up here
// (IPv4 preferred) and may take as long as 10 seconds, or empty: every address of this machine to [Listen], the
// loopback to [Connect]. The port is a number from 0 to 65535. An error is one line that shows what was wrong.
func ParseAddress(text string) (Address, error) {
	host, portText, err := net.SplitHostPort(text)
	if err != nil {
		return Address{}, fmt.Errorf("bad address %q: write host:port, such as 127.0.0.1:8080 or [::1]:8080", text)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return Address{}, fmt.Errorf("bad address %q: the port must be a number from 0 to 65535", text)
	}
	a := Address{port: uint16(port)}
	if host == "" {
		a.ip, a.any = netip.IPv6Unspecified(), true
		return a, nil
	}
	if a.ip, err = netip.ParseAddr(host); err != nil {
		if a.ip, err = lookup(host); err != nil {
			return Address{}, fmt.Errorf("bad address %q: %w", text, err)
		}
	}
	if zone := a.ip.Zone(); zone != "" {
		if a.scope, err = scopeOf(zone); err != nil {
			return Address{}, fmt.Errorf("bad address %q: %w", text, err)
		}
	}
	a.ip = a.ip.Unmap().WithZone("")
	return a, nil
}

func lookup(host string) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(found) == 0 {
		var dns *net.DNSError
		if err == nil || errors.As(err, &dns) && dns.IsNotFound {
			return netip.Addr{}, fmt.Errorf("unknown host %q", host)
		}
		return netip.Addr{}, fmt.Errorf("cannot look up host %q: %w", host, err)
	}
	for _, ip := range found {
		if ip.Unmap().Is4() {
			return ip, nil
		}
	}
	return found[0], nil
}

func scopeOf(zone string) (uint32, error) {
	if index, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(index), nil
	}
	card, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, fmt.Errorf("unknown network interface %q", zone)
	}
	return uint32(card.Index), nil
}

// Valid says whether a is an address at all, not the zero value.
func (a Address) Valid() bool { return a.ip.IsValid() }

// Port is the port, 0 if the kernel is to choose.
func (a Address) Port() int { return int(a.port) }

// String is the address as ParseAddress reads it back: "127.0.0.1:8080", "[::1]:8080"; "" for the zero value.
func (a Address) String() string {
	if !a.Valid() {
		return ""
	}
	ip := a.ip
	if a.scope != 0 {
		ip = ip.WithZone(strconv.FormatUint(uint64(a.scope), 10))
	}
	return netip.AddrPortFrom(ip, a.port).String()
}
