//go:build unix

package workshop

import (
	"os"
	"syscall"
)

// lock waits until nobody else has the file locked (flock(2)). It is unlocked when it is closed.
func lock(file *os.File) error {
	for {
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			return err
		}
	}
}
