package profile

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// columnsOf is how many columns a terminal has, and 0 for what is no terminal
// and so has no end.
func columnsOf(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	switch {
	case err != nil:
		return 0
	case size.Col == 0: // one that nobody has told
		return lineWidth
	}
	return int(size.Col)
}
