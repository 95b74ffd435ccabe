//go:build !linux

package hostile

import "testing"

// Run skips: the servers need Linux.
func Run(t *testing.T) { t.Skip("the servers need Linux: there is no epoll here") }
