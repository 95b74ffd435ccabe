package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Worktree checks a commit out into a temporary folder. remove takes it away
// again, and everything built in it; it is never nil. name is the commit in
// short: what people typed may mean another one tomorrow.
func Worktree(ctx context.Context, root, revision string) (folder, name string, remove func(), err error) {
	remove = func() {}
	if _, err := exec.LookPath("git"); err != nil {
		return "", "", remove, errors.New("the command git is not there: comparing commits needs it")
	}
	commit, err := git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil || commit == "" {
		return "", "", remove, fmt.Errorf("there is no commit %q here: see git log", revision)
	}
	temporary, err := os.MkdirTemp("", "ladder-worktree-")
	if err != nil {
		return "", "", remove, err
	}
	folder = filepath.Join(temporary, "checkout")
	remove = func() {
		_, _ = git(root, "worktree", "remove", "--force", folder)
		_ = os.RemoveAll(temporary)
		_, _ = git(root, "worktree", "prune")
	}
	cmd := exec.CommandContext(ctx, "git", "worktree", "add", "--detach", "--quiet", folder, commit)
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		} else {
			err = fmt.Errorf("cannot check %s out: %s", revision, lastLine(string(text), err))
		}
		return folder, "", remove, err
	}
	return folder, commit[:min(8, len(commit))], remove, nil
}

// BuildStageAt builds one stage of the checkout at root, as a server whose name
// ends with what it is at.
func BuildStageAt(ctx context.Context, root, stage, at string) (Server, error) {
	all, err := Stages(root)
	if err != nil {
		return Server{}, err
	}
	name, err := PickStage(all, stage)
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
	servers[0].Name = short(name) + " " + at
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

func lastLine(text string, err error) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return err.Error()
}
