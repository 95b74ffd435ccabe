//go:build !linux

package harness

import (
	"os/exec"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

func startOn(*exec.Cmd, []int) error { return netpoll.ErrUnsupported }
func killGroup(int) error            { return netpoll.ErrUnsupported }

// DieWithParent does nothing here.
func DieWithParent() {}

// Pause answers netpoll.ErrUnsupported here.
func (s *Server) Pause() error { return netpoll.ErrUnsupported }

// Resume answers netpoll.ErrUnsupported here.
func (s *Server) Resume() error { return netpoll.ErrUnsupported }

// SendUrgent answers netpoll.ErrUnsupported here.
func (c *Conn) SendUrgent(byte) error { return netpoll.ErrUnsupported }

func setReceiveBuffer(uintptr, int) error { return netpoll.ErrUnsupported }
