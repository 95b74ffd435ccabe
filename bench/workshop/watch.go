package workshop

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is how long after the last change a check begins: an editor writes a file in several steps.
const settleTime = 200 * time.Millisecond

// Watch runs an exercise's checks, without the common suite, whenever a file is saved, until ctx is done.
func (w *Workshop) Watch(ctx context.Context, which string) error {
	e, err := exercise(w.root, which)
	if err != nil {
		return err
	}
	if _, err := e.laidOut(w.root); err != nil {
		return err
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("cannot watch files: %w", err)
	}
	defer watcher.Close()
	// The folder, not its files: an editor may save by renaming a new file over the old one.
	if err := watcher.Add(e.work(w.root)); err != nil {
		return fmt.Errorf("cannot watch %s/%s: %w", workPath, e.Name, err)
	}
	o := w.out
	for {
		if o.terminal {
			fmt.Fprint(o.Writer, "\x1b[H\x1b[2J\x1b[3J") // home, wipe the screen and what scrolled off
		}
		if err := check(ctx, o, w.root, e, true, false); err != nil && ctx.Err() == nil {
			o.say("%s", o.paint(red, err.Error()))
		}
		if ctx.Err() != nil {
			return nil
		}
		o.say("Waiting for you to save; Ctrl-C ends this.")
		if err := nextChange(ctx, watcher); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// nextChange waits for a change of a Go file, and until it has settled.
func nextChange(ctx context.Context, watcher *fsnotify.Watcher) error {
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-settled:
			return nil
		case event, ok := <-watcher.Events:
			if !ok {
				return errors.New("the folder is not watched any more")
			}
			if filepath.Ext(event.Name) == ".go" && !event.Has(fsnotify.Chmod) {
				settled = time.After(settleTime)
			}
		case err, ok := <-watcher.Errors:
			if !ok {
				return errors.New("the folder is not watched any more")
			}
			return fmt.Errorf("cannot watch files: %w", err)
		}
	}
}
