//go:build !linux

package workshop

import "os/exec"

func ownGroup(*exec.Cmd) {}
