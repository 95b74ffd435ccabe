//go:build linux

package run

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/results"
)

// What the kernel tells of itself is what its own files hold; what it does not tell stays empty.
func TestFactsOfTheMachine(t *testing.T) {
	var m results.Machine
	describe(&m)
	for path, got := range map[string]string{
		"/proc/sys/net/ipv4/tcp_congestion_control":                        m.CongestionControl,
		"/proc/sys/net/core/default_qdisc":                                 m.QueueDiscipline,
		"/sys/devices/system/cpu/smt/control":                              m.SMT,
		"/sys/devices/system/clocksource/clocksource0/current_clocksource": m.ClockSource,
	} {
		b, err := os.ReadFile(path)
		if err != nil {
			require.Empty(t, got, path)
			continue
		}
		require.Equal(t, strings.TrimSpace(string(b)), got, path)
	}
	require.Regexp(t, `^\d+ CPUs?(, \d+ cores?)?`, m.Topology)
	require.NotContains(t, m.Tickless, "\n")
	require.Equal(t, "1 core", amount(1, "core"))
	require.Equal(t, "2 cores", amount(2, "core"))
}
