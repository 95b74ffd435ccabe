package lab

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/profile"
	"github.com/qps-ladder/qps-ladder/bench/stats"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// List prints each lab with its question.
func List(out io.Writer, labs []*Lab) {
	for _, l := range labs {
		fmt.Fprintln(out, console.Paragraph(fmt.Sprintf("%-10s ", l.Name), strings.Repeat(" ", 11), l.Title+". "+l.Question))
	}
}

// Introduce prints what is asked and which ways there are.
func (l *Lab) Introduce(out io.Writer) {
	say(out, "", l.Title)
	fmt.Fprintln(out)
	say(out, "", l.Question)
	fmt.Fprintln(out)
	known := []Way{}
	for _, c := range l.Cases {
		for i, w := range c.Ways {
			if slices.Contains(known, w) {
				continue
			}
			known = append(known, w)
			mark := ""
			if i == 0 {
				mark = " (baseline)"
			}
			say(out, "  ", w.Name+mark+": "+w.Text)
		}
	}
	fmt.Fprintln(out)
}

// Ask asks for a guess. It returns the number of the choice, -1 for none at all: the end of the
// input. Its other error is that of ctx.
func (l *Lab) Ask(ctx context.Context, in io.Reader, out io.Writer) (int, error) {
	say(out, "", l.Guess.Question)
	for i, c := range l.Guess.Choices {
		say(out, fmt.Sprintf("%3d  ", i+1), c.Text)
	}
	n, err := console.Choose(ctx, console.Lines(ctx, in), out, "Your guess", len(l.Guess.Choices))
	return n - 1, err
}

// Report prints what a lab gave, and how good the guess was; guess is -1 for none.
func (l *Lab) Report(out io.Writer, root string, r *Result, guess int) {
	for _, c := range l.Cases {
		got, ok := r.Case(c.Name)
		if !ok {
			continue
		}
		say(out, "", c.Name+": "+c.Text)
		width := 8
		for _, w := range c.Ways {
			width = max(width, len(w.Name))
		}
		fmt.Fprintf(out, "  %-*s  %10s", width, "", l.Unit)
		for _, unit := range l.Also {
			fmt.Fprintf(out, "  %12s", unit)
		}
		fmt.Fprintf(out, "  %6s  %-19s\n", "allocs", "to "+c.Baseline())
		for i, w := range got.Ways {
			fmt.Fprintf(out, "  %-*s  %10s", width, w.Name, Amount(w.Value.Median))
			for _, unit := range l.Also {
				fmt.Fprintf(out, "  %12s", Amount(w.Also[unit].Median))
			}
			fmt.Fprintf(out, "  %6s", Amount(w.Allocs))
			if i > 0 {
				fmt.Fprintf(out, "  %-19s  %s", w.Ratio.Format(), got.Verdict(w))
			} else if got.Noise.Bounded() {
				fmt.Fprintf(out, "  itself differs by %.1f%%", 100*got.Floor())
			}
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out)
	}
	if guess >= 0 {
		switch right := l.Guess.right(r); {
		case right < 0:
			say(out, "", "Your guess: none of the choices came out.")
		case right == guess:
			say(out, "", "Your guess was right: "+l.Guess.Choices[guess].Text+".")
		default:
			say(out, "", fmt.Sprintf("You guessed: %s. It came out: %s.", l.Guess.Choices[guess].Text, l.Guess.Choices[right].Text))
		}
		fmt.Fprintln(out)
	}
	for _, p := range l.Published {
		say(out, "", "Published: "+p.Figure+", "+p.Text+" ("+documents(p.In)+").")
	}
	say(out, "", "For a request: "+l.WorthWords(root))
	say(out, "", fmt.Sprintf("%d rounds of %s each, ratios within a round, medians with intervals of at least 95%%.", r.Rounds, seconds(r.Each)))
}

// WorthWords says what the lab can bring to a request at most, by the profile that the documentation
// quotes (Amdahl's law).
func (l *Lab) WorthWords(root string) string {
	if l.Worth.Category == "" {
		return l.Worth.Text
	}
	row, err := l.share(root)
	if err != nil {
		return l.Worth.Text + " (" + err.Error() + ")"
	}
	return fmt.Sprintf("“%s” has %.1f%% of the server's CPU time at %s on hello; were it for nothing, requests would be %.1f%% more. %s",
		l.Worth.Category, 100*row.Share, l.Worth.Stage, 100*row.Ceiling, l.Worth.Text)
}

// share is the category of the profile that the lab is about.
func (l *Lab) share(root string) (profile.WhereRow, error) {
	table, err := profile.ReadWhere(filepath.Join(root, "docs", "data", "where.json"))
	if err != nil {
		return profile.WhereRow{}, err
	}
	for _, s := range table.Servers {
		for _, row := range s.Rows {
			if harness.ShortName(s.Server) == l.Worth.Stage && row.Category == l.Worth.Category {
				return row, nil
			}
		}
	}
	return profile.WhereRow{}, fmt.Errorf("where.json has no %q of %s", l.Worth.Category, l.Worth.Stage)
}

// Amount writes a value with about three digits.
func Amount(v float64) string {
	switch a := math.Abs(v); {
	case v == 0:
		return "0"
	case a < 1:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case a < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return console.Thousands(v)
}

func seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.0f ms", 1000*s)
	}
	return stats.Short(s) + " s"
}

// say prints a sentence in lines that fit.
func say(out io.Writer, first, text string) {
	fmt.Fprintln(out, console.Paragraph(first, strings.Repeat(" ", len(first)+2), text))
}
