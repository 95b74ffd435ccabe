package site

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/bench/typecheck"
)

// A variant that no longer fits its stage, or does not compile, would only be
// found out when somebody measures.
func TestVariantsCompile(t *testing.T) {
	stages, err := stageFolders(root)
	require.NoError(t, err)
	variants, err := readVariants(root)
	require.NoError(t, err)
	checker, err := typecheck.New(t.Context(), root, "./stage...")
	require.NoError(t, err)
	names := dataFiles{stages: stages}
	for _, v := range variants.Variants {
		t.Run(v.Name, func(t *testing.T) {
			files := map[string][]byte{}
			paths, err := filepath.Glob(filepath.Join(root, names.server(v.Stage), "*.go"))
			require.NoError(t, err)
			require.NotEmpty(t, paths)
			for _, path := range paths {
				files[filepath.Base(path)], err = os.ReadFile(path)
				require.NoError(t, err)
			}
			changed, err := v.overlay(root, stages)
			require.NoError(t, err)
			for path, text := range changed {
				files[filepath.Base(path)] = []byte(text)
			}
			require.NoError(t, checker.Check(files))
		})
	}
}
