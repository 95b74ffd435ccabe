package workshop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	submissionSchema  = "qps-ladder-exercise"
	submissionVersion = 1
)

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
	Code     string             `json:"code"`    // hash of the Go files
	Day      string             `json:"day"`     // of the hand-in, 2006-01-02
	Machine  machine            `json:"machine"`
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

func newSubmit() *cobra.Command {
	var out string
	cmd := one("submit", "Write a small file to hand in",
		"Write the result of the last check to a small JSON file: counters, machine and a hash of the code.\nNothing in it says who you are: name the file as your instructor wants it.",
		func(cmd *cobra.Command, root string, e *Exercise) error {
			own, err := e.laidOut(root)
			if err != nil {
				return err
			}
			p, err := readProgress(root)
			if err != nil {
				return err
			}
			s := p.of(e)
			if s.Of == 0 || s.Code != own.hash() {
				return fmt.Errorf("the code has changed since the last check: make check N=%d first", e.Number)
			}
			text, err := json.MarshalIndent(submission{
				Schema: submissionSchema, Version: submissionVersion, Exercise: e.Name,
				Solved: s.Solved != nil && s.Holds == s.Of, Holds: s.Holds, Of: s.Of, Checks: s.Checks, Hints: s.Hints, Looked: s.Looked != nil,
				Figures: s.Values, Code: s.Code, Day: time.Now().UTC().Format(time.DateOnly), Machine: thisMachine(),
			}, "", "  ")
			if err != nil {
				return err
			}
			if out == "" {
				out = filepath.Join(root, workPath, "results", e.Name+"-"+s.Code[:8]+".json")
			}
			if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
				return err
			}
			if err := os.WriteFile(out, append(text, '\n'), 0o666); err != nil {
				return err
			}
			if relative, err := filepath.Rel(root, out); err == nil && !strings.HasPrefix(relative, "..") {
				out = relative
			}
			newOutput(cmd.OutOrStdout()).say("Written: %s (%d of %d checks hold)", out, s.Holds, s.Of)
			return nil
		})
	cmd.Flags().StringVar(&out, "out", "", "the file (default: in work/results)")
	return cmd
}
