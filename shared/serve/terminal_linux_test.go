package serve

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestInterruptOfTheTerminal presses Ctrl-C on a terminal of its own. The shell, which stands for make, would die of it too.
func TestInterruptOfTheTerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminal can be made here:", err)
	}
	defer master.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminal can be made here:", err)
	}
	shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", `"$0" -foreground; echo "exit code $?"`, os.Args[0])
	shell.Env = append(os.Environ(), asStage+"=obedient")
	shell.Stdin, shell.Stdout, shell.Stderr = slave, slave, slave
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, shell.Start())
	slave.Close()

	var seen []string
	lines := bufio.NewScanner(master)
	for lines.Scan() {
		seen = append(seen, lines.Text())
		if strings.Contains(lines.Text(), "ready ") {
			_, err := master.Write([]byte{3})
			require.NoError(t, err)
		}
	}
	require.NoError(t, shell.Wait())
	require.Contains(t, seen, "exit code 0")
	require.Contains(t, strings.Join(seen, "\n"), "stage7-fake: draining")
}
