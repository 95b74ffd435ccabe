//go:build !linux

package suite

import (
	"errors"
	"net"
)

// Nothing here is ever reached: requireLinux skips every test before.
func listenShared(string) (net.Listener, error) { return nil, errors.ErrUnsupported }
func fileLimit() uint64                         { return 0 }
