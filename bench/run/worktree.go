package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Worktree checks a commit out into a temporary folder. remove takes it away
// again, and everything built in it; it is never nil. name is the commit in
// short: what people typed may mean another one tomorrow.
func Worktree(ctx context.Context, root, revision string) (folder, name string, remove func(), err error) {
	remove = func() {}
	if _, err := exec.LookPath("git"); err != nil {
		return "", "", remove, errors.New("the command git is not there: comparing commits needs it")
	}
	commit, err := git(ctx, root, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if ctx.Err() != nil {
		return "", "", remove, ctx.Err()
	}
	if err != nil || commit == "" {
		return "", "", remove, fmt.Errorf("there is no commit %q here: see git log", revision)
	}
	temporary, err := os.MkdirTemp("", "ladder-worktree-")
	if err != nil {
		return "", "", remove, err
	}
	folder = filepath.Join(temporary, "checkout")
	remove = func() {
		_, _ = git(context.Background(), root, "worktree", "remove", "--force", folder)
		_ = os.RemoveAll(temporary)
		_, _ = git(context.Background(), root, "worktree", "prune")
	}
	if _, err := git(ctx, root, "worktree", "add", "--detach", "--quiet", folder, commit); err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("cannot check %s out: %w", revision, err)
		}
		return folder, "", remove, err
	}
	return folder, commit[:min(8, len(commit))], remove, nil
}

// BuildStageAt builds one stage of the checkout at root, as a server whose name
// ends with what it is at.
func BuildStageAt(ctx context.Context, root, stage, at string) (Server, error) {
	name, err := harness.FindStage(root, stage)
	if err != nil {
		return Server{}, err
	}
	// Not among the binaries of this checkout: they would be taken for its own.
	folder := filepath.Join(root, "bench", "out", "at", strings.ReplaceAll(at, " ", "-"))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return Server{}, err
	}
	servers, err := BuildStages(ctx, root, folder, []string{name})
	if err != nil {
		return Server{}, err
	}
	servers[0].Name = harness.ShortName(name) + " " + at
	return servers[0], nil
}

// BuildStagesIn builds stages of another checkout, into that checkout.
func BuildStagesIn(ctx context.Context, root string, stages []string) ([]Server, error) {
	out, err := Out(root)
	if err != nil {
		return nil, err
	}
	return BuildStages(ctx, root, filepath.Join(out, "bin"), stages)
}

// Revision is the commit of the checkout at root, "" when that is not known,
// and with a mark when files differ from it.
func Revision(root string) string {
	revision, err := git(context.Background(), root, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return ""
	}
	if changes, err := git(context.Background(), root, "status", "--porcelain"); err == nil && changes != "" {
		revision += " with changes"
	}
	return revision
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	out, err := harness.Run(ctx, harness.Command{Path: "git", Args: args, Dir: root})
	if err == nil && out.Exit.ExitCode() != 0 {
		lines := strings.Split(strings.TrimSpace(out.Stderr), "\n")
		err = errors.New(cmp.Or(lines[len(lines)-1], out.Exit.String()))
	}
	return strings.TrimSpace(out.Stdout), err
}
