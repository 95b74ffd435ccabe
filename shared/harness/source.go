package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Source is the source of a program of this repository, as it is to be built: its files may differ
// from those on the disk, or be on no disk at all.
type Source struct {
	// Root is the repository's root.
	Root string
	// Name is what the program is called, and the source in errors.
	Name string
	// Package is the folder that it is built as, from the root: a stage's or "work/02-conn-timer".
	// It need not exist. Its last element is the name that the server gives itself.
	Package string
	// Files are all files of the package by name.
	Files map[string][]byte
	// Others are changed files of other packages, by path from the root; nil is a removed one.
	Others map[string][]byte
	// Flags are for go build.
	Flags []string
}

// ReadSource reads a package's Go files without its tests.
func ReadSource(root, folder string) (*Source, error) {
	s := &Source{Root: root, Name: path.Base(folder), Package: folder, Files: map[string][]byte{}, Others: map[string][]byte{}}
	names, err := sourceNames(filepath.Join(root, filepath.FromSlash(folder)))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if s.Files[name], err = os.ReadFile(s.onDisk(name)); err != nil {
			return nil, err
		}
	}
	if len(s.Files) == 0 {
		return nil, fmt.Errorf("%s has no Go files", folder)
	}
	return s, nil
}

// sourceNames are the files that make a program: without tests.
func sourceNames(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if name := e.Name(); !e.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			names = append(names, name)
		}
	}
	return names, err
}

// As is the source as the package of another folder, a copy of its own.
func (s *Source) As(folder string) *Source {
	other := *s
	other.Package, other.Name = folder, path.Base(folder)
	other.Files, other.Others = maps.Clone(s.Files), maps.Clone(s.Others)
	return &other
}

// Names are the names of the package's files in order.
func (s *Source) Names() []string { return slices.Sorted(maps.Keys(s.Files)) }

// onDisk is where a file of the package is, or would be.
func (s *Source) onDisk(name string) string {
	return filepath.Join(s.Root, filepath.FromSlash(s.Package), name)
}

