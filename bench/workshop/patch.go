package workshop

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// hunk is one place of a unified diff.
type hunk struct {
	line     int // where it begins in the old file, from 1
	old, new []string
}

// apply applies a unified diff to f. The place of a hunk is found by its lines; their number decides only
// between several such places, so that a fix elsewhere in a file does not break the patches on it. If the lines
// around a change have changed themselves, it is tried with fewer of them. What comes before the first file is a comment.
func apply(f files, diff string) error {
	var name string
	var hunks []hunk
	finish := func() error {
		if name == "" {
			return nil
		}
		text, err := applyHunks(string(f[name]), hunks)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f[name] = []byte(text)
		return nil
	}
	lines := slices.Collect(strings.Lines(diff))
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ "):
			if err := finish(); err != nil {
				return err
			}
			path, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(lines[i+1], "+++ ")), "\t")
			name, hunks = path[strings.LastIndexByte(path, '/')+1:], nil
			i++
		case name == "":
		case strings.HasPrefix(line, "@@ "):
			at, err := strconv.Atoi(strings.FieldsFunc(line, func(r rune) bool { return !('0' <= r && r <= '9') })[0])
			if err != nil {
				return err
			}
			hunks = append(hunks, hunk{line: at})
		case len(hunks) > 0:
			h := &hunks[len(hunks)-1]
			content := ""
			if len(line) > 1 {
				content = line[1:]
			}
			switch line[0] {
			case '+':
				h.new = append(h.new, content)
			case '-':
				h.old = append(h.old, content)
			case ' ':
				h.old, h.new = append(h.old, content), append(h.new, content)
			case '\n': // an empty line of context whose blank an editor has removed
				h.old, h.new = append(h.old, "\n"), append(h.new, "\n")
			}
		}
	}
	if name == "" {
		return errors.New("there is no diff in it")
	}
	return finish()
}

func applyHunks(text string, hunks []hunk) (string, error) {
	lines := slices.Collect(strings.Lines(text))
	drift := 0
	for _, h := range hunks {
		first := ""
		if len(h.old) > 0 {
			first = strings.TrimSpace(h.old[0])
		}
		at := -1
		for fuzz := 0; at < 0 && fuzz <= mostFuzz; fuzz++ {
			if fuzz > 0 && !h.trim() {
				break
			}
			at = nearest(lines, h.old, h.line-1+drift)
		}
		if at < 0 {
			return "", fmt.Errorf("the place of line %d (%q) is not there any more", h.line, first)
		}
		lines = slices.Concat(lines[:at], h.new, lines[at+len(h.old):])
		drift = at - (h.line - 1) + len(h.new) - len(h.old)
	}
	return strings.Join(lines, ""), nil
}

// mostFuzz is how many lines of context may be left out at either end.
const mostFuzz = 2

// trim leaves out the first and the last line if they are context, and says whether it could. A change that
// has no context left on one side is not trimmed any further on that side.
func (h *hunk) trim() bool {
	trimmed := false
	if len(h.old) > 1 && len(h.new) > 0 && h.old[0] == h.new[0] {
		h.old, h.new, h.line = h.old[1:], h.new[1:], h.line+1
		trimmed = true
	}
	if n, m := len(h.old)-1, len(h.new)-1; n > 0 && m >= 0 && h.old[n] == h.new[m] {
		h.old, h.new = h.old[:n], h.new[:m]
		trimmed = true
	}
	return trimmed
}

// nearest is where old stands in lines, as near as possible to at; -1 if it does not.
func nearest(lines, old []string, at int) int {
	best := -1
	for i := 0; i+len(old) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(old)], old) && (best < 0 || distance(i, at) < distance(best, at)) {
			best = i
		}
	}
	return best
}

func distance(a, b int) int { return max(a-b, b-a) }
