package testenv

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBrowser(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(slowVariable, "1")
	for _, c := range []struct {
		value         string
		skips, failed bool
	}{{"", true, false}, {"required", false, true}} {
		t.Setenv(browserVariable, c.value)
		var inner fake
		done := make(chan struct{})
		go func() {
			defer close(done)
			Browser(&inner)
		}()
		<-done
		require.Equal(t, c.skips, inner.skipped)
		require.Equal(t, c.failed, inner.failed)
	}
}

// fake notes how a test was ended, which ends its goroutine.
type fake struct {
	testing.TB
	skipped, failed bool
}

func (f *fake) Helper()      {}
func (f *fake) Skip(...any)  { f.skipped = true; runtime.Goexit() }
func (f *fake) Fatal(...any) { f.failed = true; runtime.Goexit() }
