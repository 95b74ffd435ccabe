package serve

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// takeTerminal has Ctrl-C reach this process alone, and not make, which started it: make would end by the
// signal too, and what was a clean stop would look like a failure. It moves the process into a group of
// its own that is the terminal's foreground (tcsetpgrp(3)); giveBack undoes it. Ctrl-Z does nothing
// meanwhile, since nobody would be there to notice. Without a terminal, or in its background, or if
// this process leads its group already, nothing is done.
func takeTerminal() (giveBack func()) {
	giveBack = func() {}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return giveBack
	}
	fd := int(tty.Fd())
	before, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || before != unix.Getpgrp() || before == os.Getpid() || unix.Setpgid(0, 0) != nil {
		tty.Close()
		return giveBack
	}
	// Without this the next call, from the background, would stop us.
	signal.Ignore(syscall.SIGTTOU, syscall.SIGTSTP)
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, os.Getpid())
	return func() {
		_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, before)
		tty.Close()
	}
}
