package workshop

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
func graded(ctx context.Context, root, of string) (folder, commit string, err error) {
	commit, err = git(ctx, root, "rev-parse", "--verify", "--quiet", of+"^{commit}")
	if err != nil && of == "HEAD" {
		return root, "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("there is no commit %s here", short(of))
	}
	paths, err := gradedPaths(ctx, root, commit)
	if err != nil {
		return "", "", err
	}
	// The same place each time, so that the go command compiles it once. The underscore keeps it out of its patterns.
	folder = filepath.Join(root, workPath, "_graded", commit)
	command := gitCommand(ctx, root, append([]string{"archive", "--format=tar", commit, "--"}, paths...)...)
	archive, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err == nil {
		err = errors.Join(unpack(archive, folder), command.Wait())
	}
	if err != nil {
		return "", "", fmt.Errorf("cannot copy what is committed: %w", err)
	}
	return folder, commit, nil
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

// unpack makes folder have the files of an archive, and no others but those below work/. What is right already is left
// alone, so that two may do so at once.
func unpack(archive io.Reader, folder string) error {
	wanted := map[string]bool{}
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			// What is left of it is padding.
			if _, err := io.Copy(io.Discard, archive); err != nil {
				return err
			}
			return removeOthers(folder, wanted)
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(header.Name) || header.Typeflag != tar.TypeReg {
			continue
		}
		path := filepath.Join(folder, header.Name)
		wanted[path] = true
		text, err := io.ReadAll(reader)
		if err != nil {
			return err
		}
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, text) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		// In one step: another check may be reading.
		file, err := os.CreateTemp(filepath.Join(folder, ".."), "file-")
		if err != nil {
			return err
		}
		_, err = file.Write(text)
		if err = errors.Join(err, file.Chmod(0o644), file.Close()); err == nil {
			err = os.Rename(file.Name(), path)
		}
		if err != nil {
			return err
		}
	}
}

func removeOthers(folder string, wanted map[string]bool) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path == filepath.Join(folder, workPath):
			return fs.SkipDir
		case !entry.IsDir() && !wanted[path]:
			return os.Remove(path)
		}
		return nil
	})
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
