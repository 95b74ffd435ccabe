package profile

import (
	"fmt"
	"io"
	"strings"
)

// lineWidth is how wide sentences are printed, in columns.
const lineWidth = 80

// say prints a sentence in lines that fit: first stands before the first of
// them, rest before the others.
func say(out io.Writer, first, rest, text string) {
	line, empty := first, true
	for word := range strings.FieldsSeq(text) {
		switch {
		case empty:
			line += word
		case len([]rune(line))+1+len([]rune(word)) > lineWidth:
			fmt.Fprintln(out, line)
			line = rest + word
		default:
			line += " " + word
		}
		empty = false
	}
	fmt.Fprintln(out, strings.TrimRight(line, " "))
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
	return thousands(int64(v + 0.5))
}
