package site

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// A Step is the difference between two neighbouring stages: what one chapter
// explains.
type Step struct {
	From, To string // folders; From is "" when a whole stage is shown
	Files    []*FileDiff
}

// FileDiff is one file that differs.
type FileDiff struct {
	Name           string
	Hunks          []*Hunk
	Added, Removed int       // lines
	rest           []stretch // declarations behind the last hunk, which are the same
}

// Hunk is one declaration that differs.
type Hunk struct {
	File    string
	Name    string // of the declaration; the old one when it is gone
	WasName string // when it had another
	Change  string // "new", "gone", "changed" or "same", which only a whole stage has
	Runs    []stretch
	ID      string // of the HTML element

	before    []stretch // declarations between the hunk before and this one, which are the same
	explained []string  // the anchors of the paragraphs that point here
}

// A stretch is lines that are the same on both sides, or lines that were
// replaced by others.
type stretch struct {
	equal              bool
	old, new           []string
	oldFirst, newFirst int // line numbers from 1
}

// fileOrder is the order in which files are best read; others come behind these.
var fileOrder = []string{"main.go", "server.go", "loop.go", "conn.go", "idle.go", "request.go", "head.go", "response.go"}

// readingOrder lists the files of stages, each name once, in that order.
func readingOrder(sources ...*harness.Source) (names []string) {
	for _, s := range sources {
		names = append(names, s.Names()...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	place := func(name string) uint { return uint(slices.Index(fileOrder, name)) } // -1 is the last
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return names
}

// compareStages makes the step from one stage's folder to the next one's.
func compareStages(root, from, to string) (*Step, error) {
	old, err := harness.ReadSource(root, from)
	if err != nil {
		return nil, err
	}
	new, err := harness.ReadSource(root, to)
	if err != nil {
		return nil, err
	}
	step := &Step{From: from, To: to}
	for _, name := range readingOrder(old, new) {
		if bytes.Equal(old.Files[name], new.Files[name]) {
			continue
		}
		file, err := compareFiles(name, string(old.Files[name]), string(new.Files[name]))
		if err != nil {
			return nil, err
		}
		step.Files = append(step.Files, file)
	}
	step.identify()
	return step, nil
}

// wholeStage shows a stage as it is, each declaration a hunk that the text can
// point to.
func wholeStage(root, folder string) (*Step, error) {
	source, err := harness.ReadSource(root, folder)
	if err != nil {
		return nil, err
	}
	step := &Step{To: folder}
	for _, name := range readingOrder(source) {
		declarations, err := splitDeclarations(name, string(source.Files[name]))
		if err != nil {
			return nil, err
		}
		file := &FileDiff{Name: name}
		for _, d := range declarations {
			file.Hunks = append(file.Hunks, &Hunk{
				File: name, Name: d.name, Change: "same",
				Runs: []stretch{{equal: true, old: d.lines, new: d.lines, oldFirst: d.first, newFirst: d.first}},
			})
		}
		step.Files = append(step.Files, file)
	}
	step.identify()
	return step, nil
}

// compareFiles pairs the declarations of two versions of a file and compares
// each pair. The order is that of the new file; what is gone stands where it
// was.
func compareFiles(name, oldText, newText string) (*FileDiff, error) {
	var old, new []declaration
	var err error
	if oldText != "" {
		if old, err = splitDeclarations(name, oldText); err != nil {
			return nil, err
		}
	}
	if newText != "" {
		if new, err = splitDeclarations(name, newText); err != nil {
			return nil, err
		}
	}
	oldOf := pairDeclarations(old, new)
	file := &FileDiff{Name: name}
	add := func(a, b *declaration) {
		if h := compareDeclarations(name, a, b); h != nil {
			h.before, file.rest = file.rest, nil
			file.Hunks = append(file.Hunks, h)
			for _, r := range h.Runs {
				if !r.equal {
					file.Removed += len(r.old)
					file.Added += len(r.new)
				}
			}
			return
		}
		file.rest = append(file.rest, stretch{equal: true, old: a.lines, new: b.lines, oldFirst: a.first, newFirst: b.first})
	}
	paired := make([]bool, len(old))
	for _, i := range oldOf {
		if i >= 0 {
			paired[i] = true
		}
	}
	shown := make([]bool, len(old))
	gone := func(from int) { // what is gone, from there to the next one that is left
		for i := from; i < len(old) && !paired[i]; i++ {
			if !shown[i] {
				shown[i] = true
				add(&old[i], nil)
			}
		}
	}
	gone(0)
	for j := range new {
		if i := oldOf[j]; i >= 0 {
			add(&old[i], &new[j])
			gone(i + 1)
		} else {
			add(nil, &new[j])
		}
	}
	return file, nil
}

// compareDeclarations compares two versions of a declaration, either of which
// may be nil; it answers nil if they are the same.
func compareDeclarations(file string, old, new *declaration) *Hunk {
	h := &Hunk{File: file}
	switch {
	case old == nil:
		h.Name, h.Change = new.name, "new"
		h.Runs = []stretch{{new: new.lines, newFirst: new.first}}
	case new == nil:
		h.Name, h.Change = old.name, "gone"
		h.Runs = []stretch{{old: old.lines, oldFirst: old.first}}
	case old.text() == new.text():
		return nil
	default:
		h.Name, h.Change = new.name, "changed"
		if old.name != new.name {
			h.WasName = old.name
		}
		h.Runs = align(old, new)
	}
	return h
}

// align compares two versions of a declaration.
func align(old, new *declaration) []stretch {
	// More context than any declaration has lines, so that there is one hunk.
	const everything = 1 << 20
	edits := udiff.Lines(old.text(), new.text())
	diff, err := udiff.ToUnifiedDiff("", "", old.text(), edits, everything)
	if err != nil || len(diff.Hunks) != 1 {
		// The library made the edits itself.
		panic(fmt.Sprintf("cannot align %s: %v", new.name, err))
	}
	var out []stretch
	oldLine, newLine := old.first, new.first
	for _, l := range diff.Hunks[0].Lines {
		equal := l.Kind == udiff.Equal
		if len(out) == 0 || out[len(out)-1].equal != equal {
			out = append(out, stretch{equal: equal, oldFirst: oldLine, newFirst: newLine})
		}
		r := &out[len(out)-1]
		text := strings.TrimSuffix(l.Content, "\n")
		if l.Kind != udiff.Insert {
			r.old = append(r.old, text)
			oldLine++
		}
		if l.Kind != udiff.Delete {
			r.new = append(r.new, text)
			newLine++
		}
	}
	return joinStretches(out)
}

// joinStretches makes two replaced stretches one when no more than a brace or an
// empty line stands between them: such a line is the same by chance.
func joinStretches(all []stretch) []stretch {
	var out []stretch
	for i := 0; i < len(all); i++ {
		r := all[i]
		if r.equal && i > 0 && i+1 < len(all) && meansNothing(r.new) {
			last, next := &out[len(out)-1], all[i+1]
			last.old = slices.Concat(last.old, r.old, next.old)
			last.new = slices.Concat(last.new, r.new, next.new)
			i++
			continue
		}
		out = append(out, r)
	}
	return out
}

func meansNothing(lines []string) bool {
	return len(lines) <= 2 && !strings.ContainsFunc(strings.Join(lines, ""), func(c rune) bool {
		return !strings.ContainsRune("{}() \t", c)
	})
}

// identify gives every hunk an identifier that stays the same as long as its
// file and name do.
func (s *Step) identify() {
	seen := map[string]bool{}
	for _, f := range s.Files {
		for _, h := range f.Hunks {
			id := "d-" + h.File + "-" + h.Name
			for seen[id] {
				id += "-was"
			}
			seen[id] = true
			h.ID = id
		}
	}
}

// find looks a hunk up: by the name of its declaration, with or without the
// receiver, or else by a piece of text that only one of the file's hunks has in
// a line that changed.
func (s *Step) find(file, anchor string) (*Hunk, error) {
	i := slices.IndexFunc(s.Files, func(f *FileDiff) bool { return f.Name == file })
	if i < 0 {
		return nil, fmt.Errorf("%s does not differ between %s and %s", file, s.From, s.To)
	}
	hunks := s.Files[i].Hunks
	for _, match := range []func(*Hunk) bool{
		func(h *Hunk) bool { return h.Name == anchor && h.Change != "gone" },
		func(h *Hunk) bool { return h.Name == anchor },
		func(h *Hunk) bool { return lastName(h.Name) == anchor && h.Change != "gone" },
		func(h *Hunk) bool { return lastName(h.Name) == anchor },
		func(h *Hunk) bool { return h.contains(anchor) },
	} {
		var found []*Hunk
		for _, h := range hunks {
			if match(h) {
				found = append(found, h)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return nil, fmt.Errorf("%q fits %d hunks of %s: use the full name, one of %s", anchor, len(found), file, strings.Join(hunkNames(found), ", "))
		}
	}
	return nil, fmt.Errorf("no hunk of %s is called %q or has it in a line that changed: there are %s", file, anchor, strings.Join(hunkNames(hunks), ", "))
}

func hunkNames(hunks []*Hunk) []string {
	var names []string
	for _, h := range hunks {
		names = append(names, h.Name+" ("+h.Change+")")
	}
	return names
}

// text is the code of a hunk, in one line: as it is, or as it was if it is gone.
func (h *Hunk) text() string {
	var out []string
	for _, r := range h.Runs {
		if h.Change == "gone" {
			out = append(out, r.old...)
		} else {
			out = append(out, r.new...)
		}
	}
	return strings.Join(strings.Fields(strings.Join(out, " ")), " ")
}

func (h *Hunk) contains(text string) bool {
	for _, r := range h.Runs {
		if r.equal && h.Change != "same" {
			continue
		}
		for _, lines := range [][]string{r.old, r.new} {
			if slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, text) }) {
				return true
			}
		}
	}
	return false
}

// plain says that there is nothing to explain: the head or a test of a stage that is shown as a whole.
func (h *Hunk) plain() bool {
	return h.Change == "same" && (h.Name == "package" || h.Name == "imports" || strings.HasSuffix(h.File, "_test.go"))
}

// unexplained lists the hunks of a step, or of a whole stage, that no paragraph points to.
func (s *Step) unexplained() []string {
	var out []string
	for _, f := range s.Files {
		for _, h := range f.Hunks {
			if len(h.explained) == 0 && !h.plain() {
				out = append(out, fmt.Sprintf("{{hunk %q %q}} (%s)", h.File, h.Name, h.Change))
			}
		}
	}
	return out
}
