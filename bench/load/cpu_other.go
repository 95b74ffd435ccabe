//go:build !linux

package load

import "github.com/qps-ladder/qps-ladder/shared/netpoll"

// CPUOf needs Linux.
func CPUOf(pid int) (int64, error) { return 0, netpoll.ErrUnsupported }
