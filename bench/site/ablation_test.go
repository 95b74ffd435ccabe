package site

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// A variant that no longer fits its stage, or does not compile, would only be
// found out when somebody measures.
func TestVariantsCompile(t *testing.T) {
	testenv.Slow(t) // builds a server for each variant
	a, err := readAblation(root)
	require.NoError(t, err)
	for _, v := range a.Variants {
		t.Run(v.Name, func(t *testing.T) {
			source, err := v.Source(t.Context(), root)
			require.NoError(t, err)
			require.NoError(t, source.Compile(t.Context()))
		})
	}
}
