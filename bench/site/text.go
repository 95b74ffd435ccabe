package site

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// repositoryFiles lists the files of the repository that end so, by path from the root, with
// slashes. What is built or laid out in it is left out.
func repositoryFiles(root string, ends ...string) (names []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || slices.Contains([]string{"bench/out", "work", "docs/_site"}, name)):
			return filepath.SkipDir
		case !d.IsDir() && slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(name, end) }):
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// lines yields the lines of Markdown, each with its end, and whether it belongs to a fenced block.
func lines(text string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		fence := ""
		for _, line := range strings.SplitAfter(text, "\n") {
			trimmed := strings.TrimLeft(line, " >")
			fenced := fence != ""
			switch {
			case fenced && strings.HasPrefix(trimmed, fence) && strings.TrimSpace(strings.TrimLeft(trimmed, "`~")) == "":
				fence = ""
			case !fenced && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
				fence, fenced = trimmed[:3], true
			}
			if !yield(line, fenced) {
				return
			}
		}
	}
}

// spans yields the parts of a line of text, and whether each is a code span, with its backquotes.
func spans(line string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		for line != "" {
			from := strings.IndexByte(line, '`')
			length := -1
			if from >= 0 {
				ticks := len(line[from:]) - len(strings.TrimLeft(line[from:], "`"))
				if length = strings.Index(line[from+ticks:], line[from:from+ticks]); length >= 0 {
					length += 2 * ticks
				}
			}
			if length < 0 { // a lone backquote is no code
				yield(line, false)
				return
			}
			if from > 0 && !yield(line[:from], false) || !yield(line[from:from+length], true) {
				return
			}
			line = line[from+length:]
		}
	}
}

// outsideCode calls replace for every stretch of Markdown text that is not code,
// line by line from 1, and joins what comes back. Code stays as it is.
func outsideCode(text string, replace func(line int, text string) string) string {
	var out strings.Builder
	number := 0
	for line, fenced := range lines(text) {
		number++
		if fenced {
			out.WriteString(line)
			continue
		}
		for part, code := range spans(line) {
			if !code {
				part = replace(number, part)
			}
			out.WriteString(part)
		}
	}
	return out.String()
}

// codeOf gives every code span and every line of every fenced block.
func codeOf(text string) (all []string) {
	for line, fenced := range lines(text) {
		if fenced {
			all = append(all, strings.TrimRight(line, "\n"))
			continue
		}
		for part, code := range spans(line) {
			if code {
				all = append(all, strings.Trim(part, "`"))
			}
		}
	}
	return all
}

var (
	headingForm = regexp.MustCompile(`^#{1,6} +(.*?)(?: +#+)?\s*$`)
	anchorForm  = regexp.MustCompile(`<a id="([^"]+)">`)
	linkForm    = regexp.MustCompile(`\[([^\[\]]*)\]\([^()]*\)`)
)

// slug is the anchor that GitHub gives a heading, if no other one before it has the same.
func slug(heading string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case c == '-', c == '_', unicode.IsLetter(c), unicode.IsDigit(c):
			return unicode.ToLower(c)
		}
		return -1
	}, linkForm.ReplaceAllString(heading, "$1"))
}

// headings are the lines, from 1, on which the headings of Markdown stand, by the anchors that
// GitHub gives them, and those of anchors that it has itself.
func headings(text string) map[string]int {
	anchors := map[string]int{}
	number := 0
	for line, fenced := range lines(text) {
		number++
		if fenced {
			continue
		}
		for _, id := range anchorForm.FindAllStringSubmatch(line, -1) {
			anchors[id[1]] = number
		}
		found := headingForm.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		anchor := slug(found[1])
		for base, n := anchor, 1; anchors[anchor] > 0; n++ {
			anchor = fmt.Sprintf("%s-%d", base, n)
		}
		anchors[anchor] = number
	}
	return anchors
}

var lineAnchor = regexp.MustCompile(`^L([1-9]\d*)(?:-L([1-9]\d*))?$`)

// place finds what a link to a file of the repository means: a heading of Markdown, a line, as in
// "L12", or some lines, as in "L12-L20", of which it answers the first. The file is given from the root. ok is false if there is no such file or place; line is 0
// without an anchor.
func place(root, file, anchor string) (line int, ok bool) {
	path := filepath.Join(root, filepath.FromSlash(file))
	if !filepath.IsLocal(filepath.FromSlash(file)) {
		return 0, false
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return 0, err == nil && anchor == ""
	}
	if anchor == "" {
		return 0, true
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	if strings.HasSuffix(file, ".md") {
		line, ok = headings(string(b))[anchor]
		return line, ok
	}
	if found := lineAnchor.FindStringSubmatch(anchor); found != nil {
		line, err = strconv.Atoi(found[1])
		last := line
		if err == nil && found[2] != "" {
			last, err = strconv.Atoi(found[2])
		}
		return line, err == nil && line <= last && last <= strings.Count(string(b), "\n")
	}
	return 0, false
}
