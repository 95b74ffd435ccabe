package workshop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
)

// progress is what is remembered between two commands, in work/.progress.json.
type progress struct {
	Exercises map[string]*state `json:"exercises"`
	path      string
}

// state is how far an exercise has got.
type state struct {
	Begun  time.Time `json:"begun"`
	Shared string    `json:"shared"` // hash of shared/ at that time
	// Laid has the hash of each file that was laid out.
	Laid   map[string]string `json:"laid"`
	Hints  int               `json:"hints"`
	Checks int               `json:"checks"`
	// Solved is when a full check first found nothing; Looked, when the reference was shown before that.
	Solved *time.Time `json:"solved,omitempty"`
	Looked *time.Time `json:"looked,omitempty"`
	// Holds and Of are the last result: how many of how many checks.
	Holds int `json:"holds"`
	Of    int `json:"of"`
	// Values are the figures of the last check, Code the hash of the code that they are of.
	Values map[string]float64 `json:"values,omitempty"`
	Code   string             `json:"code,omitempty"`
	// Commit is the one whose rules it was checked by; "" if there was none.
	Commit string `json:"commit,omitempty"`
	// Passed is the hash of the code that a full check, with the common suite, last found nothing in.
	Passed string `json:"passed,omitempty"`
	// Measured has what MEASURE=1 came to, the learner's server against the start, by workload. MeasuredCode is
	// the hash of the Go files that it is of.
	Measured     map[string][]grade.Measured `json:"measured,omitempty"`
	MeasuredCode string                      `json:"measured_code,omitempty"`
}

// laidOut says whether the exercise has been laid out: a hint alone does not do that.
func (s *state) laidOut() bool { return len(s.Laid) > 0 }

// measured is what was measured of code, and empty if it was another's.
func (s *state) measured(code string) map[string][]grade.Measured {
	if s.MeasuredCode != code || s.Measured == nil {
		return map[string][]grade.Measured{}
	}
	return s.Measured
}

func readProgress(root string) (*progress, error) {
	p := &progress{path: filepath.Join(root, workPath, ".progress.json"), Exercises: map[string]*state{}}
	text, err := os.ReadFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): delete it, only the hints and marks are lost", p.path, err)
	}
	if p.Exercises == nil {
		p.Exercises = map[string]*state{}
	}
	return p, nil
}

// of is the state of an exercise, made when there is none.
func (p *progress) of(e *Exercise) *state {
	s := p.Exercises[e.Name]
	if s == nil {
		s = &state{Begun: time.Now().UTC().Truncate(time.Second)}
		p.Exercises[e.Name] = s
	}
	return s
}

// updateProgress changes what is remembered: other commands wait meanwhile, and what they have written is read
// first. So change must be quick, and set only what its command has found out.
func updateProgress(root string, change func(*progress) error) error {
	folder := filepath.Join(root, workPath)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	// A file of its own, as the other is replaced.
	file, err := os.OpenFile(filepath.Join(folder, ".progress.lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := lock(file); err != nil {
		return fmt.Errorf("cannot lock %s: %w", file.Name(), err)
	}
	p, err := readProgress(root)
	if err != nil {
		return err
	}
	if err := change(p); err != nil {
		return err
	}
	return p.save()
}

// save replaces the file in one step, so that it is never half of one. Whoever calls it has the lock.
func (p *progress) save() error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.path+".new", append(text, '\n'), 0o666); err != nil {
		return err
	}
	return os.Rename(p.path+".new", p.path)
}

// code is the files without what is written about them.
func (f files) code() files {
	code := maps.Clone(f)
	delete(code, answersFile)
	return code
}

// hash is that of files, by name and content.
func (f files) hash() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(h, "%s %d\n", name, len(f[name]))
		h.Write(f[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// hashFolder is the hash of all Go files in a folder, those of tests left out.
func hashFolder(folder string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		relative, _ := filepath.Rel(folder, path)
		fmt.Fprintln(h, filepath.ToSlash(relative))
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = io.Copy(h, file)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// gitClean says whether git is there and finds nothing changed or added in a folder.
func gitClean(root, folder string) bool {
	output, err := exec.Command("git", "-C", root, "status", "--porcelain", "--", folder).Output()
	return err == nil && len(strings.TrimSpace(string(output))) == 0
}