// local is a path by the rule of [Variant]: whether it is a file of the package, and what it is called.
func (s *Source) local(name string) (ours bool, clean string, err error) {
	if name == "" || !filepath.IsLocal(filepath.FromSlash(name)) || strings.Contains(name, `\`) {
		return false, "", fmt.Errorf("%q is no path inside the repository", name)
	}
	clean = path.Clean(name)
	if rest, ok := strings.CutPrefix(clean, s.Package+"/"); ok {
		clean = rest
	}
	return !strings.Contains(clean, "/"), clean, nil
}

// get is a file's text as it is now; fs.ErrNotExist if there is none.
func (s *Source) get(name string) ([]byte, error) {
	ours, name, err := s.local(name)
	if err != nil {
		return nil, err
	}
	text, changed := s.Others[name]
	if ours {
		text, changed = s.Files[name]
	}
	switch {
	case changed && text != nil:
		return text, nil
	case ours:
		return nil, fmt.Errorf("%s has no file %s: it has %s (%w)", s.Package, name, strings.Join(s.Names(), ", "), fs.ErrNotExist)
	case changed:
		return nil, fmt.Errorf("%s has been removed (%w)", name, fs.ErrNotExist)
	}
	return os.ReadFile(filepath.Join(s.Root, filepath.FromSlash(name)))
}

// put sets a file's text; nil removes the file.
func (s *Source) put(name string, text []byte) error {
	ours, name, err := s.local(name)
	switch {
	case err != nil:
		return err
	case !ours:
		s.Others[name] = text
	case text == nil:
		delete(s.Files, name)
	default:
		s.Files[name] = text
	}
	return nil
}

// BuildError is what the compiler said.
type BuildError struct {
	Name string // of the source
	// Text is the go command's output without its headings. Files are named as they lie, or would
	// lie, in the repository.
	Text string
}

func (e *BuildError) Error() string { return e.Name + " does not build:\n" + e.Text }

// First is the first line of it.
func (e *BuildError) First() string {
	line, _, _ := strings.Cut(e.Text, "\n")
	return line
}

// Build builds the program into folder and says where it is. What comes of the same files and flags
// has the same path; if it is there already and up to date, the go command leaves it alone.
// A source that does not compile is a [*BuildError].
func (s *Source) Build(ctx context.Context, folder string, flags ...string) (program string, err error) {
	program = filepath.Join(folder, s.Hash(flags...)[:12], s.Name)
	return program, s.BuildTo(ctx, program, flags...)
}

// BuildTo is Build with the program's path given.
func (s *Source) BuildTo(ctx context.Context, program string, flags ...string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	_, err = s.Go(ctx, slices.Concat([]string{"build"}, s.Flags, flags, []string{"-o", program, "./" + s.Package})...)
	return err
}

// BuildOnDisk is BuildTo for flags that an overlay will not do for, -cover for instance: the package
// is written to a folder below work/ that the go command's patterns leave out, and removed again.
func (s *Source) BuildOnDisk(ctx context.Context, program string, flags ...string) error {
	work := filepath.Join(s.Root, "work")
	if err := os.MkdirAll(work, 0o777); err != nil {
		return err
	}
	parent, err := os.MkdirTemp(work, "_build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(parent)
	there := s.As(path.Join("work", filepath.Base(parent), path.Base(s.Package)))
	there.Name = s.Name
	if err := os.Mkdir(there.onDisk(""), 0o777); err != nil {
		return err
	}
	for name, text := range there.Files {
		if err := os.WriteFile(there.onDisk(name), text, 0o666); err != nil {
			return err
		}
	}
	err = there.BuildTo(ctx, program, flags...)
	var failed *BuildError
	if errors.As(err, &failed) {
		failed.Text = strings.ReplaceAll(failed.Text, there.Package, s.Package)
	}
	return err
}

// Go runs the go command at the root with this source in place of what is on the disk, and returns
// what it printed. Its flags go behind the first argument, the subcommand, which must be one that builds.
func (s *Source) Go(ctx context.Context, args ...string) (string, error) {
	folder, err := os.MkdirTemp("", "harness-overlay-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	if folder, err = filepath.Abs(folder); err != nil {
		return "", err
	}
	replace, err := s.overlay(folder)
	if err != nil {
		return "", err
	}
	if len(replace) > 0 {
		list, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			return "", err
		}
		overlay := filepath.Join(folder, "overlay.json")
		if err := os.WriteFile(overlay, list, 0o666); err != nil {
			return "", err
		}
		args = slices.Insert(slices.Clone(args), 1, "-overlay", overlay)
	}
	text, err := goCommand(ctx, s.Root, s.Name, args)
	var failed *BuildError
	if errors.As(err, &failed) {
		failed.Text = s.asInRepository(failed.Text, replace)
	}
	return text, err
}

// asInRepository puts the files' own paths for those of what stands for them.
func (s *Source) asInRepository(text string, replace map[string]string) string {
	root, err := filepath.Abs(s.Root)
	if err != nil {
		return text
	}
	for original, changed := range replace {
		name, err := filepath.Rel(root, original)
		if err != nil || changed == "" {
			continue
		}
		text = strings.ReplaceAll(text, changed, filepath.ToSlash(name))
		if short, err := filepath.Rel(root, changed); err == nil { // the go command takes the shorter one
			text = strings.ReplaceAll(text, short, filepath.ToSlash(name))
		}
	}
	return text
}

// overlay writes what is not so on the disk into folder, and returns what stands for what: the
// format of go build's -overlay. "" stands for a file that there is not.
func (s *Source) overlay(folder string) (map[string]string, error) {
	replace := map[string]string{}
	root, err := filepath.Abs(s.Root)
	if err != nil {
		return nil, err
	}
	put := func(name string, text []byte) error {
		original := filepath.Join(root, filepath.FromSlash(name))
		there, err := os.ReadFile(original)
		switch {
		case text == nil:
			replace[original] = ""
			return nil
		case err == nil && bytes.Equal(there, text):
			return nil
		}
		// Numbered, as two packages may have a file of the same name.
		changed := filepath.Join(folder, fmt.Sprintf("%d-%s", len(replace), path.Base(name)))
		replace[original] = changed
		return os.WriteFile(changed, text, 0o666)
	}
	for name, text := range s.Files {
		if err := put(path.Join(s.Package, name), text); err != nil {
			return nil, err
		}
	}
	for name, text := range s.Others {
		if err := put(name, text); err != nil {
			return nil, err
		}
	}
	names, err := sourceNames(s.onDisk(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range names {
		if _, ok := s.Files[name]; !ok {
			replace[filepath.Join(root, filepath.FromSlash(s.Package), name)] = ""
		}
	}
	return replace, nil
}

// BuildStages builds stages as they are into folder, each by its name, in one go.
func BuildStages(ctx context.Context, root, folder string, stages []string, flags ...string) error {
	args := append([]string{"build"}, flags...)
	args = append(args, "-o", folder+string(filepath.Separator))
	for _, s := range stages {
		args = append(args, "./"+s)
	}
	_, err := goCommand(ctx, root, strings.Join(stages, ", "), args)
	return err
}

// goCommand runs the go command, whose first argument is the subcommand.
func goCommand(ctx context.Context, root, name string, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", slices.Insert(slices.Clone(args), 1, "-buildvcs=false")...)
	cmd.Dir = root
	text, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("the command go is not there: install Go, see go.dev/dl")
	case errors.As(err, &failed):
		var lines []string
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "# ") && strings.TrimSpace(line) != "" {
				lines = append(lines, strings.TrimRight(line, "\r\n"))
			}
		}
		if len(lines) == 0 {
			lines = []string{err.Error()}
		}
		return string(text), &BuildError{Name: name, Text: strings.Join(lines, "\n")}
	}
	return string(text), err
}

// Hash is a hash of the changed and own files, the package and the flags, in hexadecimal digits.
func (s *Source) Hash(flags ...string) string {
	h := sha256.New()
	write := func(text []byte) { fmt.Fprintf(h, "%d\n%s", len(text), text) }
	for _, word := range slices.Concat([]string{s.Package, s.Name}, s.Flags, flags) {
		write([]byte(word))
	}
	for _, files := range []map[string][]byte{s.Files, s.Others} {
		write(nil)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			write([]byte(name))
			write(files[name])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
