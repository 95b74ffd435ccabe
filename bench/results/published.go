package results

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Published is what the documents say of the stages: docs/data/documents.yaml.
type Published struct {
	Note    string // what it is, and is not
	byStage map[string]string
}

// ReadPublished reads what is published of the stages of the checkout at root.
func ReadPublished(root string) (p Published, err error) {
	path := filepath.Join(root, "docs", "data", "documents.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return p, err
	}
	var file struct {
		Note      string `yaml:"note"`
		Published []struct {
			Figure   string `yaml:"figure"`
			Stage    string `yaml:"stage"`
			Includes string `yaml:"includes"`
			Remark   string `yaml:"remark"`
		} `yaml:"published"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	p = Published{Note: file.Note, byStage: map[string]string{}}
	for _, f := range file.Published {
		if f.Stage == "" {
			continue
		}
		p.byStage[f.Stage] = f.Figure
		if f.Remark != "" {
			p.byStage[f.Stage] += " " + f.Remark
		}
		if f.Includes != "" {
			p.byStage[f.Includes] = "with " + strings.TrimPrefix(f.Stage, "stage") // rows begin with the number
		}
	}
	return p, nil
}

var stageFolder = regexp.MustCompile(`^stage[0-9]+-[a-z0-9-]+$`)

// Of is what stands beside a server in a table: "–" for a stage of which nothing is published, ""
// for what is no stage. One with other flags, files or workers is not what the documents speak of.
func (p Published) Of(server string) string {
	if p.byStage == nil || !stageFolder.MatchString(server) {
		return ""
	}
	return cmp.Or(p.byStage[harness.ShortName(server)], "–")
}
