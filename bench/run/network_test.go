//go:build linux

package run

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/results"
	"github.com/qps-ladder/qps-ladder/bench/workload"
)

func pid() string { return strconv.Itoa(os.Getpid()) }

// own lists what of the networks that this process makes is there.
func own(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, args := range [][]string{{"ip", "netns", "list"}, {"ip", "-o", "link"}} {
		text, err := exec.Command(args[0], args[1:]...).Output()
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "ql"+pid()) || strings.Contains(line, networkPrefix+pid()) {
				out.WriteString(line)
			}
		}
	}
	if _, err := exec.LookPath("nft"); err == nil {
		text, _ := exec.Command("nft", "list tables").Output()
		if strings.Contains(string(text), tableName(os.Getpid())) {
			out.WriteString("a table of nft")
		}
	}
	return out.String()
}

// needs skips where this machine cannot make a network, and says why.
func needs(t *testing.T, kind string) {
	t.Helper()
	if err := CheckNetwork(kind); err != nil {
		require.NotContains(t, err.Error(), "\n")
		t.Skip(err)
	}
	n, err := openNetwork(kind)
	if err != nil {
		t.Skipf("not allowed here: %v", err)
	}
	require.NoError(t, n.close())
}

func TestServersInNetworks(t *testing.T) {
	for _, kind := range []string{Veth, Bridge} {
		t.Run(kind, func(t *testing.T) {
			needs(t, kind)
			b := bench(t)
			s := rig(t, "good")
			s.Network = kind
			b.Items = []Item{{Server: s, Workload: hello(t, 4)}}
			while := ""
			b.Progress = func(Progress) { while = own(t) }
			d, err := b.Run(t.Context())
			require.NoError(t, err)
			require.NoError(t, d.Failure())
			require.NotZero(t, d.Measurements[0].Requests)
			require.Contains(t, while, networkPrefix+pid()+"-"+kind)
			require.Equal(t, kind == Bridge, strings.Contains(while, "bridge"), while)
			require.Empty(t, own(t))
			require.Empty(t, children(t))
		})
	}
}

// Whatever ends a run, no network is left.
func TestNetworksAreRemoved(t *testing.T) {
	needs(t, Veth)
	start := func(part string) (*Bench, context.Context, context.CancelFunc) {
		b := bench(t)
		b.Rounds, b.Duration = 1000, 50*time.Millisecond
		s := rig(t, part)
		s.Network = Veth
		b.Items = []Item{{Server: s, Workload: hello(t, 4)}}
		ctx, cancel := context.WithCancel(t.Context())
		return b, ctx, cancel
	}
	t.Run("interrupted", func(t *testing.T) {
		b, ctx, cancel := start("good")
		defer cancel()
		b.Progress = func(p Progress) {
			if p.Round == 2 {
				cancel()
			}
		}
		_, err := b.Run(ctx)
		require.True(t, Ended(err), "%v", err)
		require.Empty(t, own(t))
	})
	t.Run("the server dies", func(t *testing.T) {
		b, ctx, cancel := start("dies")
		defer cancel()
		b.Duration = 20 * time.Second
		_, err := b.Run(ctx)
		require.ErrorContains(t, err, "ended while it was being measured")
		require.Empty(t, own(t))
	})
	t.Run("left by a run that was killed", func(t *testing.T) {
		dead := exec.Command("true")
		require.NoError(t, dead.Run())
		name := networkPrefix + strconv.Itoa(dead.Process.Pid) + "-veth"
		require.NoError(t, command([]string{"ip", "netns", "add", name}))
		removeLeftovers()
		require.NoFileExists(t, "/run/netns/"+name)
	})
}

func TestNetworksThatCannotBeHad(t *testing.T) {
	require.NoError(t, CheckNetwork(Loopback))
	t.Setenv("PATH", t.TempDir())
	for kind, want := range map[string]string{Veth: "the package iproute2", Bridge: "the package iproute2"} {
		if os.Geteuid() != 0 {
			want = "needs root"
		}
		err := CheckNetwork(kind)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	_, _, err := translation("t", "a", "b")
	require.ErrorContains(t, err, "install the package nftables")
}

func TestOverNetworks(t *testing.T) {
	b := Bench{}
	b.OverNetworks([]Server{{Name: "stage4"}, {Name: "stage5"}}, []workload.Workload{{Name: "hello"}})
	require.Len(t, b.Items, 2*3+1)
	var heads []string
	for _, r := range b.Ratios {
		if r.Metric == results.RequestsPerSecond {
			heads = append(heads, r.Head+" to "+r.Base)
		}
	}
	require.Equal(t, []string{
		"stage4 over veth to stage4 over lo", "stage4 over bridge to stage4 over lo", "stage5 over lo to stage4 over lo", "stage5 over veth to stage5 over lo",
		"stage5 over veth to stage4 over veth", "stage5 over bridge to stage5 over lo", "stage5 over bridge to stage4 over bridge", "stage4 over lo again to stage4 over lo",
	}, heads)
}
