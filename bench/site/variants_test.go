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
	stages, err := stageFolders(root)
	require.NoError(t, err)
	variants, err := readVariants(root)
	require.NoError(t, err)
	for _, v := range variants.Variants {
		t.Run(v.Name, func(t *testing.T) {
			_, err := v.build(t.Context(), root, "", stages)
			require.NoError(t, err)
		})
	}
}
