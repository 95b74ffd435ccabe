package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is what the go.mod at the root of this repository declares.
const module = "module github.com/qps-ladder/qps-ladder"

// Root finds the root of this repository, from the current folder upwards.
func Root() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := folder; ; at = filepath.Dir(at) {
		b, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && (strings.HasPrefix(string(b), module+"\n") || strings.HasPrefix(string(b), module+"\r\n")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not inside the repository of the ladder: change into it first", folder)
		}
	}
}

// Out is the folder that reports and binaries go to; it is made when missing.
func Out(root string) (string, error) {
	out := filepath.Join(root, "bench", "out")
	return out, os.MkdirAll(filepath.Join(out, "bin"), 0o755)
}

var stageFolder = regexp.MustCompile(`^stage[0-9]+-[a-z0-9-]+$`)

// Stages lists the stages' folders in order.
func Stages(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && stageFolder.MatchString(e.Name()) {
			out = append(out, e.Name())
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no stage in %s: is this a whole checkout?", root)
	}
	return out, nil
}

// PickStage finds a stage by its number ("3"), its short name ("stage3") or its folder.
func PickStage(stages []string, text string) (string, error) {
	for _, s := range stages {
		short, _, _ := strings.Cut(s, "-")
		if text == s || text == short || "stage"+text == short {
			return s, nil
		}
	}
	return "", fmt.Errorf("there is no stage %q: choose one of %s", text, strings.Join(stages, ", "))
}

// BuildStages builds stages of the checkout at root into folder and returns them as servers.
func BuildStages(ctx context.Context, root, folder string, stages []string) ([]Server, error) {
	args := []string{"build", "-o", folder + string(filepath.Separator)}
	for _, s := range stages {
		args = append(args, "./"+s)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, exec.ErrNotFound) {
			return nil, errors.New("the command go is not there: install Go, see go.dev/dl")
		}
		return nil, fmt.Errorf("cannot build %s: %s", strings.Join(stages, ", "), compilerError(string(text), err))
	}
	servers := make([]Server, len(stages))
	for i, s := range stages {
		servers[i] = Server{Name: s, Path: filepath.Join(folder, s), Admin: true}
	}
	return servers, nil
}

// compilerError picks the line of a compiler's output that says what is wrong.
func compilerError(text string, err error) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	i := slices.IndexFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "#") && line != "" })
	if i < 0 {
		return err.Error()
	}
	return lines[i]
}

// BareC is the name of the C loop in tables.
const BareC = "bare-c"

// BuildBareC builds the C loop; ok is false, and no error, without a C compiler.
func BuildBareC(ctx context.Context, root, folder string) (s Server, ok bool, err error) {
	compiler := ""
	for _, name := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			compiler = path
			break
		}
	}
	if compiler == "" {
		return s, false, nil
	}
	s = Server{Name: BareC, Path: filepath.Join(folder, BareC), Can: fixedAnswer}
	cmd := exec.CommandContext(ctx, compiler, "-O2", "-o", s.Path, filepath.Join(root, "bench", "c", "bare.c"))
	if text, err := cmd.CombinedOutput(); err != nil {
		return s, false, fmt.Errorf("cannot build the C loop: %s", compilerError(string(text), err))
	}
	return s, true, nil
}

// Revision is the commit of the checkout at root, "" when that is not known,
// and with a mark when files differ from it.
func Revision(root string) string {
	revision, err := git(root, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return ""
	}
	if changes, err := git(root, "status", "--porcelain"); err == nil && changes != "" {
		revision += " with changes"
	}
	return revision
}

func git(root string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	text, err := cmd.Output()
	return strings.TrimSpace(string(text)), err
}
