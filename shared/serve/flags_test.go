package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDefaults(t *testing.T) {
	o, help, err := parse("stage7-fake", nil)
	require.NoError(t, err)
	require.Empty(t, help)
	require.Equal(t, options{Config: Config{
		Stage: "stage7-fake", Addr: "127.0.0.1:8080",
		IdleTimeout: time.Minute, HeadTimeout: 10 * time.Second, BodyTimeout: 10 * time.Second, BodyTotal: time.Minute,
		WriteTimeout: 10 * time.Second, WriteTotal: 10 * time.Minute, LingerTimeout: time.Second, Grace: 5 * time.Second,
		MaxBody: 1 << 20,
	}, staticMemory: 64 << 20}, o)
}

func TestEveryFlag(t *testing.T) {
	folder := t.TempDir()
	o, _, err := parse("stage7-fake", []string{
		"-addr", "[::1]:0", "--workers=3", "-idle-timeout", "1ms", "--head-timeout", "2s", "-body-timeout=3s", "-body-total-timeout=4s",
		"-write-timeout=5s", "-write-total-timeout=7s", "-linger-timeout=6s", "-grace=0s", "-max-body=0", "-max-conns=7", "-max-files=64", "-acceptor", "--overlap",
		"-pin=true", "-gomaxprocs=8", "-admin=:9090", "-static=" + folder, "-static-memory=5", "-poison", "-test-routes", "-foreground",
	})
	require.NoError(t, err)
	require.Equal(t, options{
		Config: Config{
			Stage: "stage7-fake", Addr: "[::1]:0", Workers: 3,
			IdleTimeout: time.Millisecond, HeadTimeout: 2 * time.Second, BodyTimeout: 3 * time.Second, BodyTotal: 4 * time.Second,
			WriteTimeout: 5 * time.Second, WriteTotal: 7 * time.Second, LingerTimeout: 6 * time.Second, Grace: 0,
			MaxBody: 0, MaxConns: 7, Acceptor: true, Overlap: true, Pin: true,
			Admin: "127.0.0.1:9090", Static: folder, Poison: true,
		},
		gomaxprocs: 8, maxFiles: 64, staticMemory: 5, testRoutes: true, foreground: true,
	}, o)
}

func TestAdminWithoutHostIsLoopback(t *testing.T) {
	for given, want := range map[string]string{
		"": "", ":9090": "127.0.0.1:9090", "9090": "127.0.0.1:9090", ":0": "127.0.0.1:0",
		"0.0.0.0:9090": "0.0.0.0:9090", "[::1]:9090": "[::1]:9090",
	} {
		o, _, err := parse("stage7-fake", []string{"-admin", given})
		require.NoError(t, err, given)
		require.Equal(t, want, o.Admin, given)
	}
}

func TestBadFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"flag provided but not defined: -bogus", []string{"-bogus"}},
		{"flag provided but not defined: -bogus", []string{"--bogus=1"}},
		{"flag needs an argument: -addr", []string{"-addr"}},
		{`unknown argument "serve"`, []string{"serve"}},
		{`unknown argument "false"`, []string{"-pin", "false"}},
		{`unknown argument ""`, []string{""}},
		{`want a whole number from 0 to 1024`, []string{"-workers", "-1"}},
		{`want a whole number from 0 to 1024`, []string{"-workers", "1025"}},
		{`want a whole number from 0 to 1024`, []string{"-workers", "two"}},
		{`want a whole number from 0 to 1024`, []string{"-workers", ""}},
		{`want a whole number from 0 to 1024`, []string{"-workers", "99999999999999999999"}},
		{`want a whole number from 0 to 1026`, []string{"-gomaxprocs", "-1"}},
		{`want a whole number from 0 to 2147483647`, []string{"-max-conns", "-1"}},
		{`want a whole number from 16 to 2147483647`, []string{"-max-files", "15"}},
		{`want a whole number from 0 to 1073741824`, []string{"-max-body", "-1"}},
		{`want a whole number from 0 to 1073741824`, []string{"-max-body", "1073741825"}},
		{`want a time such as 10s or 500ms, from 1ms to 8760h`, []string{"-idle-timeout", "0s"}},
		{`want a time such as 10s or 500ms, from 1ms to 8760h`, []string{"-head-timeout", "-1s"}},
		{`want a time such as 10s or 500ms, from 1ms to 8760h`, []string{"-body-timeout", "10"}},
		{`want a time such as 10s or 500ms, from 1ms to 8760h`, []string{"-body-total-timeout", "1us"}},
		{`want a time such as 10s or 500ms, from 1ms to 8760h`, []string{"-write-timeout", "9000h"}},
		{`want a time such as 10s or 500ms, from 1ms to 8760h`, []string{"-write-total-timeout", "0s"}},
		{`want a time such as 10s or 500ms, from 1ms to 8760h`, []string{"-linger-timeout", "soon"}},
		{`want a time such as 10s or 500ms, from 0s to 8760h`, []string{"-grace", "-1ns"}},
		{`bad address "8080"`, []string{"-addr", "8080"}},
		{`bad address ""`, []string{"-addr", ""}},
		{`bad address "127.0.0.1:65536"`, []string{"-addr", "127.0.0.1:65536"}},
		{`bad address "127.0.0.1:x"`, []string{"-admin", "x"}},
		{`want a whole number from 0 to 1099511627776`, []string{"-static-memory", "-1"}},
		{`it is not a folder`, []string{"-static", file}},
		{`no such file`, []string{"-static", file + ".none"}},
		{`invalid boolean value "maybe" for -pin`, []string{"-pin=maybe"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			if c.want == "no such file" && os.PathSeparator == '\\' {
				c.want = "cannot find"
			}
			_, help, err := parse("stage7-fake", c.args)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			require.Empty(t, help)
		})
	}
}

func TestHelpFitsEightyColumnsAndNamesEveryFlag(t *testing.T) {
	for _, h := range []string{"-h", "-help", "--help", "--h"} {
		_, help, err := parse("stage3-native-parser", []string{"-workers", "1", h})
		require.NoError(t, err)
		for line := range strings.Lines(help) {
			require.LessOrEqual(t, len(line), 81, line)
		}
		for _, name := range strings.Fields("addr workers idle-timeout head-timeout body-timeout body-total-timeout write-timeout write-total-timeout linger-timeout " +
			"grace max-body max-conns max-files acceptor overlap pin gomaxprocs admin static static-memory h") {
			require.Contains(t, help, "\n  -"+name+" ")
		}
		require.Contains(t, help, "(127.0.0.1:8080)")
		require.Contains(t, help, "(1m)")
		require.NotContains(t, help, "poison")
		require.NotContains(t, help, "test-routes")
		require.NotContains(t, help, "foreground")
	}
}
