//go:build !linux

package differential

import (
	"errors"
	"net"
	"syscall"
)

func writeUrgent(*net.TCPConn, []byte) (int, error) { return 0, errors.ErrUnsupported }

func openWindow(*net.TCPConn) error { return errors.ErrUnsupported }

func smallestWindow(_, _ string, _ syscall.RawConn) error { return errors.ErrUnsupported }
