//go:build unix

package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	mainVariable = "LADDER_TEST_MAIN"
	// shortenVariable has flags for each measuring subcommand that another one starts, and
	// rootVariable the repository that it measures in place of the one it is started in: where all
	// has been built already.
	shortenVariable = "LADDER_TEST_SHORTEN"
	rootVariable    = "LADDER_TEST_ROOT"
)

// The test binary, started again, is the command itself.
func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		measuring := []string{"run", "compare", "peers"}
		profiling := []string{"where", "flame"}
		if len(os.Args) > 1 && slices.Contains(measuring, os.Args[1]) {
			os.Args = append(os.Args, strings.Fields(os.Getenv(shortenVariable))...)
		}
		if len(os.Args) > 1 && slices.Contains(append(measuring, profiling...), os.Args[1]) {
			if root := os.Getenv(rootVariable); root != "" {
				if err := os.Chdir(root); err != nil {
					panic(err)
				}
			}
		}
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// timeout(1) sends a signal to the process and to its group, so it comes twice; what was measured
// is reported all the same.
func TestInterruptionThatComesAgainAtOnce(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	asked := make(chan struct{})
	var answered atomic.Int64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "Hello, World!")
		if answered.Add(1) == 200 { // it is measuring by then
			close(asked)
		}
	})}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })

	own, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), own, "load", "--target", listener.Addr().String(), "--connections", "2", "--warmup", "0s", "--duration", "10m")
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	require.NoError(t, cmd.Start())
	<-asked
	// One right after another could be taken for one; of so many some come when the first has been
	// dealt with.
	for range 100 {
		if cmd.Process.Signal(syscall.SIGINT) != nil {
			break
		}
	}
	require.Error(t, cmd.Wait())
	require.Equal(t, 1, cmd.ProcessState.ExitCode(), "ended by the signal: %s", complaints.String())
	require.Contains(t, out.String(), "requests per second")
	require.Equal(t, "ladder: stopped\n", complaints.String())
}
