package workshop

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
)

const (
	submissionSchema  = "qps-ladder-exercise"
	submissionVersion = 2
)

// patchOf is a unified diff that turns one set of files into another, for git apply.
func patchOf(from, to files) string {
	var out strings.Builder
	for _, name := range changed(from, to) {
		before, after := "a/"+name, "b/"+name
		if _, ok := from[name]; !ok {
			before = "/dev/null"
		}
		if _, ok := to[name]; !ok {
			after = "/dev/null"
		}
		out.WriteString(udiff.Unified(before, after, string(from[name]), string(to[name])))
	}
	return out.String()
}

// submission is what a learner hands in: nothing in it says who it was.
type submission struct {
	Schema   string             `json:"schema"`
	Version  int                `json:"version"`
	Exercise string             `json:"exercise"`
	Solved   bool               `json:"solved"`
	Holds    int                `json:"holds"` // checks that hold
	Of       int                `json:"of"`    // of so many
	Checks   int                `json:"checks"`
	Hints    int                `json:"hints"`
	Looked   bool               `json:"looked"`  // the reference was shown before it was solved
	Figures  map[string]float64 `json:"figures"` // counted, per request
	Code     string             `json:"code"`    // hash of the files
	// Commit is the one whose rules it was checked by, "" if there was none. Diff turns the exercise's start of that
	// commit into the code, and Passed is the hash of what a full check has passed; the last two since version 2.
	Commit  string  `json:"commit,omitempty"`
	Diff    string  `json:"diff,omitempty"`
	Passed  string  `json:"passed,omitempty"`
	Day     string  `json:"day"` // of the hand-in, 2006-01-02
	Machine machine `json:"machine"`
}

type machine struct {
	System string `json:"system"` // linux/amd64
	CPUs   int    `json:"cpus"`
	Go     string `json:"go"`
	Kernel string `json:"kernel,omitempty"`
}

func thisMachine() machine {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return machine{
		System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version(),
		Kernel: strings.TrimSpace(string(kernel)),
	}
}

// Submit writes the result of the last check to path, a small JSON file; "" is one in work/results. Nothing in
// it says who the learner is.
func (w *Workshop) Submit(ctx context.Context, which, path string) error {
	e, err := exercise(w.root, which)
	if err != nil {
		return err
	}
	own, err := e.laidOut(w.root)
	if err != nil {
		return err
	}
	p, err := readProgress(w.root)
	if err != nil {
		return err
	}
	s := p.of(e)
	if s.Of == 0 || s.Code != own.hash() {
		return fmt.Errorf("the code has changed since the last check: make check N=%d first", e.Number)
	}
	of := cmp.Or(s.Commit, "HEAD")
	copied, commit, err := graded(ctx, w.root, of)
	if err != nil {
		return err
	}
	if s.Commit == "" {
		copied, commit = w.root, ""
	}
	start, err := e.start(copied)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(submission{
		Commit: commit, Diff: patchOf(start, own), Passed: s.Passed,
		Schema: submissionSchema, Version: submissionVersion, Exercise: e.Name,
		Solved: s.Passed == s.Code && s.Holds == s.Of, Holds: s.Holds, Of: s.Of, Checks: s.Checks, Hints: s.Hints, Looked: s.Looked != nil,
		Figures: s.Values, Code: s.Code, Day: time.Now().UTC().Format(time.DateOnly), Machine: thisMachine(),
	}, "", "  ")
	if err != nil {
		return err
	}
	if path == "" {
		path = filepath.Join(w.root, workPath, "results", e.Name+"-"+s.Code[:8]+".json")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o666); err != nil {
		return err
	}
	if relative, err := filepath.Rel(w.root, path); err == nil && !strings.HasPrefix(relative, "..") {
		path = relative
	}
	w.out.say("Written: %s (%d of %d checks hold)", path, s.Holds, s.Of)
	if s.Holds == s.Of && s.Passed != s.Code {
		w.out.say("It does not say solved: this code has not passed the common suite. make check N=%d runs it.", e.Number)
	}
	return nil
}
