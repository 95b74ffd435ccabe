package profile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// edit replaces a piece of text that a file of the repository has exactly once.
type edit struct {
	File string `yaml:"file"` // from the root
	Old  string `yaml:"old"`
	New  string `yaml:"new"`
}

// overlay is a set of files to be read in place of others, for the flag -overlay
// of the go command. The others stay as they are.
type overlay struct {
	root  string
	files map[string]string // text by path from the root
}

func newOverlay(root string) *overlay { return &overlay{root: root, files: map[string]string{}} }

func (o *overlay) apply(edits []edit) error {
	for _, e := range edits {
		text, ok := o.files[e.File]
		if !ok {
			b, err := os.ReadFile(filepath.Join(o.root, filepath.FromSlash(e.File)))
			if err != nil {
				return err
			}
			text = string(b)
		}
		old, changed := strings.TrimSuffix(e.Old, "\n"), strings.TrimSuffix(e.New, "\n")
		if n := strings.Count(text, old); n != 1 {
			return fmt.Errorf("%s has this %d times, not once, so it has changed since:\n%s", e.File, n, old)
		}
		o.files[e.File] = strings.Replace(text, old, changed, 1)
	}
	return nil
}

// goCommand runs the go command at the root, with the overlay, and returns what
// it printed. The flags go behind the first word of args.
func (o *overlay) goCommand(ctx context.Context, args ...string) (string, error) {
	work, err := os.MkdirTemp("", "ladder-overlay-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	replace := map[string]string{}
	for path, text := range o.files {
		// Numbered, as two packages may have a file of the same name.
		changed := filepath.Join(work, fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return "", err
		}
		original, err := filepath.Abs(filepath.Join(o.root, filepath.FromSlash(path)))
		if err != nil {
			return "", err
		}
		replace[original] = changed
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	listPath := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(listPath, list, 0o600); err != nil {
		return "", err
	}
	full := append([]string{args[0], "-buildvcs=false", "-overlay", listPath}, args[1:]...)
	cmd := exec.CommandContext(ctx, "go", full...)
	cmd.Dir = o.root
	text, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("the command go is not there: install Go, see go.dev/dl")
	case err != nil:
		return "", fmt.Errorf("%w: %s", err, oneLine(string(text)))
	}
	return string(text), nil
}
