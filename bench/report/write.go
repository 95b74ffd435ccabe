package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
)

// Write leaves name.json and name.md in folder, and copies with the date in
// their names, and returns the paths of the first two. A run that did not
// complete does not replace one that did: its files are called name-partial.
func (d *Document) Write(folder, name string) ([]string, error) {
	if d.Ended != Complete {
		name += "-partial"
	}
	encoded, err := json.MarshalIndent(d, "", "\t")
	if err != nil {
		return nil, err
	}
	var markdown bytes.Buffer
	d.Markdown(&markdown)
	stamp := d.Created.Format("2006-01-02T15-04-05Z")
	var paths []string
	for _, file := range []struct {
		extension string
		content   []byte
	}{{".json", append(encoded, '\n')}, {".md", markdown.Bytes()}} {
		for _, stem := range []string{name, name + "-" + stamp} {
			path := filepath.Join(folder, stem+file.extension)
			if err := os.WriteFile(path, file.content, 0o644); err != nil {
				return paths, err
			}
			if stem == name {
				paths = append(paths, path)
			}
		}
	}
	return paths, nil
}
