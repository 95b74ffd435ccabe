package site

import (
	"fmt"
	"html"
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
	// A behaviour of the suite is an entry of a list, or a key of a map whose values say how.
	suiteName = regexp.MustCompile(`(?m)^\s*\{\s*(?:Name:\s*)?"([^"\n]+)",`)
	suiteKey  = regexp.MustCompile(`"([^"\n]+)":\s*[^"\s]`)
	subtest   = regexp.MustCompile(`\bRun\("([^"\n]+)"`)
)

func readTests(root string) (testNames, error) {
	names := testNames{}
	files, err := repositoryFiles(root, ".go", ".cases")
	for _, file := range files {
		cases, suite := strings.HasSuffix(file, ".cases"), strings.HasPrefix(file, "shared/suite/")
		if !cases && !suite && !strings.HasSuffix(file, "_test.go") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		for _, form := range []*regexp.Regexp{goTest, suiteCase, suiteName, suiteKey, subtest} {
			if (form == suiteCase) != cases || (form == suiteName || form == suiteKey) && !suite {
				continue
			}
			for _, found := range form.FindAllSubmatch(b, -1) {
				if text := strings.TrimSpace(string(found[1])); names[text] == "" {
					names[text] = file
				}
			}
		}
	}
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
