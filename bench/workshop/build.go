package workshop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// buildLimit is for a build with nothing in the cache; the compiler hangs for nobody.
const buildLimit = 5 * time.Minute

// errBuild says that code does not build; its text is what the compiler said, for the learner.
type errBuild struct{ text string }

func (e *errBuild) Error() string { return e.text }

// build builds a package of this repository, "./work/02-conn-timer".
func build(ctx context.Context, root, pkg, binary string, flags ...string) error {
	arguments := append([]string{"build", "-buildvcs=false", "-o", binary}, flags...)
	return runGo(ctx, root, append(arguments, pkg)...)
}

func runGo(ctx context.Context, root string, arguments ...string) error {
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = root
	output, err := command.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the build did not end within %v", buildLimit)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failed):
		return &errBuild{shorten(string(output), 12)}
	}
	return fmt.Errorf("cannot run go: %w", err)
}

// shorten keeps the first lines of a text.
func shorten(text string, most int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > most {
		left := len(lines) - most
		lines = append(lines[:most], fmt.Sprintf("… and %d lines more", left))
	}
	return strings.Join(lines, "\n")
}

// overlay writes files into folder and returns a file for go build's -overlay that makes them the
// package work/name, without a trace in the repository.
func (f files) writeOverlay(root, folder, name string) (string, error) {
	replace := map[string]string{}
	for file, text := range f {
		path := filepath.Join(folder, file)
		if err := os.WriteFile(path, text, 0o666); err != nil {
			return "", err
		}
		replace[filepath.Join(root, workPath, name, file)] = path
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "overlay.json")
	return path, os.WriteFile(path, text, 0o666)
}

// buildOnDisk builds f with flags for which an overlay will not do, in a folder below work/ that go's patterns
// leave out, and that is removed again.
func (f files) buildOnDisk(ctx context.Context, root, label, binary string, flags ...string) error {
	if err := os.MkdirAll(filepath.Join(root, workPath), 0o777); err != nil {
		return err
	}
	parent, err := os.MkdirTemp(filepath.Join(root, workPath), "_build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(parent)
	folder := filepath.Join(parent, label)
	if err := os.Mkdir(folder, 0o777); err != nil {
		return err
	}
	for name, text := range f {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o666); err != nil {
			return err
		}
	}
	return build(ctx, root, "./"+workPath+"/"+filepath.Base(parent)+"/"+label, binary, flags...)
}
