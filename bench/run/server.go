package run

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Server says how to start a server that is to be measured.
type Server struct {
	Name string   // as it stands in tables
	Path string   // of the binary
	Args []string // beside the address and the workers
	Env  []string // variables beside those of this process

	// Network is one of Networks, "" for the loopback; Wrapper is what starts the server: see network.inside.
	Network string
	Wrapper []string

	Workers int // 0 for those of the whole run

	// Can tells which workloads it can serve; nil is all.
	Can func(workload.Workload) bool

	// Admin is for servers that have the admin listener of the stages; without
	// it there are no counters.
	Admin bool
}

// WithFile is s with the folder of the file that w asks for, if it does. remove removes that folder; it may be called in any case.
func WithFile(s Server, w workload.Workload) (_ Server, remove func(), err error) {
	if w.File == "" {
		return s, func() {}, nil
	}
	folder, err := os.MkdirTemp("", "ladder-static-")
	if err != nil {
		return s, func() {}, err
	}
	s.Args = append(slices.Clone(s.Args), "-static", folder)
	return s, func() { os.RemoveAll(folder) }, os.WriteFile(filepath.Join(folder, w.File), w.Body, 0o600)
}

// Start starts s on the given CPUs. Whoever has started it has to Stop or Close it.
func Start(ctx context.Context, s Server, cpus []int, workers int) (*harness.Server, error) {
	return harness.StartServer(ctx, harness.ServerCommand{
		Command: harness.Command{
			Name: s.Name, Path: s.Path, Args: append([]string{"-workers", strconv.Itoa(workers)}, s.Args...), Env: s.Env, CPUs: cpus,
		},
		NoAdmin: !s.Admin, Wrapper: s.Wrapper,
	})
}
