//go:build linux

package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

func TestLimitsSayWhatWouldBeCapped(t *testing.T) {
	l := Limits{Descriptors: 1024, HardDescriptors: 4096, Ports: 1000, Backlog: 10}
	w := workload.Workload{Name: "many", Connections: 1000, Idle: 1000, Pipeline: 1}
	require.ErrorContains(t, l.CheckDescriptors(w), "2000 connections need 2032 file descriptors and the limit is 1024: raise it first (ulimit -n 2032)")
	require.Equal(t, 992, l.Room())
	l.HardDescriptors = 1024
	require.ErrorContains(t, l.CheckDescriptors(w), "as root: prlimit --pid $$ --nofile=2032")
	w.Idle = 0
	l.Descriptors = 1032
	require.NoError(t, l.CheckDescriptors(w))
	require.NoError(t, Limits{}.CheckDescriptors(w), "unknown: the connect errors will tell")

	require.Equal(t, []string{
		"many leaves from 2 addresses, 127.0.0.1 to 127.0.0.2: 1,000 connections are too many for the 1,000 ports of one (net.ipv4.ip_local_port_range).",
		"many: the listen queue holds 10 (net.core.somaxconn), so connections are made only 10 at a time.",
	}, l.Capped(w, 2, true))
	require.Len(t, l.Capped(w, 2, false), 1)
	require.Contains(t, l.Capped(w, 2, false)[0], "--source")
	require.Empty(t, Limits{}.Capped(w, 2, true))
	w.Wanted, w.Name = 10_000, "c1000"
	require.Contains(t, Limits{HardDescriptors: 2500}.Capped(w, 1, true)[0], "c1000 has 1,000 connections, not 10,000: the hard limit of 2,500 file descriptors")

	require.Equal(t, 28232, portsIn("32768\t60999\n"))
	require.Zero(t, portsIn("nonsense"))
	require.Equal(t, 1, Limits{}.Sources(1_000_000))
	require.Equal(t, 254, Limits{Ports: 2}.Sources(1_000_000))
}

func TestSources(t *testing.T) {
	here, err := netpoll.ParseAddress("127.0.0.1:8080")
	require.NoError(t, err)
	away, err := netpoll.ParseAddress("192.0.2.1:8080")
	require.NoError(t, err)
	o := Options{Workload: workload.Workload{Connections: 250}}
	found, err := o.sources(here, Limits{Ports: 100})
	require.NoError(t, err)
	require.Len(t, found, 4)
	require.Equal(t, "127.0.0.4:0", found[3].String())
	found, err = o.sources(away, Limits{Ports: 100})
	require.NoError(t, err)
	require.Empty(t, found, "127.0.0.2 reaches nobody else")
	o.Sources = []string{"192.0.2.7"}
	found, err = o.sources(away, Limits{})
	require.NoError(t, err)
	require.Equal(t, "192.0.2.7:0", found[0].String())
}

// In a network of its own, where a source address has a hundred ports only and the
// listen queue room for 16, 250 connections are made all the same.
func TestPortsRunShort(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	own, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(own)
	cmd.Env = append(os.Environ(), "LADDER_TEST_FEW_PORTS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == skipped || err != nil && len(text) == 0 && !ok {
		t.Skipf("no network namespace with a port range of its own here: %s", text)
	}
	require.NoError(t, err, "%s", text)
	var result Result
	var dropped int
	said := json.NewDecoder(bytes.NewReader(text))
	require.NoError(t, said.Decode(&result), "%s", text)
	require.NoError(t, said.Decode(&dropped), "%s", text)
	require.GreaterOrEqual(t, dropped, 0, "the kernel does not count them")
	require.Less(t, dropped, 80, "connections are made faster than the server accepts: without pauses more than a hundred meet a full queue")
	require.Equal(t, 250, result.Established)
	require.Equal(t, 250, result.Answered)
	require.Equal(t, 4, result.Sources)
	require.Empty(t, result.ConnectErrors)
	require.Zero(t, result.Failures())
}

const skipped = 77

// fewPorts is the process of TestPortsRunShort.
func fewPorts() {
	request, err := unix.NewIfreq("lo")
	if err == nil {
		var socket int
		if socket, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0); err == nil {
			request.SetUint16(unix.IFF_UP | unix.IFF_LOOPBACK | unix.IFF_RUNNING)
			err = unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
		}
	}
	if err == nil {
		err = os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("40000 40099"), 0)
	}
	if err == nil {
		err = os.WriteFile("/proc/sys/net/core/somaxconn", []byte("16"), 0)
	}
	// Client and server share one CPU, as where there are few: so nothing but the client's own
	// pauses lets the server accept.
	if tasks, taskErr := os.ReadDir("/proc/self/task"); err == nil && taskErr == nil {
		var before, one unix.CPUSet
		_ = unix.SchedGetaffinity(0, &before)
		for cpu := range len(before) * 64 {
			if before.IsSet(cpu) {
				one.Set(cpu)
				break
			}
		}
		for _, task := range tasks {
			id, _ := strconv.Atoi(task.Name())
			_ = unix.SchedSetaffinity(id, &one)
		}
	}
	var listener net.Listener
	if err == nil {
		listener, err = net.Listen("tcp", "127.0.0.1:8080")
	}
	if err != nil {
		fmt.Print(err)
		os.Exit(skipped)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				b := make([]byte, 4096)
				for {
					if _, err := c.Read(b); err != nil {
						return
					}
					if _, err := c.Write([]byte(good)); err != nil {
						return
					}
				}
			}()
		}
	})
	w := workload.Workload{Name: "hello", Request: []byte("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), Status: 200, Body: []byte("Hello"), Connections: 250, Pipeline: 1}
	result, err := Run(context.Background(), Options{Target: "127.0.0.1:8080", Workload: w, Threads: 1, Warmup: 50 * time.Millisecond, Duration: 100 * time.Millisecond, Timeout: 20 * time.Second})
	if err != nil {
		fmt.Print(err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(result)
	counters, _ := os.ReadFile("/proc/self/net/netstat")
	_ = json.NewEncoder(os.Stdout).Encode(overflows(string(counters)))
	os.Exit(0)
}

// overflows is how many connections found the listen queue full, see "ListenOverflows" in the
// kernel's documentation of its counters.
func overflows(text string) int {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "TcpExt:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		n, _ := strconv.Atoi(fields[slices.Index(names, "ListenOverflows")])
		return n
	}
	return -1
}
