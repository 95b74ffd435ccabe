package workshop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// builds is the name of the check that comes before all others.
const builds = "builds"

// result is what a check came to.
type result struct {
	findings []grade.Finding
	values   map[string]float64
	notes    []string
	blind    error
	seed     uint64 // of what was drawn
}

func (r *result) failing() (failing []grade.Finding) {
	for _, f := range r.findings {
		if !f.Holds {
			failing = append(failing, f)
		}
	}
	return failing
}

// checks are the names of the checks that fail, each once.
func (r *result) checks() []string {
	var names []string
	for _, f := range r.failing() {
		if !slices.Contains(names, f.Check) {
			names = append(names, f.Check)
		}
	}
	return names
}

// gradeBinary runs an exercise's checks against a server that has been built. show is called with each
// finding as it comes, working with what comes next. begin, unless it is nil, says whether a step of the exercise is begun: where it
// is not, the checks end.
func (e *Exercise) gradeBinary(subject *grade.Subject, show func(grade.Finding), working func(string), begin func(step string) bool) *result {
	r := &result{}
	ctx := subject.Context
	add := func(findings ...grade.Finding) {
		if ctx.Err() != nil {
			return // what was seen of servers that were just killed says nothing
		}
		for _, f := range findings {
			// Two figures of one workload may find the same.
			if !slices.ContainsFunc(r.findings, func(old grade.Finding) bool { return old.Text == f.Text }) {
				r.findings = append(r.findings, f)
				show(f)
			}
		}
	}
	working("starting it")
	if err := subject.Inspect(); err != nil {
		add(grade.Finding{Check: "serves", Text: "it does not serve as it should: " + err.Error()})
		return r
	}
	add(grade.Finding{Check: "serves", Holds: true, Text: "it builds, serves, and does nothing else"})
	for _, c := range e.Checks {
		if ctx.Err() != nil || begin != nil && c.Step != "" && !begin(c.Step) {
			break
		}
		working(c.Name())
		add(subject.Run(c)...)
	}
	r.values, r.notes, r.blind = subject.Values(), subject.Notes(), subject.Blind()
	return r
}

// whole runs what every exercise is held to, when its own checks hold: the common suite, and the
// general checks behind it. It ends at the first that finds something.
func whole(subject *grade.Subject, show func(grade.Finding), working func(string)) (all []grade.Finding) {
	ctx, end := context.WithCancel(subject.Context)
	defer end()
	deadlines := subject.Deadlines(ctx)
	hold := func(findings ...grade.Finding) (holds bool) {
		holds = true
		for _, f := range findings {
			if subject.Context.Err() != nil {
				return false // what was seen of servers that were just killed says nothing
			}
			show(f)
			all, holds = append(all, f), holds && f.Holds
		}
		return holds
	}
	working("the common suite, as every stage runs it")
	if !hold(subject.CommonSuite()) {
		return all
	}
	for _, c := range grade.General {
		if c == grade.DefaultDeadlines {
			continue
		}
		working(c.Name())
		if !hold(subject.Run(c)...) {
			return all
		}
	}
	working("the time limits by default: this takes a minute from the beginning of the suite")
	hold(<-deadlines...)
	return all
}

// subject is what is graded: own, which has been built already as the package work/label.
func (e *Exercise) subject(ctx context.Context, root, temporary, label, binary string, own, start files) *grade.Subject {
	return &grade.Subject{
		Binary: binary, Root: root, Own: own, Start: start, Files: e.Files, Context: ctx,
		Build: func(flags ...string) (string, error) {
			binary := filepath.Join(temporary, "again", label)
			return binary, own.source(root, label).BuildOnDisk(ctx, binary, slices.Concat(flags, []string{noDebugger})...)
		},
		BuildWith: func(name, text string) (string, error) {
			more := maps.Clone(own)
			more[name] = []byte(text)
			return more.buildIn(ctx, root, temporary, label)
		},
		BuildBase: func() (string, error) {
			base, err := harness.ReadSource(root, e.Base)
			if err != nil {
				return "", err
			}
			return base.Build(ctx, temporary)
		},
	}
}

