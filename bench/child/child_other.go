//go:build !linux

package child

import (
	"os/exec"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

func startOn(*exec.Cmd, []int) error { return netpoll.ErrUnsupported }

// Kill ends it.
func (p *Child) Kill() error { return p.cmd.Process.Kill() }
