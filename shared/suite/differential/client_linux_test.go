package differential

import (
	"net"

	"golang.org/x/sys/unix"
)

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
