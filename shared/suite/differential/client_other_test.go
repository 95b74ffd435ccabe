//go:build !linux

package differential

import (
	"errors"
	"net"
)

func openWindow(*net.TCPConn) error { return errors.ErrUnsupported }
