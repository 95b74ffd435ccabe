package child

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

const patience = time.Minute

func TestAffinityIsInheritedAndGivenBack(t *testing.T) {
	before, err := netpoll.CPUs()
	require.NoError(t, err)
	one := before[len(before)-1]
	lines, err := Output(t.Context(), []int{one}, "cat", "/proc/self/status")
	require.NoError(t, err)
	require.Contains(t, lines, fmt.Sprintf("Cpus_allowed_list:\t%d", one))
	lines, err = Output(t.Context(), nil, "nproc")
	require.NoError(t, err)
	require.Equal(t, []string{fmt.Sprint(len(before))}, lines)
}

func TestOutputTellsHowItEnded(t *testing.T) {
	lines, err := Output(t.Context(), nil, "sh", "-c", "echo one; echo two")
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, lines)
	_, err = Output(t.Context(), nil, "sh", "-c", "echo last; exit 3")
	require.EqualError(t, err, "sh ended (exit status 3): last")
	_, err = Output(t.Context(), nil, "no such program")
	require.ErrorContains(t, err, "cannot start no such program")
}

func TestTalking(t *testing.T) {
	p, err := Start(t.Context(), Command{Name: "a shell", Path: "sh", Env: []string{"WORD=ready"}, Args: []string{"-c", `echo $WORD; read a; echo "$a"; echo no >&2; echo good >&2; exit 4`}})
	require.NoError(t, err)
	defer p.End()
	line, err := p.Line(t.Context(), patience)
	require.NoError(t, err)
	require.Equal(t, "ready", line)
	_, err = p.Line(t.Context(), time.Millisecond)
	require.EqualError(t, err, "a shell says nothing for 1ms")
	require.True(t, p.Alive())
	require.NoError(t, p.Say("hello"))
	line, err = p.Line(t.Context(), patience)
	require.NoError(t, err)
	require.Equal(t, "hello", line)
	require.NoError(t, p.AwaitComplaint(t.Context(), "good", patience))
	require.Equal(t, "no\ngood", p.Complaints())
	require.EqualError(t, p.AwaitComplaint(t.Context(), "better", patience), "a shell ended (exit status 4): no / good")
	_, err = p.Line(t.Context(), patience)
	require.EqualError(t, err, "a shell ended (exit status 4): no / good")
	require.EqualError(t, p.Obituary("too early"), "a shell ended too early (exit status 4): no / good")
	require.Error(t, p.Say("more"))
	require.Equal(t, 4, p.State().ExitCode())
}

// A child gets what is to be its descriptor 3; here nothing of it stays open.
func TestFilesAreHandedOver(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	p, err := Start(t.Context(), Command{Name: "sh", Path: "sh", Args: []string{"-c", "echo written >&3"}, Files: []*os.File{writer}})
	require.NoError(t, err)
	defer p.End()
	b := make([]byte, 16)
	n, err := reader.Read(b)
	require.NoError(t, err)
	require.Equal(t, "written\n", string(b[:n]))
	require.NoError(t, p.Await(patience))
	_, err = reader.Read(b)
	require.Error(t, err, "its end of the pipe was the last")
	require.ErrorIs(t, writer.Close(), os.ErrClosed)
}

// One that does not end when it is asked to is killed, with all that it started.
func TestOneThatDoesNotEnd(t *testing.T) {
	p, err := Start(t.Context(), Command{Name: "stubborn", Path: "sh", Args: []string{"-c", "trap '' TERM; sleep 1000 & echo $!; wait; wait"}})
	require.NoError(t, err)
	line, err := p.Line(t.Context(), patience)
	require.NoError(t, err)
	require.NotEmpty(t, strings.TrimSpace(line))
	require.EqualError(t, p.Stop(syscall.SIGTERM, time.Millisecond), "stubborn did not end within 1ms")
	p.End() // it awaits the end of its output, which its own child has open as well
	require.Equal(t, -1, p.State().ExitCode())
	require.EqualError(t, p.Obituary(""), "stubborn ended (signal: killed)")
}
