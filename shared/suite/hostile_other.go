//go:build !linux

package suite

import "testing"

// Hostile skips: the servers need Linux.
func Hostile(t *testing.T) { requireLinux(t) }

func actAsFaulty() error { return nil }
