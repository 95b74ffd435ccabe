package site

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/results"
)

// The READMEs outside docs/ are read where no include is replaced. So their
// figures stand in the text, each between marks that say where it comes from:
//
//	<!--figure c1.stage1/stage0.ratio-->1.28 [1.18–1.36]<!--/-->
//	<!--cite 1 12.5%-->12.5%<!--/-->
//	<!--ladder-->a table<!--/-->
//
// UpdateReadmes writes what stands between them; Check fails when it is not what
// the results say.
var readmeMark = regexp.MustCompile(`(?s)<!--(figure|cite|ladder)((?: [^<>]*?)?)-->(.*?)<!--/-->`)

// lineBegins is a mark at the beginning of a line of text.
var lineBegins = regexp.MustCompile(`(?m)^<!--(?:figure|cite) [^<>]*-->`)

// readmeFiles are where such figures stand.
func readmeFiles(root string) ([]string, error) {
	files, err := fs.Glob(os.DirFS(root), "stage*/README.md")
	return append([]string{"README.md"}, files...), err
}

// UpdateReadmes writes the figures of the READMEs anew from docs/data, and
// returns the names of the files that have changed. Of what was just measured it
// leaves in docs/data what the pages and READMEs read.
func UpdateReadmes(root string) (changed []string, err error) {
	b, err := newBuilder(root)
	if err != nil {
		return nil, err
	}
	renew := func(name, old, text string) error {
		if text == old {
			return nil
		}
		changed = append(changed, name)
		return os.WriteFile(filepath.Join(root, name), []byte(text), 0o644)
	}
	if err = errors.Join(b.eachReadme(renew), b.eachPicture(renew)); err != nil {
		return changed, err
	}
	return changed, prune(root)
}

// eachReadme calls f with each README as it is and as it should be.
func (b *builder) eachReadme(f func(name, old, text string) error) error {
	files, err := readmeFiles(b.root)
	errs := []error{err}
	for _, name := range files {
		old, err := os.ReadFile(filepath.Join(b.root, name))
		if err != nil {
			return err
		}
		text, err := b.readme(name, string(old))
		errs = append(errs, err)
		if err == nil {
			errs = append(errs, f(name, string(old), text))
		}
	}
	return errors.Join(errs...)
}

// checkReadmes finds figures in the READMEs that the results do not have.
func (b *builder) checkReadmes() error {
	err := b.eachPicture(func(name, old, now string) error {
		if old != now {
			return fmt.Errorf("%s is not what docs/data says: make docs-readmes draws it", name)
		}
		return nil
	})
	return errors.Join(err, b.eachReadme(func(name, text, want string) error {
		var errs []error
		if want != text {
			errs = append(errs, fmt.Errorf("%s: its figures are not those of docs/data: make docs-readmes writes them", name))
		}
		if at := lineBegins.FindString(text); at != "" {
			errs = append(errs, fmt.Errorf("%s: a line begins with %s, which Markdown takes for a block of HTML: break the line elsewhere", name, at))
		}
		// What is between marks is right by now; the lines are kept, for the messages.
		bare := readmeMark.ReplaceAllStringFunc(text, func(found string) string { return strings.Repeat("\n", strings.Count(found, "\n")) })
		for _, f := range findTyped(bare) {
			errs = append(errs, fmt.Errorf("%s:%d: %q is typed in: put it between <!--figure …--> or <!--cite …--> and <!--/-->, as docs/README.md says", name, f.line, f.text))
		}
		return errors.Join(errs...)
	}))
}

// readme replaces what stands between the marks of a text.
func (b *builder) readme(name, text string) (string, error) {
	var errs []error
	text = readmeMark.ReplaceAllStringFunc(text, func(found string) string {
		parts := readmeMark.FindStringSubmatch(found)
		kind, argument := parts[1], strings.TrimSpace(parts[2])
		var value string
		var err error
		switch kind {
		case "figure":
			value, err = b.results.plain(argument)
		case "cite":
			var numbers string
			numbers, value, _ = strings.Cut(argument, " ") // "1,4 27.5 K"
			_, err = b.documents.cite(strings.Split(numbers, ","), value)
		case "ladder":
			value, err = b.ladderTable()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			return found
		}
		return "<!--" + kind + parts[2] + "-->" + value + "<!--/-->"
	})
	return text, errors.Join(errs...)
}

