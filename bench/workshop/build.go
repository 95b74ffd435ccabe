package workshop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// buildLimit is for a build with nothing in the cache; the compiler hangs for nobody.
const buildLimit = 5 * time.Minute

// noDebugger leaves out what only a debugger reads: it would take a quarter of the time of a build.
const noDebugger = "-ldflags=-s -w"

// source is f as the package work/label.
func (f files) source(root, label string) *harness.Source {
	return &harness.Source{Root: root, Name: label, Package: workPath + "/" + label, Files: f}
}

// buildIn builds f as the package work/label in a folder of its own below folder. What the compiler
// says is a *harness.BuildError.
func (f files) buildIn(ctx context.Context, root, folder, label string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, buildLimit, fmt.Errorf("the build did not end within %v", buildLimit))
	defer cancel()
	binary, err := f.source(root, label).Build(ctx, folder, noDebugger)
	if errors.Is(err, context.DeadlineExceeded) {
		err = context.Cause(ctx)
	}
	return binary, err
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
