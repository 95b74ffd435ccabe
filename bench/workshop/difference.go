package workshop

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// difference is a unified diff that turns own code into the reference; "" if there is none.
func difference(o *output, own, reference files) string {
	var out strings.Builder
	for _, name := range changed(own, reference) {
		for line := range strings.Lines(udiff.Unified("yours/"+name, "reference/"+name, string(own[name]), string(reference[name]))) {
			text := strings.TrimSuffix(line, "\n")
			switch {
			case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
				text = o.paint(bold, text)
			case strings.HasPrefix(line, "@@"):
				text = o.paint(yellow, text)
			case strings.HasPrefix(line, "-"):
				text = o.paint(red, text)
			case strings.HasPrefix(line, "+"):
				text = o.paint(green, text)
			}
			out.WriteString(text + "\n")
		}
	}
	return out.String()
}
