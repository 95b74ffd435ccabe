package differential

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// binariesVariable tells the processes that `go test -fuzz` starts where the first one has put the binaries.
const binariesVariable = "QPS_LADDER_DIFFERENTIAL_BINARIES"

// root is the module's folder.
const root = "../../.."

// summit is what the variant of that name is called here.
const summit = "summit"

// target is a running server.
type target struct {
	name, address string
}

// startStages builds all stages and the summit, and starts each; those whose requests are views also in the mode that overwrites a request's
// bytes as soon as its views are dead. The first target is stage 0.
func startStages(t testing.TB) []target {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the servers need Linux: there is no epoll here")
	}
	stages, err := harness.Stages(root)
	require.NoError(t, err)
	require.Len(t, stages, 6)
	stages = append(stages, summit)
	binaries := build(t, stages)
	files := filepath.Join(binaries, "files")
	var targets []target
	for i, name := range stages {
		// Deadlines are tested elsewhere; here a slow machine must not bring any about.
		flags := strings.Fields("-idle-timeout 1h -head-timeout 1h -body-timeout 1h -body-total-timeout 1h -write-timeout 1h -linger-timeout 1h")
		flags = append(flags, "-static", files)
		start := func(name string, flags ...string) {
			s, err := harness.StartServer(context.Background(), harness.ServerCommand{Command: harness.Command{Path: filepath.Join(binaries, stages[i]), Args: flags}})
			require.NoError(t, err)
			t.Cleanup(func() {
				if err := s.Stop(); err != nil || s.Stderr() != "" {
					t.Errorf("%s: %v; standard error: %s", name, err, s.Stderr())
				}
			})
			targets = append(targets, target{name, s.Ready.Address})
		}
		start(name, flags...)
		if i >= 3 {
			start(name+" -poison", append(flags, "-poison")...)
		}
	}
	return targets
}

// built says where the binaries are, once they are there.
var built struct {
	sync.Mutex
	folder string
}

func TestMain(m *testing.M) {
	built.folder = os.Getenv(binariesVariable)
	inherited := built.folder != ""
	code := m.Run()
	if !inherited && built.folder != "" {
		os.RemoveAll(built.folder)
	}
	os.Exit(code)
}

// build builds all stages, once for all tests, and says where.
func build(t testing.TB, stages []string) string {
	t.Helper()
	noteSources(t)
	built.Lock()
	defer built.Unlock()
	if built.folder != "" {
		return built.folder
	}
	into, err := os.MkdirTemp("", "differential")
	require.NoError(t, err)
	built.folder = into
	os.Setenv(binariesVariable, into)
	files := filepath.Join(into, "files")
	require.NoError(t, os.Mkdir(files, 0o700))
	for name, size := range map[string]int{"small.txt": 100, "large.bin": 70_000, "index.html": 0} {
		require.NoError(t, os.WriteFile(filepath.Join(files, name), bytes.Repeat([]byte("f"), size), 0o600))
	}
	stages = slices.DeleteFunc(slices.Clone(stages), func(name string) bool { return name == summit })
	require.NoError(t, harness.BuildStages(context.Background(), root, into, stages, "-ldflags=-s -w"))
	v, err := harness.Summit(root)
	require.NoError(t, err)
	source, err := v.Source(context.Background(), root)
	require.NoError(t, err)
	require.NoError(t, source.BuildTo(context.Background(), filepath.Join(into, summit), "-ldflags=-s -w"))
	return into
}

// noteSources looks at every source file of the servers. The go command sees which files a test looks at, and
// does not take an old result for the present one when they have changed.
func noteSources(t testing.TB) {
	t.Helper()
	for _, pattern := range []string{"go.mod", "go.sum", "stage*/*.go", "shared/*/*.go", "bench/variants/summit.yaml", "docs/workshop/exercises/*/reference.patch", "docs/workshop/exercises/*/_reference/*"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, file := range files {
			_, err := os.Stat(file)
			require.NoError(t, err)
		}
	}
}
