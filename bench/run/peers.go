package run

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/workload"
)

// peers are the folders of bench/peers and what they are called in tables.
var peers = []struct{ folder, name string }{{"nethttp", "net/http"}, {"fasthttp", "fasthttp"}, {"gnet", "gnet"}, {"nbio", "nbio"}}

// BuildPeers builds the servers of bench/peers, a module of its own, into folder.
func BuildPeers(ctx context.Context, root, folder string) ([]Server, error) {
	args := []string{"build", "-o", folder + string(filepath.Separator)}
	var servers []Server
	for _, p := range peers {
		args = append(args, "./"+p.folder)
		servers = append(servers, Server{Name: p.name, Path: filepath.Join(folder, p.folder), Can: noHops})
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(root, "bench", "peers")
	if text, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("cannot build the peers: %s", compilerError(string(text), err))
	}
	return servers, nil
}

// noHops leaves out the middleware that hops between goroutines: the hop is the
// stages' own, so that the peers have nothing like it to measure.
func noHops(w workload.Workload) bool { return !strings.HasPrefix(w.Name, "async-") }

// fixedAnswer tells which workloads a loop can serve that sends the same bytes
// for every read and never closes a connection.
func fixedAnswer(w workload.Workload) bool {
	return !w.Reconnect && w.Pipeline == 1 && bytes.HasPrefix(w.Request, []byte("GET / "))
}

// WithFlag is a server started with a further flag, which stands in its name.
func WithFlag(s Server, flag string) Server {
	s.Name = short(s.Name) + " " + flag
	s.Args = append(s.Args[:len(s.Args):len(s.Args)], flag)
	return s
}
