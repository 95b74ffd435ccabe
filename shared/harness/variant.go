package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Variant is a stage with changes. It is how wrong turns, ablations, mixes, exercises and the summit
// are written down, in YAML or in Go. Without any change it is the stage as it is.
//
// A path in it without a slash is a file of the stage ("conn.go"); one with a slash begins at the
// repository's root ("shared/app/app.go").
type Variant struct {
	// Name is what the program is called, and the variant in errors; "" is the stage's folder.
	Name string `yaml:"name"`
	// Stage is a stage as [PickStage] takes it, or another package's path from the root.
	Stage string `yaml:"stage"`
	// Change comes first, then each of Then on top of it.
	Change `yaml:",inline"`
	Then   []Change `yaml:"then"`
	// Flags are flags for go build, Args for the server, Env variables of its environment.
	Flags []string `yaml:"flags"`
	Args  []string `yaml:"args"`
	Env   []string `yaml:"env"`
}

// Change is one change. Its parts are applied in the order of the fields; those left empty change
// nothing.
type Change struct {
	// Files are taken from the stage From as they are there, by name.
	From  string   `yaml:"from"`
	Files []string `yaml:"files"`
	// Folder is a folder of the repository whose Go and YAML files replace those of the same path, or are
	// new. Below it, a file in a folder of its own ("shared/app/app.go") is one of the repository.
	Folder string `yaml:"folder"`
	// Edits replace text.
	Edits []Edit `yaml:"edits"`
	// Patch is the path of a unified diff. Its file names follow the rule above, behind a/ and b/.
	Patch string `yaml:"patch"`
	// Diff is a unified diff itself.
	Diff string `yaml:"diff"`
}

// Edit replaces Old, which File must have exactly once, by New.
type Edit struct {
	File string `yaml:"file"`
	Old  string `yaml:"old"`
	New  string `yaml:"new"`
}

// ParseVariant reads a variant from YAML and refuses fields that there are not.
func ParseVariant(text []byte) (v Variant, err error) {
	if err := DecodeYAML(text, &v); err != nil {
		return v, fmt.Errorf("variant: %w", err)
	}
	if v.Stage == "" {
		return v, errors.New("a variant needs a stage")
	}
	return v, nil
}

// DecodeYAML reads text into to, and refuses fields that to does not have.
func DecodeYAML(text []byte, to any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	return decoder.Decode(to)
}

// Summit is the variant of bench/variants/summit.yaml: the last stage with the references of those exercises that make it
// faster, one entry of Then each, in order.
func Summit(root string) (v Variant, err error) {
	text, err := os.ReadFile(filepath.Join(root, "bench", "variants", "summit.yaml"))
	if err != nil {
		return v, err
	}
	return ParseVariant(text)
}

// Source applies the changes and returns what is to be built. Nothing is written in the repository.
func (v Variant) Source(ctx context.Context, root string) (*Source, error) {
	s, err := v.source(ctx, root)
	if err != nil && v.Name != "" {
		err = fmt.Errorf("%s: %w", v.Name, err)
	}
	return s, err
}

func (v Variant) source(ctx context.Context, root string) (*Source, error) {
	folder, err := packageFolder(root, v.Stage)
	if err != nil {
		return nil, err
	}
	s, err := ReadSource(root, folder)
	if err != nil {
		return nil, err
	}
	if v.Name != "" {
		s.Name = v.Name
	}
	s.Flags = v.Flags
	for _, c := range append([]Change{v.Change}, v.Then...) {
		if err := s.apply(ctx, c); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// packageFolder is a package's folder from the root: that of a stage, or what is one already.
func packageFolder(root, text string) (string, error) {
	if strings.Contains(text, "/") {
		return text, nil
	}
	return FindStage(root, text)
}

func (s *Source) apply(ctx context.Context, c Change) error {
	if c.From != "" || len(c.Files) > 0 {
		if err := s.take(c.From, c.Files); err != nil {
			return err
		}
	}
	if c.Folder != "" {
		if err := s.lay(c.Folder); err != nil {
			return err
		}
	}
	for _, e := range c.Edits {
		if err := s.edit(e); err != nil {
			return err
		}
	}
	if c.Patch != "" {
		diff, err := os.ReadFile(filepath.Join(s.Root, filepath.FromSlash(c.Patch)))
		if err != nil {
			return err
		}
		if err := s.patch(ctx, diff); err != nil {
			return fmt.Errorf("%s: %w", path.Base(c.Patch), err)
		}
	}
	if c.Diff != "" {
		return s.patch(ctx, []byte(c.Diff))
	}
	return nil
}

// take replaces files by those of another package.
func (s *Source) take(from string, names []string) error {
	if from == "" || len(names) == 0 {
		return errors.New("from and files go together: which files, of which stage?")
	}
	folder, err := packageFolder(s.Root, from)
	if err != nil {
		return err
	}
	other, err := ReadSource(s.Root, folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		text, ok := other.Files[name]
		if !ok {
			return fmt.Errorf("%s has no file %s: it has %s", folder, name, strings.Join(other.Names(), ", "))
		}
		s.Files[name] = text
	}
	return nil
}

// lay puts the Go and YAML files of a folder over those that there are.
func (s *Source) lay(folder string) error {
	top := filepath.Join(s.Root, filepath.FromSlash(folder))
	return filepath.WalkDir(top, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(at) != ".go" && filepath.Ext(at) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, at)
		if err != nil {
			return err
		}
		return s.put(filepath.ToSlash(name), text)
	})
}

func (s *Source) edit(e Edit) error {
	text, err := s.get(e.File)
	if err != nil {
		return err
	}
	if n := bytes.Count(text, []byte(e.Old)); n != 1 || e.Old == "" {
		return fmt.Errorf("%s has this %d times, not once:\n%s", e.File, n, e.Old)
	}
	return s.put(e.File, bytes.Replace(text, []byte(e.Old), []byte(e.New), 1))
}

// fewerLines makes git look at one line around a change where three have changed themselves, so
// that a fix elsewhere in a file does not break the patches on it.
const fewerLines = "-C1"

// patch applies a unified diff. Where the lines have moved, git finds them.
func (s *Source) patch(ctx context.Context, diff []byte) error {
	folder, err := os.MkdirTemp("", "harness-patch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return err
	}
	list, err := gitApply(ctx, folder, diff, "--numstat", "-z")
	if err != nil {
		return err
	}
	// Lines added, lines removed and the path, with tabs between and NUL behind: git-apply(1).
	var names []string
	for entry := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		words := strings.SplitN(entry, "\t", 3)
		name := words[len(words)-1]
		names = append(names, name)
		text, err := s.get(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a new one
		}
		if err != nil {
			return err
		}
		at := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(at, text, 0o666); err != nil {
			return err
		}
	}
	if _, err := gitApply(ctx, folder, diff); err != nil {
		if _, again := gitApply(ctx, folder, diff, fewerLines); again != nil {
			return err
		}
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := s.put(name, text); err != nil { // nil: the diff has removed it
			return err
		}
	}
	return nil
}

// gitApply runs git apply in a folder that belongs to no repository, with nobody's settings.
func gitApply(ctx context.Context, folder string, diff []byte, flags ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"apply", "--whitespace=nowarn"}, flags...)...)
	cmd.Dir, cmd.Stdin = folder, bytes.NewReader(diff)
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "GIT_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(folder),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "LC_ALL=C")
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("the command git is not there: patches need it")
	case err != nil:
		return "", fmt.Errorf("the patch does not apply: %s", strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}
