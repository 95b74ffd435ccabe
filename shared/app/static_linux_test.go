package app

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// TestANamedPipeBlocksNobody puts one in a file's place after the look and before the opening.
func TestANamedPipeBlocksNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	writeFile(t, path, "abcd", longAgo)
	a := newStatic(t, filepath.Dir(path))
	var once sync.Once
	watchOpens(a, func(string) {
		once.Do(func() {
			require.NoError(t, os.Remove(path))
			require.NoError(t, syscall.Mkfifo(path, 0o666))
		})
	})
	answered := make(chan http1.Response, 1)
	go func() { answered <- serve(a, "GET", "/static/a.txt") }()
	select {
	case s := <-answered:
		require.Equal(t, 404, s.Status)
	case <-time.After(20 * time.Second):
		// A writer lets go whoever waits.
		if w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			w.Close()
		}
		<-answered
		t.Fatal("the loop is blocked by a named pipe")
	}
	require.Equal(t, 404, serve(a, "GET", "/static/a.txt").Status)
}
