//go:build !linux

package run

import (
	"os/exec"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

func startOn(*exec.Cmd, []int) error { return netpoll.ErrUnsupported }

func (p *child) kill() error { return p.cmd.Process.Kill() }

func (p *child) drain() error { return p.cmd.Process.Kill() }
