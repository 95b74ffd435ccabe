package suite

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// The design that no flag selects: all loops wait at one epoll instance. It has to be the same server.
func TestOneEpoll(t *testing.T) {
	testenv.Slow(t)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	variant := harness.Variant{
		Name: "one-epoll", Stage: "stage1", Change: harness.Change{Patch: "bench/variants/one-epoll.patch"},
	}
	source, err := variant.Source(t.Context(), root)
	require.NoError(t, err)
	var flags []string
	if raceEnabled {
		flags = append(flags, "-race")
	}
	path, err := source.Build(t.Context(), t.TempDir(), flags...)
	require.NoError(t, err)
	p := Program{Path: path, Stage: "stage1-reuseport"}
	for _, check := range CommonChecks() {
		OnTest(t).Run(check.Name, func(t T) {
			t.Parallel()
			check.Run(t, p)
		})
	}
}
