package grade

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/suite"
)

// checked runs checks with a T of the grader's.
func checked(checks ...func(t suite.T)) (passed int, failed string, err error) {
	var all []suite.Check
	for _, f := range checks {
		all = append(all, suite.Check{Name: "check", Run: func(t suite.T, _ suite.Program) { f(t) }})
	}
	return (&Subject{Context: context.Background()}).check("/nowhere", all)
}

// The grader's T keeps the order of *testing.T: parallel parts begin when what started them has returned,
// clean-ups come after all parts, the last one first.
func TestPartsRunInOrder(t *testing.T) {
	var order []string
	passed, failed, err := checked(func(c suite.T) {
		c.Cleanup(func() { order = append(order, "first clean-up") })
		c.Cleanup(func() { order = append(order, "second clean-up") })
		c.Run("parallel", func(c suite.T) {
			c.Parallel()
			order = append(order, "parallel")
		})
		require.True(t, c.Run("serial", func(suite.T) { order = append(order, "serial") }))
		c.Run("skipped", func(c suite.T) {
			c.Skipf("not here")
			order = append(order, "never")
		})
		order = append(order, "end")
	})
	require.NoError(t, err)
	require.Empty(t, failed)
	require.Equal(t, 3, passed, "the parts that have none themselves")
	require.Equal(t, []string{"serial", "end", "parallel", "second clean-up", "first clean-up"}, order)
}

// What is reported is the first failure, in its own words, and nothing new begins after it.
func TestFirstFailureIsReported(t *testing.T) {
	var after atomic.Int64
	_, failed, err := checked(func(c suite.T) {
		require.False(t, c.Run("part", func(c suite.T) {
			require.NoError(c, io.ErrUnexpectedEOF, "the %s one", "second")
			after.Add(1)
		}))
		require.False(t, c.Run("later", func(suite.T) { after.Add(1) }))
	})
	require.Equal(t, "check/part", failed)
	require.Equal(t, errors.New("unexpected EOF\nthe second one"), err)
	require.Zero(t, after.Load())

	_, failed, err = checked(func(c suite.T) { assert.Equal(c, 1, 2) })
	require.Equal(t, "check", failed)
	require.ErrorContains(t, err, "Not equal:\nexpected: 1\nactual  : 2")

	_, _, err = checked(func(suite.T) { panic("oh") })
	require.ErrorContains(t, err, "panic: oh")
}

func TestSubjectThatIsOver(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f := (&Subject{Context: ctx}).CommonSuite()
	require.False(t, f.Holds)
	require.Contains(t, f.Text, "canceled")
}
