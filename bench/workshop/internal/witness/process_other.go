//go:build !linux

package witness

import (
	"os/exec"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Process is a program under watch; there is none here.
type Process struct{}

// New is one that cannot be started.
func New(func(*Call)) *Process { return &Process{} }

// Launch answers ErrUnsupported.
func (p *Process) Launch(*exec.Cmd) (func() harness.Exit, error) { return nil, ErrUnsupported }

// Strange answers nothing.
func (p *Process) Strange() []string { return nil }

// Hold does nothing.
func (p *Process) Hold() {}

// Release does nothing.
func (p *Process) Release() {}

func (p *Process) read([]byte, uintptr) bool { return false }
