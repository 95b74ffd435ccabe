package netpoll

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// randomWord is where a classic program loads a random number from: SKF_AD_OFF + SKF_AD_RANDOM (linux/filter.h).
const randomWord = 1<<32 - 0x1000 + 56

// shared are the listeners of this process that have SO_REUSEPORT, all on one address. They are never taken out: a process serves
// once.
var shared struct {
	sync.Mutex
	listeners []int
}

// A Steering says where new connections of a shared address go.
type Steering uint8

const (
	// SteerAway sends them to all listeners of the other processes, by chance.
	SteerAway Steering = iota

	// SteerClose sends them to one listener that keeps them while those of this process are closed, in any order.
	SteerClose
)

// Steer turns new connections away from the listeners that this process shares with others ([ListenOptions.Share]), and says
// whether it did: not when nobody else listens on the address, nor when the kernel refuses. It is for a process that is about
// to stop while its successor listens already. Call it with SteerAway, go on accepting until the handshakes have ended that are
// under way, call it with SteerClose, and close the listeners: then no connection is reset. Safe from any thread; it
// allocates.
//
// It attaches a program to the group of sockets that share the address (SO_ATTACH_REUSEPORT_CBPF, socket(7)); any owner of one
// may. The group is an array, in which a new socket comes last and the last one fills the gap of one that is closed. So
// the listeners of a process that is older than all others come first in it, and Steer relies on that.
//
// Three things it cannot do. A listener that joins in between takes the program away (see [Listen]). Where others have
// joined before an older process has closed its listeners, the order may be another, and the kernel resets a few connections as
// it would without Steer. And where the others have fewer listeners than this process, that is so for the last that are closed.
func Steer(s Steering) bool {
	shared.Lock()
	defer shared.Unlock()
	return steer(shared.listeners, s)
}

func steer(own []int, s Steering) bool {
	if len(own) == 0 {
		return false
	}
	all, err := countListeners(own[0])
	if err != nil || all <= len(own) {
		return false
	}
	others := all - len(own)
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: randomWord},
		{Code: unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K, K: uint32(others)},
		{Code: unix.BPF_ALU | unix.BPF_ADD | unix.BPF_K, K: uint32(len(own))},
		{Code: unix.BPF_RET | unix.BPF_A},
	}
	if s == SteerClose {
		// This place is one of the others' as long as any of ours is left. Then it is behind the end, which the kernel
		// takes for no choice: it goes by the hash again.
		program = []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: uint32(max(others, len(own)))}}
	}
	return attachToGroup(own[0], program) == 0
}

// join makes fd one of this process's shared listeners.
func join(fd int) {
	// What Steer has left behind chooses no socket, until the group grows.
	setOption(fd, unix.SOL_SOCKET, unix.SO_DETACH_REUSEPORT_BPF, 0)
	shared.Lock()
	defer shared.Unlock()
	shared.listeners = append(shared.listeners, fd)
}

// attachToGroup is setsockopt(2) with SO_ATTACH_REUSEPORT_CBPF.
func attachToGroup(fd int, program []unix.SockFilter) syscall.Errno {
	if _, errno, injected := consult(CallSetsockopt, fd); injected {
		return errno
	}
	f := unix.SockFprog{Len: uint16(len(program)), Filter: unsafe.SliceData(program)}
	_, _, errno := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
		uintptr(unsafe.Pointer(&f)), unsafe.Sizeof(f), 0)
	runtime.KeepAlive(program)
	return errno
}

// countListeners counts the listening sockets of all processes on the address of fd, with /proc/net/tcp or tcp6, see
// proc_pid_net(5).
func countListeners(fd int) (int, error) {
	table, address, err := procAddress(fd)
	if err != nil {
		return 0, err
	}
	file, err := os.Open(table)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Scan() // the heading
	count := 0
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != "0A" {
			break // those that listen come first
		}
		if fields[1] == address {
			count++
		}
	}
	return count, lines.Err()
}

// procAddress is the address of fd as the kernel's table shows it: words in the machine's order, then the port.
func procAddress(fd int) (table, address string, err error) {
	if _, errno, injected := consult(CallGetsockname, fd); injected {
		return "", "", failure(errno)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return "", "", err
	}
	var ip []byte
	var port int
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		table, ip, port = "/proc/net/tcp", name.Addr[:], name.Port
	case *unix.SockaddrInet6:
		table, ip, port = "/proc/net/tcp6", name.Addr[:], name.Port
	}
	for ; len(ip) > 0; ip = ip[4:] {
		address += fmt.Sprintf("%08X", binary.NativeEndian.Uint32(ip))
	}
	return table, fmt.Sprintf("%s:%04X", address, port), nil
}
