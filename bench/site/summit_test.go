package site

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/typecheck"
)

// Each part of the summit fits the stage alone, and behind the others: the figures are of both.
func TestSummitVariantsCompile(t *testing.T) {
	a, err := readSummit(root)
	require.NoError(t, err)
	var names []string
	checker, err := typecheck.New(t.Context(), root, "./stage...")
	require.NoError(t, err)
	for _, v := range a.Variants {
		names = append(names, v.Name)
		source, err := v.Source(t.Context(), root)
		require.NoError(t, err)
		require.Empty(t, source.Others, "checked is the stage alone")
		require.NoError(t, checker.Check(source.Files), v.Name)
	}
	require.Equal(t, []string{"06-idle-scanner", "07-prefix", "18-no-library", "+07-prefix", "summit"}, names)
}