// laidOut reads the learner's code, and says what to do if there is none.
func (e *Exercise) laidOut(root string) (files, error) {
	f, err := readFiles(e.work(root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, e.notLaidOut()
	}
	if errors.Is(err, errNoFiles) {
		return nil, fmt.Errorf("%s/%s has no Go files: make reset N=%d begins anew and keeps what is there", workPath, e.Name, e.Number)
	}
	return f, err
}

func (e *Exercise) notLaidOut() error {
	return fmt.Errorf("exercise %d is not laid out yet: make exercise N=%d", e.Number, e.Number)
}

// notYet is the error of a check that has found something.
type notYet struct {
	text   string
	checks []string // that fail
}

func (n *notYet) Error() string { return n.text }

// onlyAnswers says whether all but what is written about the code holds.
func (n *notYet) onlyAnswers() bool {
	return !slices.ContainsFunc(n.checks, func(name string) bool { return !grade.OfAnswers(name) })
}

// check checks own, the learner's code, and prints what holds and what does not.
func check(ctx context.Context, o *output, root string, e *Exercise, own files, options CheckOptions) error {
	if err := e.impossible(); err != nil {
		return err
	}
	noSuite, measure := options.NoSuite, options.Measure
	// The rules are those that are committed, and what is built beside own is too.
	copied, commit, err := graded(ctx, root, "HEAD")
	if err != nil {
		return err
	}
	if committed, err := exercise(copied, e.Name); err == nil {
		e = committed
	} else {
		copied, commit = root, "" // an exercise that is being written
	}
	p, err := readProgress(root)
	if err != nil {
		return err
	}
	s := p.of(e)
	start, err := e.start(copied)
	if err != nil {
		return err
	}
	for name, text := range own {
		// The stage may have been fixed since: what was laid out then is as good.
		if s.Laid[name] == hashText(text) {
			start[name] = text
		}
	}

	o.say("%s", o.paint(bold, fmt.Sprintf("Exercise %d: %s", e.Number, e.Title)))
	began := time.Now()
	r := &result{}
	shown, held := 0, false
	show := func(f grade.Finding) {
		if f.Holds {
			o.line("ok", green, f.Text)
			return
		}
		if shown++; shown > 6 {
			return // a screen has an end, and the first are the ones to begin with
		}
		o.line("no", red, f.Text)
		i := slices.IndexFunc(e.Checks, func(c grade.Check) bool { return c.Name() == f.Check })
		switch {
		case f.Look != "" && (i < 0 || s.Hints > 0 || s.Solved != nil):
			o.line("", "", "look at "+f.Look)
		case f.Look != "":
			held = true
		}
		if i >= 0 && !grade.OfAnswers(f.Check) {
			what := "every byte"
			if e.Checks[i].Figure != "" {
				what = "the first bytes"
			}
			o.line("", "", fmt.Sprintf("again, with %s: make play N=%d CASE=%d", what, e.Number, i+1))
		}
	}
	broken := e.rules(e.work(root), own, start)
	if err := sharedUntouched(root, s.Shared); err != nil && s.Shared != "" {
		broken = append(broken, grade.Finding{Check: "bounds", Text: err.Error()})
	}
	for _, f := range broken {
		show(f)
	}
	r.findings = broken

	temporary, err := os.MkdirTemp("", "ladder-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	o.working("building")
	binary, err := own.buildIn(ctx, copied, temporary, e.Name)
	var wontBuild *harness.BuildError
	switch {
	case errors.As(err, &wontBuild):
		show(grade.Finding{Text: "it does not build:\n" + shorten(wontBuild.Text, 12)})
		r.findings = append(r.findings, grade.Finding{Check: builds})
	case err != nil:
		o.wipe()
		return err
	default:
		subject := e.subject(ctx, copied, temporary, e.Name, binary, own, start)
		subject.Seed = options.Seed
		for subject.Seed == 0 {
			subject.Seed = uint64(rand.Uint32())
		}
		r.seed = subject.Seed
		subject.Measured = s.measured(own.code().hash())
		later := ""
		graded := e.gradeBinary(subject, show, o.working, func(step string) bool {
			if shown > 0 {
				later = step
				return false
			}
			o.say("%s", o.paint(bold, step))
			return true
		})
		r.findings = append(r.findings, graded.findings...)
		r.values, r.notes, r.blind = graded.values, graded.notes, graded.blind
		if later != "" {
			o.say("Then comes %s.", later)
		}
		if !noSuite && later == "" && ctx.Err() == nil && !slices.Contains(graded.checks(), "serves") {
			if shown > 0 {
				o.working("the common suite, as every stage runs it")
				f := subject.CommonSuite()
				show(f)
				r.findings = append(r.findings, f)
			} else {
				r.findings = append(r.findings, whole(subject, show, o.working)...)
				r.notes = subject.Notes()
			}
		}
	}
	if ctx.Err() != nil {
		o.wipe()
		return errors.New("stopped before the end")
	}
	if shown > 6 {
		o.say("      … and %d more", shown-6)
	}
	if held {
		o.say("Where to look is said once you have taken a hint.")
	}
	if err := e.keepResult(root, r, own.hash(), commit, noSuite); err != nil {
		o.wipe()
		return err
	}
	err = e.summary(o, r, noSuite, measure, time.Since(began))
	if err == nil && !noSuite {
		e.afterwards(ctx, o, copied, temporary, own, r)
	}
	return err
}

// afterwards shows what was counted beside the same of the reference, how far apart they are, and a question.
func (e *Exercise) afterwards(ctx context.Context, o *output, root, temporary string, own files, r *result) {
	reference, err := e.reference(root)
	if err != nil {
		return
	}
	o.working("counting the same of the reference")
	binary, err := reference.buildIn(ctx, root, temporary, e.Name+"-reference")
	if err != nil {
		o.wipe()
		return // it is information
	}
	start, err := e.start(root)
	if err != nil {
		o.wipe()
		return
	}
	subject := e.subject(ctx, root, temporary, e.Name+"-reference", binary, reference, start)
	subject.Seed = r.seed
	for _, c := range e.Checks {
		if c.Figure != "" && ctx.Err() == nil {
			subject.Run(c)
		}
	}
	if ctx.Err() != nil {
		o.wipe()
		return
	}
	values := subject.Values()
	if len(values) > 0 {
		o.say("\n  %-36s %10s %10s", "", "yours", "reference")
		for _, name := range slices.Sorted(maps.Keys(values)) {
			o.say("  %-36s %10.4g %10.4g", name, r.values[name], values[name])
		}
	}
	if lines := strings.Count(difference(&output{Writer: io.Discard}, own, reference), "\n"); lines > 0 {
		o.say("\nA diff of %d lines leads from yours to the reference: make solution N=%d", lines, e.Number)
	}
	if e.Why != "" {
		o.say("\nWhy? %s", e.Why)
	}
}

// keepResult remembers what a check of code came to. Only a full one can say that it is solved.
func (e *Exercise) keepResult(root string, r *result, code, commit string, noSuite bool) error {
	return updateProgress(root, func(p *progress) error {
		s := p.of(e)
		s.Checks++
		s.Holds, s.Of = len(r.findings)-len(r.failing()), len(r.findings)
		s.Values, s.Code, s.Commit = r.values, code, commit
		if len(r.failing()) > 0 || noSuite {
			if s.Passed == code && !noSuite {
				s.Passed = "" // it passes no more
			}
			return nil
		}
		s.Passed = code
		if s.Solved == nil {
			now := time.Now().UTC().Truncate(time.Second)
			s.Solved = &now
		}
		return nil
	})
}

// summary prints the last lines. measure says that it will be measured in any case.
func (e *Exercise) summary(o *output, r *result, noSuite, measure bool, took time.Duration) error {
	failing := len(r.failing())
	for _, note := range r.notes {
		o.line("--", yellow, note)
	}
	if r.blind != nil {
		o.line("--", yellow, "not seen from outside as well: "+r.blind.Error())
	}
	seconds := took.Round(time.Second)
	switch {
	case failing > 0:
		o.wipe()
		verb := "do"
		if failing == 1 {
			verb = "does"
		}
		next := fmt.Sprintf("one hint more: make hint N=%d", e.Number)
		if slices.Contains(r.checks(), builds) {
			next = "the compiler has said where"
		}
		failed := &notYet{checks: r.checks()}
		switch {
		case failed.onlyAnswers() && measure:
			next = fmt.Sprintf("when %s is written: make check N=%d", answersFile, e.Number)
		case failed.onlyAnswers():
			next = fmt.Sprintf("make check N=%d MEASURE=1 measures", e.Number)
		}
		if r.seed != 0 {
			o.say("The same numbers, sizes and order again: make check N=%d SEED=%d", e.Number, r.seed)
		}
		failed.text = fmt.Sprintf("%d of %d %s not hold yet (%v); %s", failing, len(r.findings), verb, seconds, next)
		return failed
	case noSuite:
		o.say("%s (%v). Now with the common suite: make check N=%d", o.paint(green, fmt.Sprintf("All %d hold", len(r.findings))), seconds, e.Number)
	default:
		o.say("%s (%v).", o.paint(green, fmt.Sprintf("Solved: all %d hold", len(r.findings))), seconds)
		if e.Measure != "" && !measure {
			o.say("What it brought, measured against the start and the reference, for\ninformation (2 minutes): make check N=%d MEASURE=1", e.Number)
		}
	}
	return nil
}

func hashText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
