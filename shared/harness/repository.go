package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Module is the path of this repository's module.
const Module = "github.com/qps-ladder/qps-ladder"

// FindRoot finds the root of this repository, from the current folder upwards.
func FindRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := folder; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, "go.mod"))
		first, _, _ := bytes.Cut(text, []byte("\n"))
		if err == nil && string(bytes.TrimSpace(first)) == "module "+Module {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not inside the repository of the ladder: change into it first", folder)
		}
	}
}

var stageFolder = regexp.MustCompile(`^stage[0-9]+-[a-z0-9-]+$`)

// Stages lists the folders of the stages in their order.
func Stages(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var stages []string
	for _, e := range entries {
		if e.IsDir() && stageFolder.MatchString(e.Name()) {
			stages = append(stages, e.Name())
		}
	}
	if len(stages) == 0 {
		return nil, fmt.Errorf("no stage in %s: is this a whole checkout?", root)
	}
	return stages, nil
}

// PickStage finds a stage's folder by its number ("3"), its short name ("stage3") or itself.
func PickStage(stages []string, text string) (string, error) {
	for _, s := range stages {
		if short := ShortName(s); text == s || text == short || "stage"+text == short {
			return s, nil
		}
	}
	return "", fmt.Errorf("there is no stage %q: choose one of %s", text, strings.Join(stages, ", "))
}

// FindStage is PickStage among those of the repository.
func FindStage(root, text string) (string, error) {
	stages, err := Stages(root)
	if err != nil {
		return "", err
	}
	return PickStage(stages, text)
}

// ShortName is a stage's folder without what its step is about: "stage3".
func ShortName(stage string) string {
	short, _, _ := strings.Cut(stage, "-")
	return short
}
