//go:build linux

package run

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/load"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Two generators on hosts of their own drive one server on a third, and their
// results become one. The hosts are network namespaces.
func TestGeneratorsOnOtherHosts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("the command ip is not installed (iproute2)")
	}
	ip := func(args ...string) error {
		if text, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, text)
		}
		return nil
	}
	host := func(name string) string { return fmt.Sprintf("ladder-%d-%s", os.Getpid(), name) }
	for _, name := range []string{"server", "a", "b"} {
		if err := ip("netns", "add", host(name)); err != nil {
			t.Skipf("no network namespaces here: %v", err)
		}
		t.Cleanup(func() { require.NoError(t, ip("netns", "del", host(name))) })
	}
	for i, client := range []string{"a", "b"} {
		near, far := fmt.Sprintf("lt%d%s0", os.Getpid()%100000, client), fmt.Sprintf("lt%d%s1", os.Getpid()%100000, client)
		if err := ip("link", "add", near, "netns", host("server"), "type", "veth", "peer", "name", far, "netns", host(client)); err != nil {
			t.Skipf("no virtual links here: %v", err)
		}
		for _, end := range [][]string{{host("server"), near, "1"}, {host(client), far, "2"}} {
			require.NoError(t, ip("-n", end[0], "address", "add", fmt.Sprintf("10.77.%d.%s/24", i, end[2]), "dev", end[1]))
			require.NoError(t, ip("-n", end[0], "link", "set", end[1], "up"))
		}
	}

	s := rig(t, "good")
	server, err := harness.Start(t.Context(), harness.Command{Name: "server", Path: "ip", Args: []string{"netns", "exec", host("server"), s.Path, "-addr", "0.0.0.0:8080"}})
	require.NoError(t, err)
	defer server.Close()
	line, err := server.Line(t.Context(), harness.Patience)
	require.NoError(t, err)
	require.Contains(t, line, "ready")

	path, err := ladder()
	require.NoError(t, err)
	results := make([]load.Result, 2)
	var group sync.WaitGroup
	for i, client := range []string{"a", "b"} {
		group.Go(func() {
			text, err := exec.CommandContext(t.Context(), "ip", "netns", "exec", host(client), path, "load", "--json", "-",
				"--target", fmt.Sprintf("10.77.%d.1:8080", i), "--connections", "5", "--warmup", "50ms", "--duration", "200ms").Output()
			if err == nil {
				err = json.Unmarshal(text, &results[i])
			}
			if err != nil {
				t.Errorf("generator %s: %v: %s", client, err, text)
			}
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	merged, err := load.Merge(results)
	require.NoError(t, err)
	require.Equal(t, 10, merged.Established)
	require.Equal(t, 10, merged.Answered)
	require.Zero(t, merged.Failures())
	require.NotZero(t, results[0].Requests)
	require.NotZero(t, results[1].Requests)
	require.Equal(t, results[0].Requests+results[1].Requests, merged.Requests)
	require.Equal(t, "several addresses", merged.Target)
	require.Less(t, merged.Seconds, float64(time.Minute))
}
