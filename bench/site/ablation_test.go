package site

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/typecheck"
)

// A variant that no longer fits its stage, or does not compile, would only be
// found out when somebody measures.
func TestVariantsCompile(t *testing.T) {
	a, err := readAblation(root, ablationName)
	require.NoError(t, err)
	beside, err := readAblation(root, elsewhereName)
	require.NoError(t, err)
	uring, err := readAblation(root, uringName)
	require.NoError(t, err)
	a.Variants = append(append(a.Variants, beside.Variants...), uring.Variants...)
	checker, err := typecheck.New(t.Context(), root, "./stage...")
	require.NoError(t, err)
	for _, v := range a.Variants {
		t.Run(v.Name, func(t *testing.T) {
			source, err := v.Source(t.Context(), root)
			require.NoError(t, err)
			require.Empty(t, source.Others, "checked is the stage alone")
			require.NoError(t, checker.Check(source.Files))
		})
	}
}
