package suite

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A failure is found again with its seed only if nothing else decides in which order the calls fail.
func TestScheduleFollowsFromSeed(t *testing.T) {
	calls := shuffledCalls(7)
	require.Len(t, calls, len(failures))
	for range 20 {
		require.Equal(t, calls, shuffledCalls(7))
	}
	require.NotEqual(t, calls, shuffledCalls(8))
}
