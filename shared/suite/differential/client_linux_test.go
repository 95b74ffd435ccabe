package differential

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// writeUrgent writes b, whose last byte is urgent.
func writeUrgent(c *net.TCPConn, b []byte) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	// The kernel may take less than all: only the end is urgent, so what comes before it goes as ever.
	if n, err := c.Write(b[:len(b)-1]); err != nil {
		return n, err
	}
	var sendErr error
	err = raw.Write(func(fd uintptr) bool {
		sendErr = unix.Sendto(int(fd), b[len(b)-1:], unix.MSG_OOB|unix.MSG_NOSIGNAL, nil)
		return sendErr != unix.EAGAIN
	})
	if err == nil {
		err = sendErr
	}
	return len(b), err
}

// openWindow gives a connection with the smallest window a large one (tcp(7), TCP_WINDOW_CLAMP).
func openWindow(c *net.TCPConn) error {
	const large = 64<<10 - 1 // the most that needs no scaling, which is agreed on at the beginning
	if err := c.SetReadBuffer(4 * large); err != nil {
		return err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, large)
	})
	if controlErr != nil {
		return controlErr
	}
	return err
}

// smallestWindow gives a socket that is to be connected the smallest receive buffer (socket(7), SO_RCVBUF).
func smallestWindow(_, _ string, raw syscall.RawConn) (err error) {
	controlErr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 1)
	})
	if controlErr != nil {
		return controlErr
	}
	return err
}
