package profile

import (
	"fmt"
	"io"

	"github.com/qps-ladder/qps-ladder/bench/console"
)

// say prints a sentence in lines that fit: first stands before the first of
// them, rest, which is spaces, before the others.
func say(out io.Writer, first, rest, text string) {
	fmt.Fprintln(out, console.Paragraph(first, rest, text))
}

// count writes how often something happens for a request, in at most six
// characters.
func count(v float64) string {
	switch {
	case v == 0:
		return "–"
	case v < 10:
		return fmt.Sprintf("%.3f", v)
	case v < 100:
		return fmt.Sprintf("%.2f", v)
	case v < 1000:
		return fmt.Sprintf("%.1f", v)
	}
	return console.Thousands(v)
}