// plain is a figure as it stands in plain text: 1.28 [1.18–1.36].
func (r *dataFiles) plain(key string) (string, error) {
	f, err := r.figure(key)
	if err != nil {
		return "", err
	}
	return f.text, nil
}

// ladderTable is the table of all stages, in Markdown.
func (b *builder) ladderTable() (string, error) {
	d := b.results.documents[0]
	var out strings.Builder
	virtual := ""
	if d.Machine.Virtual != "" {
		virtual = "a virtual machine with "
	}
	fmt.Fprintf(&out, "\nMeasured on %s with `make docs-refresh` on %s%d CPUs (%s, Linux %s, Go %s), server and generator\n%s, 100 connections, %d rounds; `docs/data/ladder.json` has more of it.\n\n",
		d.Created.Format("2006-01-02"), virtual, d.Machine.CPUs, d.Machine.CPU, strings.TrimPrefix(d.Machine.Kernel, "Linux "), strings.TrimPrefix(d.Machine.Go, "go"), d.Method.Layout, d.Method.Rounds)
	out.WriteString("| stage | req/s, hello | to the one before | on its target, to the one before | server CPU µs | p50 | p99 | calls | allocations | published |\n")
	out.WriteString("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |\n")
	var errs []error
	ratio := func(head, base, metric string) string {
		compared, _, err := b.results.ratio("hello", head, base, metric)
		errs = append(errs, err)
		return compared.Ratio.Format()
	}
	for i, stage := range b.stages {
		row, ok := d.Row(stage, "hello")
		if !ok {
			return "", fmt.Errorf("ladder.json has no %s on hello", stage)
		}
		number, name, _ := strings.Cut(strings.TrimPrefix(stage, "stage"), "-")
		step, target := "", ""
		if i > 0 {
			step, target = ratio(stage, b.stages[i-1], "ratio"), targets(d, stage)
		}
		published := "–"
		if at := slices.IndexFunc(d.Servers, func(s results.Server) bool { return s.Name == stage }); at >= 0 && d.Servers[at].Published != "" {
			published = d.Servers[at].Published
		}
		fmt.Fprintf(&out, "| %s %s | %s | %s | %s | %.2f | %s | %s | %.2f | %.0f | %s |\n", number, name, console.Thousands(row.RequestsPerSecond.Median), step, target,
			row.ServerCPUMicros.Median, microseconds(row.P50Micros.Median), microseconds(row.P99Micros.Median), row.SystemCalls, row.Counters["heap_objects_allocated"], published)
	}
	first, last := b.stages[0], b.stages[len(b.stages)-1]
	if row, ok := d.Row("bare-c", "hello"); ok {
		fmt.Fprintf(&out, "| a bare C loop that parses nothing | %s | stage5 to it: %s | | %.2f | %s | %s | | | |\n", console.Thousands(row.RequestsPerSecond.Median), ratio(last, "bare-c", "ratio"),
			row.ServerCPUMicros.Median, microseconds(row.P50Micros.Median), microseconds(row.P99Micros.Median))
	}
	fmt.Fprintf(&out, "\nstage5 to stage0: %s in requests, %s in server CPU per request. stage5 against itself, the noise floor:\n%s.\n",
		ratio(last, first, "ratio"), ratio(last, first, "cpu"), ratio(last+" again", last, "ratio"))
	return out.String(), errors.Join(errs...)
}

// targets says what a step brought where it must show.
func targets(d *results.Document, stage string) string {
	var out []string
	for _, r := range d.Ratios {
		switch {
		case r.Kind != results.Target || r.Head != stage:
		case r.Metric == results.HeldMemory:
			out = append(out, fmt.Sprintf("idle buffer %s B → %s B", console.Thousands(r.BaseValue), console.Thousands(r.HeadValue)))
		case r.Metric == results.RequestsPerSecond && r.Workload == "hello":
			out = append(out, "hello: see left")
		case r.Metric == results.RequestsPerSecond:
			out = append(out, r.Workload+": "+r.Ratio.Format())
		}
	}
	return strings.Join(out, "; ")
}
