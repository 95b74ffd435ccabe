package netpoll

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxBacklog asks for the longest queue there may be: listen(2) cuts it at net.core.somaxconn without complaint.
const maxBacklog = 65535

// Listen opens a listening TCP socket on address, as [ParseAddress] reads it, and answers its descriptor and the address
// with the port that it got; port 0 lets the kernel choose. "[::]:8080" and ":8080" listen on all IPv4 and IPv6
// addresses, "0.0.0.0:8080" on all IPv4 ones. The socket is non-blocking and closed on exec, and has SO_REUSEADDR,
// TCP_NODELAY and SO_OOBINLINE, which accepted sockets inherit (tcp(7), socket(7)).
//
// One that shares its address undoes what [Steer] has left behind there.
//
// An error is one line that says what to do. It is an [*AddressInUseError] when somebody else listens there, wraps
// [ErrShareRefused] when the kernel lacks SO_REUSEPORT, and otherwise wraps the errno.
func Listen(c *Counters, address string, o ListenOptions) (fd int, bound string, err error) {
	a, err := ParseAddress(address)
	if err != nil {
		return -1, "", err
	}
	fd, port, err := listen(c, a, o)
	if a.any && (errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL)) {
		// A machine without IPv6.
		a.ip = netip.IPv4Unspecified()
		fd, port, err = listen(c, a, o)
	}
	switch {
	case err == nil:
		if o.Share {
			join(fd)
		}
		a.port = port
		return fd, a.String(), nil
	case errors.Is(err, unix.EADDRINUSE):
		return -1, "", &AddressInUseError{Address: address}
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return -1, "", fmt.Errorf("address %s is not one of this machine's (%w): choose another with -addr", address, err)
	case errors.Is(err, unix.EACCES):
		return -1, "", fmt.Errorf("address %s is not open to this user (%w): choose a port from 1024 up with -addr", address, err)
	}
	return -1, "", fmt.Errorf("cannot listen on %s: %w", address, err)
}

func listen(c *Counters, a Address, o ListenOptions) (fd int, port uint16, err error) {
	fd, errno := openSocket(a.family())
	if errno != 0 {
		return -1, 0, errno
	}
	if port, err = listenOn(fd, a, o); err != nil {
		Close(c, fd)
		return -1, 0, err
	}
	return fd, port, nil
}

func listenOn(fd int, a Address, o ListenOptions) (uint16, error) {
	// Without it, connections of an earlier process in TIME_WAIT would keep the port.
	if errno := setOption(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); errno != 0 {
		return 0, errno
	}
	if errno := setOption(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); errno != 0 {
		return 0, errno
	}
	// An urgent byte (MSG_OOB) stays where it stands among the others (RFC 6093, 6): otherwise it depends on when it is read
	// whether one of two is left out.
	if errno := setOption(fd, unix.SOL_SOCKET, unix.SO_OOBINLINE, 1); errno != 0 {
		return 0, errno
	}
	if a.ip == netip.IPv6Unspecified() {
		if errno := setOption(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0); errno != 0 {
			return 0, errno
		}
	}
	if o.Share && !o.Claim {
		if err := share(fd); err != nil {
			return 0, err
		}
	}
	if errno := bind(fd, a); errno != 0 {
		return 0, errno
	}
	if o.Backlog <= 0 {
		o.Backlog = maxBacklog
	}
	if errno := startListening(fd, o.Backlog); errno != 0 {
		return 0, errno
	}
	if o.Share && o.Claim {
		// Not between bind and listen: two processes that start at once can both bind, since SO_REUSEADDR lets sockets
		// share a port that nobody listens on yet. Only listen without SO_REUSEPORT tells that one came second. The
		// kernel makes the group when the next socket joins.
		if err := share(fd); err != nil {
			return 0, err
		}
	}
	port, errno := boundPort(fd)
	return port, failure(errno)
}

func share(fd int) error {
	switch errno := setOption(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); errno {
	case 0:
		return nil
	case unix.ENOPROTOOPT, unix.EINVAL, unix.EOPNOTSUPP:
		return fmt.Errorf("%w (%w)", ErrShareRefused, errno)
	default:
		return errno
	}
}

// startListening is listen(2).
func startListening(fd, backlog int) syscall.Errno {
	if _, errno, injected := consult(CallListen, fd); injected {
		return errno
	}
	_, _, errno := unix.RawSyscall(unix.SYS_LISTEN, uintptr(fd), uintptr(backlog), 0)
	return errno
}
