package site

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/run"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Serve serves a built site until ctx is done, with Go's file server. Only
// loopback addresses are taken: this is for reading, not for publishing.
func Serve(ctx context.Context, folder, address string, out io.Writer) error {
	if err := onLoopback(address); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w; choose another with ADDR= or --addr", address, err)
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(folder)), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Fprintf(out, "http://%s/ (Ctrl-C ends it)\n", listener.Addr())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// No Shutdown: it waits for connections on which a browser has asked for nothing yet, and a reader who
	// ends it has read enough.
	return server.Close()
}

func onLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is no address such as 127.0.0.1:8000", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q is not a loopback address: the site is for reading on this machine", host)
	}
	return nil
}

// ServeByStage lets one of the project's own servers serve the site.
func ServeByStage(ctx context.Context, root, folder, stage, address string, out io.Writer) error {
	if err := onLoopback(address); err != nil {
		return err
	}
	all, err := stageFolders(root)
	if err != nil {
		return err
	}
	name, err := harness.PickStage(all, stage)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "docs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	servers, err := run.BuildStages(ctx, root, work, []string{name})
	if err != nil {
		return err
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	server, ready, err := startServer(ctx, servers[0].Path, "-addr", address, "-static", absolute)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "http://%s/static/ served by %s (Ctrl-C ends it)\n", ready["addr"], name)
	err = server.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("%s ended: %w", name, err)
}

// startServer starts a stage and waits for its ready line, whose fields it
// returns. When ctx is done the server is asked to end.
func startServer(ctx context.Context, path string, args ...string) (*exec.Cmd, map[string]string, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		waitErr := cmd.Wait()
		return nil, nil, fmt.Errorf("%s did not start: %w", filepath.Base(path), errors.Join(waitErr))
	}
	fields := map[string]string{}
	for _, word := range strings.Fields(line) {
		if name, value, ok := strings.Cut(word, "="); ok {
			fields[name] = value
		}
	}
	return cmd, fields, nil
}
