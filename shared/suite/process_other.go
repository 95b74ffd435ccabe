//go:build !linux

package suite

import (
	"errors"
	"net"
	"os"
	"os/exec"
)

// Nothing here is ever reached: requireLinux skips every test before.
const (
	signalPause  = noSignal("pause")
	signalResume = noSignal("resume")
	signalDump   = noSignal("dump")
)

type noSignal string

func (s noSignal) Signal()        {}
func (s noSignal) String() string { return string(s) }

var _ os.Signal = signalPause

var errNotLinux = errors.New("the suite needs Linux")

func startProcess(*exec.Cmd) error              { return errNotLinux }
func dieWithParent()                            {}
func listenShared(string) (net.Listener, error) { return nil, errNotLinux }
func fileLimit() uint64                         { return 0 }
