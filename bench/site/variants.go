package site

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A variant is a stage with a part of its step taken back or put in, so that
// what the parts bring can be measured apart. bench/variants/ablation.yaml lists
// them.
type variant struct {
	Name    string    `yaml:"name"`
	Chapter string    `yaml:"chapter"` // the stage whose chapter shows it
	Stage   string    `yaml:"stage"`   // what it is made of
	Args    []string  `yaml:"args"`
	From    string    `yaml:"from"`  // a stage from which Files are taken
	Files   []string  `yaml:"files"` // base names
	Edits   []edit    `yaml:"edits"`
	What    string    `yaml:"what"`
	Compare []compare `yaml:"compare"`
}

// edit replaces a piece of text that a file has exactly once.
type edit struct {
	File string `yaml:"file"`
	Old  string `yaml:"old"`
	New  string `yaml:"new"`
}

// compare is what a variant is measured on and against.
type compare struct {
	Workload string `yaml:"workload"`
	With     string `yaml:"with"`
	Metric   string `yaml:"metric"` // "held" compares what an idle connection holds; else speed and CPU
}

// variantsFile is bench/variants/ablation.yaml.
type variantsFile struct {
	Variants []variant `yaml:"variants"`
	Also     []struct {
		Server   string `yaml:"server"`
		Workload string `yaml:"workload"`
	} `yaml:"also"`
}

func readVariants(root string) (*variantsFile, error) {
	path := filepath.Join(root, "bench", "variants", "ablation.yaml")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file variantsFile
	decoder := yaml.NewDecoder(bytes.NewReader(b))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, v := range file.Variants {
		compared := len(v.Compare) > 0 || slices.ContainsFunc(file.Variants, func(other variant) bool {
			return slices.ContainsFunc(other.Compare, func(c compare) bool { return c.With == v.Name })
		})
		if v.Name == "" || v.Stage == "" || v.Chapter == "" || v.What == "" || !compared {
			return nil, fmt.Errorf("%s: variant %q needs chapter, stage, what and compare", path, v.Name)
		}
	}
	return &file, nil
}

// overlay is the files of the variant that differ from its stage's, by path.
func (v variant) overlay(root string, stages []string) (map[string]string, error) {
	r := dataFiles{stages: stages}
	folder := filepath.Join(root, r.server(v.Stage))
	texts := map[string]string{}
	for _, name := range v.Files {
		b, err := os.ReadFile(filepath.Join(root, r.server(v.From), name))
		if err != nil {
			return nil, fmt.Errorf("variant %s: %w", v.Name, err)
		}
		texts[filepath.Join(folder, name)] = string(b)
	}
	for _, e := range v.Edits {
		path := filepath.Join(folder, e.File)
		text, ok := texts[path]
		if !ok {
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("variant %s: %w", v.Name, err)
			}
			text = string(b)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fmt.Errorf("variant %s: %s has this %d times, not once:\n%s", v.Name, e.File, n, e.Old)
		}
		texts[path] = strings.Replace(text, e.Old, e.New, 1)
	}
	return texts, nil
}

// build compiles the variant into folder. The stage's own files are not touched.
func (v variant) build(ctx context.Context, root, folder string, stages []string) (path string, err error) {
	texts, err := v.overlay(root, stages)
	if err != nil {
		return "", err
	}
	work, err := os.MkdirTemp("", "variant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	replace := map[string]string{}
	for original, text := range texts {
		changed := filepath.Join(work, filepath.Base(original))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return "", err
		}
		absolute, err := filepath.Abs(original)
		if err != nil {
			return "", err
		}
		replace[absolute] = changed
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	path = filepath.Join(folder, v.Name)
	r := dataFiles{stages: stages}
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-overlay", list, "-o", path, "./"+r.server(v.Stage))
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("variant %s does not compile: %s", v.Name, bytes.TrimSpace(out))
	}
	return path, nil
}
