package workshop

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// gradedPaths are what all grading goes by: shared/, the stages and the exercises as they are committed, in a folder of
// their own. What lies in the working tree has no say in it, whatever git has been told to assume of it.
func gradedPaths(ctx context.Context, root, commit string) ([]string, error) {
	text, err := git(ctx, root, "ls-tree", "--name-only", "--full-tree", commit)
	paths := []string{exercisesPath}
	for name := range strings.Lines(text) {
		if name = strings.TrimSpace(name); name == "go.mod" || name == "go.sum" || name == "shared" || strings.HasPrefix(name, "stage") {
			paths = append(paths, name)
		}
	}
	return paths, err
}

// graded copies what a commit of the repository has ("HEAD"), and says which one it is. Without git, or in a tree that
// none has been made in, it is the tree itself and commit is "".
func graded(ctx context.Context, root, of string) (folder, commit string, cleanUp func(), err error) {
	commit, err = git(ctx, root, "rev-parse", "--verify", "--quiet", of+"^{commit}")
	if err != nil && of == "HEAD" {
		return root, "", func() {}, nil
	}
	if err != nil {
		return "", "", nil, fmt.Errorf("there is no commit %s here", short(of))
	}
	paths, err := gradedPaths(ctx, root, commit)
	if err != nil {
		return "", "", nil, err
	}
	if folder, err = os.MkdirTemp("", "ladder-graded-"); err != nil {
		return "", "", nil, err
	}
	cleanUp = func() { os.RemoveAll(folder) }
	command := gitCommand(ctx, root, append([]string{"archive", "--format=tar", commit, "--"}, paths...)...)
	archive, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err == nil {
		err = errors.Join(unpack(archive, folder), command.Wait())
	}
	if err != nil {
		cleanUp()
		return "", "", nil, fmt.Errorf("cannot copy what is committed: %w", err)
	}
	return folder, commit, cleanUp, nil
}

func gitCommand(ctx context.Context, root string, args ...string) *exec.Cmd {
	// A clone that somebody else owns is read all the same: no hook and no filter of it is run by this.
	return exec.CommandContext(ctx, "git", append([]string{"-C", root, "-c", "safe.directory=*"}, args...)...)
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	text, err := gitCommand(ctx, root, args...).Output()
	return strings.TrimSpace(string(text)), err
}

// short is a commit as people write it.
func short(commit string) string { return commit[:min(len(commit), 10)] }

// unpack writes the folders and files of an archive.
func unpack(archive io.Reader, folder string) error {
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, archive) // what is left of it is padding
			return err
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(header.Name) {
			continue
		}
		path := filepath.Join(folder, header.Name)
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o777)
		case tar.TypeReg:
			var text []byte
			if text, err = io.ReadAll(reader); err == nil {
				if err = os.MkdirAll(filepath.Dir(path), 0o777); err == nil {
					err = os.WriteFile(path, text, 0o666)
				}
			}
		}
		if err != nil {
			return err
		}
	}
}

// kept are the settings of the go command that say where things come from and lie; all others are as they come.
var kept = []string{"GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOINSECURE", "GOMODCACHE", "GOCACHE", "GOPATH", "GOTOOLCHAIN", "CC"}

// cleanEnvironment makes this process's environment one that changes neither builds nor servers: flags with an overlay, a
// debug setting, a limit of the collector. It is for the whole process.
func cleanEnvironment(ctx context.Context) error {
	text, err := exec.CommandContext(ctx, "go", append([]string{"env", "-json"}, kept...)...).Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	var values map[string]string
	if err := json.Unmarshal(text, &values); err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	for _, line := range os.Environ() {
		name, _, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, "GO") || strings.HasPrefix(name, "CGO_") || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "GIT_") {
			os.Unsetenv(name)
		}
	}
	for name, value := range values {
		if value != "" {
			os.Setenv(name, value)
		}
	}
	os.Setenv("GOENV", "off")
	os.Setenv("GOWORK", "off")
	return nil
}
