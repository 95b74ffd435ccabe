package workshop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is how long after the last change a check begins: an editor writes a file in several steps.
var settleTime = 200 * time.Millisecond

// emptyTries is how many times as long it is waited for a file that has nothing in it yet.
const emptyTries = 10

// Watch runs an exercise's checks, without the common suite, whenever what is in its folder has changed, until ctx is
// done. A change ends a check that is under way. On a terminal the keys h, n and q give a hint, go on to the next
// exercise, and end it. The folder may be laid out anew meanwhile.
func (w *Workshop) Watch(ctx context.Context, which string) error {
	e, err := exercise(w.root, which)
	if err != nil {
		return err
	}
	if _, err := e.laidOut(w.root); err != nil {
		return err
	}
	if err := cleanEnvironment(ctx); err != nil {
		return err
	}
	keys, restore := keysOf(os.Stdin)
	defer restore()
	for e != nil && err == nil {
		e, err = w.watch(ctx, e, keys, func(ctx context.Context, e *Exercise, own files) error {
			return check(ctx, w.out, w.root, e, own, CheckOptions{NoSuite: true})
		})
	}
	return err
}

// watch is Watch for one exercise. It answers the one to go on with, nil for none.
func (w *Workshop) watch(ctx context.Context, e *Exercise, keys <-chan byte, check func(context.Context, *Exercise, files) error) (next *Exercise, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	changed, lost, err := follow(ctx, w.root, e)
	if err != nil {
		return nil, err
	}
	o := w.out
	var (
		checked string             // hash of the code that a check was begun of
		done    chan error         // of the check that is under way; nil if there is none
		abort   context.CancelFunc // of the same
		wanted  byte               // a key that waits for its end
	)
	stop := func() {
		if done != nil {
			abort()
			<-done
			done = nil
		}
	}
	defer stop()
	look := func() {
		own, err := e.laidOut(w.root)
		if err != nil {
			stop()
			checked = ""
			o.say("%s", o.paint(red, err.Error()))
			o.say("Waiting for it to come back; Ctrl-C ends this.")
			return
		}
		code := own.hash()
		if code == checked {
			return
		}
		stop()
		checked = code
		if o.terminal {
			fmt.Fprint(o.Writer, "\x1b[H\x1b[2J\x1b[3J") // home, wipe the screen and what scrolled off
		}
		var running context.Context
		running, abort = context.WithCancel(ctx)
		done = make(chan error, 1)
		go func(done chan<- error) { done <- check(running, e, own) }(done)
	}
	press := func(key byte) (leave bool) {
		switch key {
		case 'h':
			if err := w.Hint(e.Name, false); err != nil {
				o.say("%s", o.paint(red, err.Error()))
			}
		case 'n':
			if next, err = w.layOutNext(e); next == nil && err == nil {
				o.say("There is no other that is not solved.")
			}
		}
		return next != nil || err != nil
	}
	look()
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case err := <-lost:
			return nil, err
		case <-changed:
			look()
		case err := <-done:
			done = nil
			abort()
			if err != nil && ctx.Err() == nil {
				o.say("%s", o.paint(red, err.Error()))
			}
			if wanted != 0 && press(wanted) {
				return next, err
			}
			wanted = 0
			prompt := "Waiting for you to save; Ctrl-C ends this."
			if keys != nil {
				prompt = "Waiting for you to save. h: a hint, n: the next exercise, q: the end."
			}
			o.say("%s", prompt)
		case key := <-keys:
			switch {
			case key == 'q':
				return nil, nil
			case done != nil:
				wanted = key
			case press(key):
				return next, err
			}
		}
	}
}

// follow sends on changed when something in an exercise's folder may have changed and has come to rest; lost says why it
// cannot go on. The folder may go and come back.
func follow(ctx context.Context, root string, e *Exercise) (changed <-chan struct{}, lost <-chan error, err error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot watch files: %w", err)
	}
	// The folder, not its files: an editor may save by renaming a new file over the old one. And the one above it: the
	// folder may be renamed, and made anew.
	folder := e.work(root)
	for _, path := range []string{filepath.Dir(folder), folder} {
		if err := watcher.Add(path); err != nil {
			watcher.Close()
			return nil, nil, fmt.Errorf("cannot watch %s/%s: %w", workPath, e.Name, err)
		}
	}
	send, fail := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		defer watcher.Close()
		var rest <-chan time.Time
		empty := 0
		for {
			select {
			case <-ctx.Done():
				return
			case <-rest:
				rest = nil
				if empty++; empty < emptyTries && hasEmpty(folder) {
					rest = time.After(settleTime) // truncated, to be written next
					continue
				}
				select {
				case send <- struct{}{}:
				default: // it has not been taken since the last one
				}
			case event, ok := <-watcher.Events:
				if !ok {
					fail <- errors.New("the folder is not watched any more")
					return
				}
				switch {
				case event.Name == folder:
					if event.Has(fsnotify.Create) {
						watcher.Remove(folder) // the one that was there before
						watcher.Add(folder)
					}
				case filepath.Dir(event.Name) != folder, event.Op == fsnotify.Chmod:
					continue
				case filepath.Ext(event.Name) != ".go" && filepath.Base(event.Name) != answersFile:
					continue
				}
				empty, rest = 0, time.After(settleTime)
			case err, ok := <-watcher.Errors:
				if !ok {
					err = errors.New("the folder is not watched any more")
				}
				fail <- fmt.Errorf("cannot watch files: %w", err)
				return
			}
		}
	}()
	return send, fail, nil
}

func hasEmpty(folder string) bool {
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Size() == 0 && strings.HasSuffix(entry.Name(), ".go") {
			return true
		}
	}
	return false
}
