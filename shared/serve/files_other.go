//go:build !linux

package serve

import "github.com/qps-ladder/qps-ladder/shared/netpoll"

func limitFiles(uint64) error { return netpoll.ErrUnsupported }
