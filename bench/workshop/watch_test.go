package workshop

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/testenv"
)

// watched runs watch of exercise 2 with a check that says what it was begun of, and waits for its end when it is to.
func watched(t *testing.T) (root string, e *Exercise, begun chan files, keys chan byte, over chan *Exercise) {
	// A busy machine may stand still between two writes of one save.
	before := settleTime
	settleTime = time.Second / 2
	t.Cleanup(func() { settleTime = before })
	root = cloneRoot(t)
	_, err := ladder(t, "exercise", "2")
	require.NoError(t, err)
	e, err = exercise(root, "2")
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := Open(&out)
	require.NoError(t, err)
	begun, keys, over = make(chan files, 100), make(chan byte), make(chan *Exercise, 1)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		next, err := w.watch(ctx, e, keys, func(ctx context.Context, _ *Exercise, own files) error {
			begun <- own
			if string(own["slow.go"]) != "" {
				<-ctx.Done() // until a save ends it
			}
			return ctx.Err()
		})
		if err == nil {
			over <- next
		}
	}()
	t.Cleanup(func() { end(); <-ended })
	<-begun // the first, of what is there
	return root, e, begun, keys, over
}

// one waits for a check, and then for a time in which there must be no other.
func one(t *testing.T, begun chan files) files {
	t.Helper()
	select {
	case own := <-begun:
		select {
		case <-begun:
			t.Fatal("a second check")
		case <-time.After(2 * settleTime):
		}
		return own
	case <-time.After(time.Minute):
		t.Fatal("no check")
	}
	return nil
}

func TestWatchFollows(t *testing.T) {
	testenv.Slow(t)
	root, e, begun, keys, over := watched(t)
	path := filepath.Join(e.work(root), "idle.go")
	write := func(path, text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o666)) }

	write(path, "package main // in place\n")
	require.Contains(t, string(one(t, begun)["idle.go"]), "in place")

	// As vim does: the old one aside, a new one, the old one gone.
	require.NoError(t, os.Rename(path, path+"~"))
	write(path, "package main // by rename\n")
	require.NoError(t, os.Remove(path+"~"))
	require.Contains(t, string(one(t, begun)["idle.go"]), "by rename")
	write(filepath.Join(e.work(root), "4913"), "package main // over it\n")
	require.NoError(t, os.Rename(filepath.Join(e.work(root), "4913"), path))
	require.Contains(t, string(one(t, begun)["idle.go"]), "over it")

	// Truncated first, written some time later.
	require.NoError(t, os.Truncate(path, 0))
	time.Sleep(2 * settleTime)
	write(path, "package main // at last\n")
	require.Contains(t, string(one(t, begun)["idle.go"]), "at last")

	for _, name := range []string{"a.go", "b.go", "c.go", "d.go"} {
		write(filepath.Join(e.work(root), name), "package main\n")
	}
	require.NotNil(t, one(t, begun)["d.go"])

	// A save ends the check that is under way, one that changes nothing does not.
	write(filepath.Join(e.work(root), "slow.go"), "package main\n")
	require.NotEmpty(t, one(t, begun)["slow.go"])
	write(path, "package main // at last\n")
	write(filepath.Join(e.work(root), "slow.go"), "")
	require.NoError(t, os.Remove(filepath.Join(e.work(root), "slow.go")))
	require.Empty(t, one(t, begun)["slow.go"])

	// Another terminal lays it out anew.
	_, err := ladder(t, "reset", "2")
	require.NoError(t, err)
	require.Nil(t, one(t, begun)["d.go"])
	write(path, "package main // after the reset\n")
	require.Contains(t, string(one(t, begun)["idle.go"]), "after the reset")

	keys <- 'h'
	keys <- 'n'
	require.Equal(t, "08-leftovers", (<-over).Name)
	p, err := readProgress(root)
	require.NoError(t, err)
	require.Equal(t, 1, p.of(e).Hints)
	require.FileExists(t, filepath.Join(root, "work", "08-leftovers", "conn.go"))
}
