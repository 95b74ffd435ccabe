//go:build !linux

package profile

import (
	"os/exec"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

func startOn(*exec.Cmd, []int) error { return netpoll.ErrUnsupported }

func (p *process) kill() error { return p.cmd.Process.Kill() }
