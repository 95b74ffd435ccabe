package suite

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// listenShared listens as another program with SO_REUSEPORT would.
func listenShared(address string) (net.Listener, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		if controlErr := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		}); controlErr != nil {
			return controlErr
		}
		return err
	}}
	return c.Listen(context.Background(), "tcp", address)
}

// fileLimit is how many descriptors a process may open at most.
func fileLimit() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Max
}
