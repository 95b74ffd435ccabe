package site

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// testNames are the tests that a chapter may name: the suite's cases and
// behaviours, and Go's test functions.
type testNames map[string]testPlace

// testPlace is where a test stands.
type testPlace struct {
	file string // from the root
	line int    // from 1
}

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
			for _, at := range form.FindAllSubmatchIndex(b, -1) {
				text := strings.TrimSpace(string(b[at[2]:at[3]]))
				if _, known := names[text]; !known {
					names[text] = testPlace{file, bytes.Count(b[:at[2]], []byte("\n")) + 1}
				}
			}
		}
	}
	return names, err
}

// test links to a test, if there is such a test.
func (b *builder) test(name string) (string, error) {
	at, ok := b.tests[name]
	if !ok {
		return "", fmt.Errorf("there is no test called %q", name)
	}
	b.sources[at.file] = true
	return fmt.Sprintf(`<a class="test" href="%s#L%d" title="%s">%s</a>`, sourceName(at.file), at.line, html.EscapeString(at.file), html.EscapeString(name)), nil
}
