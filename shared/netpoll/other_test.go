//go:build !linux

package netpoll

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEverythingIsUnsupported(t *testing.T) {
	c := new(Counters)
	_, err := NewPoller(c)
	require.ErrorIs(t, err, ErrUnsupported)
	_, _, err = Listen(c, "127.0.0.1:0", ListenOptions{})
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = newReserve(c, 1)
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = NewVector(1).Send(c, 0)
	require.ErrorIs(t, err, ErrUnsupported)
	require.Equal(t, Counters{}, *c)
}
