package serve

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPercent(t *testing.T) {
	const MiB = 1 << 20
	for _, c := range []struct {
		live, floor uint64
		want        int
	}{
		{0, 32 * MiB, 800}, // before the first collection
		{1, 32 * MiB, 800}, // more would raise the runtime's own floor
		{3 * MiB, 32 * MiB, 800},
		{5 * MiB, 32 * MiB, 500},
		{8 * MiB, 32 * MiB, 300},
		{16 * MiB, 32 * MiB, 100},
		{31 * MiB, 32 * MiB, 100},
		{32 * MiB, 32 * MiB, 100},
		{1 << 40, 32 * MiB, 100},
		{1, 5 * MiB, 100},
		{1, 8 * MiB, 200},
		{1, maxMinHeap, 26214400},
	} {
		require.Equal(t, c.want, percent(c.live, c.floor), "%d live, floor %d", c.live, c.floor)
	}
}
