package site

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

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
	// No Shutdown: it waits for connections on which a browser has asked for nothing yet, and a
	// reader who ends it has read enough.
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

// ServeByStage lets one of the project's own servers serve the site until ctx is done.
func ServeByStage(ctx context.Context, root, folder, stage, address string, out io.Writer) error {
	if err := onLoopback(address); err != nil {
		return err
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "docs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	server, err := startStage(ctx, root, work, stage, "-addr", address, "-static", folder)
	if err != nil {
		return err
	}
	defer server.Close()
	fmt.Fprintf(out, "http://%s/static/ served by %s (Ctrl-C ends it)\n", server.Ready.Address, server.Name)
	select {
	case <-server.Ended():
		return server.EndedError("")
	case <-ctx.Done():
		return server.Stop()
	}
}

// startStage builds a stage into work and starts it. The end of ctx does not end it.
func startStage(ctx context.Context, root, work, stage string, args ...string) (*harness.Server, error) {
	source, err := harness.Variant{Stage: stage}.Source(ctx, root)
	if err != nil {
		return nil, err
	}
	program, err := source.Build(ctx, work)
	if err != nil {
		return nil, err
	}
	return harness.StartServer(context.WithoutCancel(ctx), harness.ServerCommand{
		Command: harness.Command{Name: source.Name, Path: program, Args: args}, NoAdmin: true,
	})
}
