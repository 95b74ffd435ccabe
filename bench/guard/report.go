package guard

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/results"
)

// Schema stands at the head of guard.json.
const Schema = "qps-ladder/guard"

// Report is what the guard found.
type Report struct {
	Schema  string   `json:"schema"`
	Version int      `json:"version"`
	Base    string   `json:"base"`
	Head    string   `json:"head"`
	Changes []Change `json:"changes"`
	Skipped []string `json:"skipped"`
	Remarks []string `json:"remarks,omitempty"` // what disturbed it
	Ended   string   `json:"ended"`             // results.Complete, or why it ended before

	EndToEnd *results.Document `json:"end_to_end,omitempty"` // with every measurement
}

// Worse are the changes for the worse that are past their limits.
func (r *Report) Worse() (out []Change) {
	for _, c := range r.Changes {
		if c.Worse() {
			out = append(out, c)
		}
	}
	return out
}

// Text says what came of it, the worst first.
func (r *Report) Text(out io.Writer) {
	fmt.Fprintf(out, "\nhead (%s) against base (%s): %d comparisons\n\n", r.Head, r.Base, len(r.Changes))
	worse := r.Worse()
	for _, c := range worse {
		fmt.Fprintf(out, "warning: %s\n", c.Words())
	}
	for _, c := range r.Changes {
		if c.Past() && !c.Worse() {
			fmt.Fprintf(out, "better: %s\n", c.Words())
		}
	}
	for _, line := range r.Skipped {
		fmt.Fprintf(out, "left out: %s\n", line)
	}
	for _, line := range r.Remarks {
		fmt.Fprintln(out, console.Paragraph("· ", "  ", line))
	}
	few := 0
	for _, c := range r.Changes {
		if !c.Ratio.Bounded() {
			few++
		}
	}
	if few > 0 {
		fmt.Fprintf(out, "too few rounds to tell: %d of the %d comparisons\n", few, len(r.Changes))
	}
	if r.Ended != results.Complete {
		fmt.Fprintf(out, "not complete (%s): nothing is said of what was not measured\n", r.Ended)
	} else if len(worse) == 0 {
		fmt.Fprintf(out, "nothing is worse by more than %.0f%% (micro) or %.0f%% (end to end) with an interval that excludes no change\n", 100*MicroLimit, 100*EndToEndLimit)
	}
}

// Table writes every comparison as Markdown.
func (r *Report) Table(out io.Writer) {
	fmt.Fprintf(out, "# Guard: %s against %s\n\n| layer | what | metric | head/base | |\n| --- | --- | --- | ---: | --- |\n", r.Head, r.Base)
	for _, c := range r.Changes {
		word := ""
		if c.Past() {
			word = "better"
		}
		if c.Worse() {
			word = "**worse**"
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n", c.Layer, c.Name, c.What, c.Ratio.Format(), word)
	}
	for _, line := range r.Skipped {
		fmt.Fprintf(out, "\nLeft out: %s.\n", line)
	}
	for _, line := range r.Remarks {
		fmt.Fprintf(out, "\n%s\n", line)
	}
	if r.Ended != results.Complete {
		fmt.Fprintf(out, "\nNot complete: %s.\n", r.Ended)
	}
}

// Write leaves guard.json and guard.md in folder; of a guard that did not
// complete they are called guard-partial.
func (r *Report) Write(folder string) ([]string, error) {
	encoded, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return nil, err
	}
	name := "guard"
	if r.Ended != results.Complete {
		name += "-partial"
	}
	paths := []string{filepath.Join(folder, name+".json"), filepath.Join(folder, name+".md")}
	if err := os.WriteFile(paths[0], append(encoded, '\n'), 0o644); err != nil {
		return nil, err
	}
	f, err := os.Create(paths[1])
	if err != nil {
		return nil, err
	}
	r.Table(f)
	return paths, f.Close()
}
