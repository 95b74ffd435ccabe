package site

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Check looks at what a build does not: figures that were typed in, and, in all
// Markdown of the repository, commands and places that do not exist. The error
// tells everything that is wrong, a line each.
func Check(root string) error {
	b, err := newBuilder(root)
	if err != nil {
		return err
	}
	targets, err := makeTargets(root)
	if err != nil {
		return err
	}
	errs := []error{b.checkMarks()}
	files, err := repositoryFiles(root, ".md")
	if err != nil {
		return err
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		errs = append(errs, unknownCommands(name, string(text), targets)...)
		errs = append(errs, deadLinks(root, name, string(text))...)
	}
	for _, p := range b.pages {
		errs = append(errs, missingOpening(p)...)
	}
	errs = append(errs, unnamedExercises(root, b.pages)...)
	return errors.Join(errs...)
}

// links of Markdown, the file and the anchor apart.
var links = regexp.MustCompile(`\]\(([^()\s#]*)(?:#([^()\s]*))?\)`)

// deadLinks finds links of a text to files and headings of the repository that there are not. Those
// of a chapter have to lead somewhere on the site too, see builder.resolve.
func deadLinks(root, name, text string) (errs []error) {
	outsideCode(text, func(line int, text string) string {
		for _, found := range links.FindAllStringSubmatch(text, -1) {
			file := path.Join(path.Dir(name), found[1])
			if found[1] == "" {
				file = name
			}
			if _, ok := place(root, file, found[2]); !ok && !strings.Contains(found[1], ":") {
				errs = append(errs, fmt.Errorf("%s:%d: a link leads to %s, which is not there", name, line, strings.Trim(found[0], "]()")))
			}
		}
		return text
	})
	return errs
}

// measured is a number with a unit in which this project measures, or one that
// reads as a ratio, with or without its interval. Sizes in bytes, counts of
// connections, limits in seconds and versions are settings, not results.
var measured = regexp.MustCompile(`(?i)(?:^|[^\w.-])\d[\d.,]*[\s\x{a0}\x{2009}\x{202f}]*` +
	`(?:[×%]|(?:x|[µμu]s|ns|ms|k|rps|qps|per ?cent|percent|times|fold|thousand|million|(?:micro|nano|milli)seconds?|(?:requests|answers) (?:per|a) second|req/s)\b)` +
	`|(?:^|[^\w.:/-])\d+\.\d+(?:$|[^\w.×%-]|\.(?:\s|$))`)

// version is what comes before a decimal that is none of those.
var version = regexp.MustCompile(`(?:Go|HTTP|TLS|Linux|Ubuntu|wrk|GCC|section|v) ?$`)

// setting tells a version, or the confidence of the intervals, from a result.
func setting(text string, at int, found string) bool {
	return version.MatchString(text[:at]) || found == "95%" && strings.HasPrefix(text[at:], "95% interval")
}

type typed struct {
	line int // from 1
	text string
}

// findTyped finds figures in Markdown that are neither in code nor in a mark.
func findTyped(text string) (found []typed) {
	outsideCode(withoutMarks(text), func(line int, text string) string {
		for _, at := range measured.FindAllStringIndex(text, -1) {
			// What was matched may begin and end with a character that only bounds it.
			if f := strings.Trim(text[at[0]:at[1]], " \t\n\"'()[]*_,;:!?—–.\u00a0"); f != "" && !setting(text, at[0]+strings.Index(text[at[0]:at[1]], f), f) {
				found = append(found, typed{line, f})
			}
		}
		return text
	})
	return found
}

// opening is what a chapter begins with: what it is good for, how long it takes, what to do before.
var opening = []string{"- **What you will be able to say:** ", "- **How long:** ", "- **What to have run:** "}

func isChapter(p *page) bool { return path.Dir(p.source) == "docs/chapters" }

// missingOpening finds a chapter, which is what has questions at its end, that does not say so under its title.
func missingOpening(p *page) (errs []error) {
	if !isChapter(p) || !strings.Contains(p.text, "\n## Questions\n") {
		return nil
	}
	_, text, _ := strings.Cut(strings.TrimSpace(p.text), "\n\n")
	for _, want := range opening {
		line, rest, _ := strings.Cut(text, "\n")
		if !strings.HasPrefix(line, want) {
			errs = append(errs, fmt.Errorf("%s: the line %q is missing under its title", p.source, strings.TrimSpace(want)))
			continue
		}
		text = rest
	}
	return errs
}

// unnamedExercises finds exercises to which no chapter leads.
func unnamedExercises(root string, pages []*page) (errs []error) {
	folders, err := filepath.Glob(filepath.Join(root, "docs", "workshop", "exercises", "[0-9]*"))
	if err != nil {
		return []error{err}
	}
	for _, folder := range folders {
		number, _, _ := strings.Cut(strings.TrimLeft(filepath.Base(folder), "0"), "-")
		named := regexp.MustCompile(`(?im)(?:exercises? |\bN=|^- \[?)` + number + `\b`)
		if !slices.ContainsFunc(pages, func(p *page) bool { return isChapter(p) && named.MatchString(p.text) }) {
			errs = append(errs, fmt.Errorf("no chapter names exercise %s", number))
		}
	}
	return errs
}

// makeTargets are the targets of the Makefile; pattern rules are left out.
func makeTargets(root string) (map[string]bool, error) {
	b, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return nil, err
	}
	targets := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^([A-Za-z0-9_. -]+?):(?:[^=]|$)`).FindAllStringSubmatch(string(b), -1) {
		for name := range strings.FieldsSeq(found[1]) {
			targets[name] = true
		}
	}
	return targets, nil
}

var (
	makeLine  = regexp.MustCompile(`(?:^|[\s$(;&|])make((?:[ \t]+[A-Za-z0-9_./=:,*-]+)*)`)
	quoted    = regexp.MustCompile(`"[^"]*"`)
	stageWord = regexp.MustCompile(`^stage[0-5N]$`)
)

// unknownCommands finds commands, in code spans and code blocks, that would run
// a target which the Makefile does not have.
func unknownCommands(file, text string, targets map[string]bool) (errs []error) {
	for _, code := range codeOf(text) {
		for _, found := range makeLine.FindAllStringSubmatch(quoted.ReplaceAllString(code, ""), -1) {
			words := strings.Fields(found[1])
			words = slices.DeleteFunc(words, func(w string) bool { return strings.Contains(w, "=") || strings.HasPrefix(w, "-") })
			if len(words) == 0 {
				continue
			}
			if stageWord.MatchString(words[0]) {
				for _, w := range words[1:] {
					if !slices.Contains([]string{"run", "test", "race", "build"}, w) {
						errs = append(errs, fmt.Errorf("%s: make %s: %s is nothing to do with a stage", file, strings.Join(words, " "), w))
					}
				}
				continue
			}
			if !targets[words[0]] {
				errs = append(errs, fmt.Errorf("%s: the Makefile has no target %q (make %s)", file, words[0], strings.Join(words, " ")))
			}
		}
	}
	return errs
}
