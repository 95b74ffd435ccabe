package results

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

func TestPublishedIsKnownOfEveryStage(t *testing.T) {
	root, err := harness.FindRoot()
	require.NoError(t, err)
	stages, err := harness.Stages(root)
	require.NoError(t, err)
	p, err := ReadPublished(root)
	require.NoError(t, err)
	require.Contains(t, p.Note, "132 K is stage1 and stage2 together; 159 K came with six more changes.")
	var column []string
	for _, s := range stages {
		column = append(column, p.Of(s))
	}
	require.Equal(t, []string{"27.5 K", "with 2", "132 K", "140 K", "159 K +", "–"}, column)
	for _, other := range []string{stages[0] + " again", "stage1-reuseport ×2", "stage1 -acceptor", "net/http"} {
		require.Empty(t, p.Of(other), "that is not what the documents measured")
	}
	require.Empty(t, Published{}.Of(stages[0]))
	_, err = ReadPublished(t.TempDir())
	require.Error(t, err)
}
