//go:build !linux

package witness

import (
	"os/exec"
	"syscall"
	"time"
)

// Process is a program under watch; there is none here.
type Process struct{ PID int }

// Start answers ErrUnsupported.
func Start(*exec.Cmd, func(*Call)) (*Process, error) { return nil, ErrUnsupported }

// Strange answers nothing.
func (p *Process) Strange() []string { return nil }

// Signal answers ErrUnsupported.
func (p *Process) Signal(syscall.Signal) error { return ErrUnsupported }

// Wait answers -1.
func (p *Process) Wait(time.Duration) int { return -1 }

// Ended is never closed.
func (p *Process) Ended() <-chan struct{} { return nil }

// Hold does nothing.
func (p *Process) Hold() {}

// Release does nothing.
func (p *Process) Release() {}

func (p *Process) read([]byte, uintptr) bool { return false }
