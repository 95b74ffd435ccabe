package workshop

import (
	"os"

	"golang.org/x/sys/unix"
)

// keysOf sends each key that is pressed, if file is a terminal: else keys is nil. restore gives the terminal back.
func keysOf(file *os.File) (keys <-chan byte, restore func()) {
	fd := int(file.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, func() {}
	}
	// Key by key and without an echo, see termios(3); Ctrl-C goes on to be a signal.
	single := *before
	single.Lflag &^= unix.ICANON | unix.ECHO
	single.Cc[unix.VMIN], single.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &single); err != nil {
		return nil, func() {}
	}
	pressed := make(chan byte)
	go func() {
		var key [1]byte
		for {
			if n, err := file.Read(key[:]); n == 0 || err != nil {
				return
			}
			pressed <- key[0]
		}
	}()
	return pressed, func() { unix.IoctlSetTermios(fd, unix.TCSETS, before) }
}
