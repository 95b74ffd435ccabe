package site

import (
	"fmt"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// testNames are the tests that a chapter may name: the suite's cases and
// behaviours, and Go's test functions.
type testNames map[string]string // to the file, from the root

var (
	goTest    = regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`)
	suiteCase = regexp.MustCompile(`(?m)^case:\s*(.+)$`)
	// A behaviour of the suite is an entry of a list, named in its own file.
	suiteName = regexp.MustCompile(`(?m)^\s*\{\s*(?:Name:\s*)?"([^"\n]+)",`)
	subtest   = regexp.MustCompile(`\bRun\("([^"\n]+)"`)
)

func readTests(root string) (testNames, error) {
	names := testNames{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (name[0] == '.' || name == "out" || name == "work" || name == "_site" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		test, cases := strings.HasSuffix(name, "_test.go"), strings.HasSuffix(name, ".cases")
		suite := strings.HasSuffix(name, ".go") && strings.Contains(filepath.ToSlash(path), "/shared/suite/")
		if !test && !cases && !suite {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, form := range []*regexp.Regexp{goTest, suiteCase, suiteName, subtest} {
			if (form == suiteCase) != cases || form == suiteName && !suite {
				continue
			}
			for _, found := range form.FindAllSubmatch(b, -1) {
				if text := strings.TrimSpace(string(found[1])); names[text] == "" {
					names[text] = filepath.ToSlash(file)
				}
			}
		}
		return nil
	})
	return names, err
}

// name writes the name of a test, if there is such a test.
func (t testNames) name(name string) (string, error) {
	file, ok := t[name]
	if !ok {
		return "", fmt.Errorf("there is no test called %q", name)
	}
	return fmt.Sprintf(`<span class="test" title="%s">%s</span>`, html.EscapeString(file), html.EscapeString(name)), nil
}
