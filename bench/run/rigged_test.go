//go:build linux

package run

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The test binary, started again, is a rigged server or a parent that is killed.
const (
	rigVariable    = "LADDER_TEST_RIG"
	parentVariable = "LADDER_TEST_PARENT"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(rigVariable) != "":
		rigged(os.Getenv(rigVariable))
	case os.Getenv(parentVariable) != "":
		parent()
	}
	folder, err := os.MkdirTemp("", "ladder-test-")
	if err != nil {
		panic(err)
	}
	buildFolder = folder
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

var buildFolder string

var burned atomic.Uint64

// rigged is a server that speaks as the stages do, with net/http behind it, and
// does what its part asks for.
func rigged(part string) {
	flags := flag.NewFlagSet(part, flag.ExitOnError)
	address := flags.String("addr", "", "")
	flags.Int("workers", 0, "")
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(2)
	}
	switch part {
	case "silent":
		select {} // says nothing
	case "chatty":
		fmt.Println("hello there")
		select {}
	case "burns":
		runtime.GOMAXPROCS(1)
		for burned.Add(1) > 0 {
		}
	case "refuses":
		fmt.Fprintln(os.Stderr, "address 127.0.0.1:8080 is taken by another process")
		os.Exit(1)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		panic(err)
	}
	var requests atomic.Int64
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text := "Hello, World!"
		switch n := requests.Add(1); {
		case part == "slow":
			time.Sleep(2 * time.Millisecond)
		case part == "wrong" && n%10 == 0, part == "always-wrong":
			text = "Hello, world!"
		case part == "dies" && n == 500:
			fmt.Fprintln(os.Stderr, "fatal error: so it goes")
			os.Exit(3)
		}
		io.WriteString(w, text)
	}))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	fmt.Printf("ready stage=%s pid=%d addr=%s workers=1 gomaxprocs=1\n", part, os.Getpid(), listener.Addr())
	<-signals
	if part == "sulks" {
		os.Exit(4)
	}
	os.Exit(0)
}

// rig makes a Server of a part of rigged.
func rig(t *testing.T, part string) Server {
	t.Helper()
	// A script in between would be another process; so the part goes by the
	// environment, which children inherit, under a name of its own per server.
	link := filepath.Join(t.TempDir(), part)
	own, err := os.Executable()
	require.NoError(t, err)
	script := fmt.Sprintf("#!/bin/sh\nexec env %s=%s %s \"$@\"\n", rigVariable, part, own)
	require.NoError(t, os.WriteFile(link, []byte(script), 0o755))
	return Server{Name: part, Path: link}
}

// ladder builds the command, whose subcommand load is the generator.
var ladder = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildFolder, "ladder")
	if text, err := exec.Command("go", "build", "-o", path, "../cmd/ladder").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return path, nil
})

func bench(t *testing.T) *Bench {
	t.Helper()
	command, err := ladder()
	require.NoError(t, err)
	b := &Bench{Rounds: 1, Warmup: 5 * time.Millisecond, Duration: 80 * time.Millisecond, Generator: Embedded, Command: command, Seed: 1}
	require.NoError(t, b.Prepare())
	return b
}

// parent starts a server, tells its process id, and waits to be killed.
func parent() {
	own, _ := os.Executable()
	os.Setenv(rigVariable, "good")
	s, err := Start(context.Background(), Server{Name: "good", Path: own}, nil, 1)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.PID())
	select {}
}

// children lists the processes that this one has started and that are still there.
func children(t *testing.T) (out []string) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	for _, task := range tasks {
		b, _ := os.ReadFile(task) // a thread may have ended
		out = append(out, strings.Fields(string(b))...)
	}
	return out
}
