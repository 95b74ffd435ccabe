package workshop

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/console"
)

// output writes results for a person: in colour on a terminal only, and in lines of at most console.Width
// columns, or of those that a narrower terminal has.
type output struct {
	io.Writer
	columns  int
	colour   bool
	terminal bool
	busy     bool // a line that will be wiped stands there
}

func newOutput(w io.Writer) *output {
	o := &output{Writer: w, columns: console.Width}
	if columns := console.Columns(w); columns > 0 {
		o.columns = min(o.columns, columns)
	}
	o.terminal = console.IsTerminal(w) && os.Getenv("TERM") != "dumb"
	o.colour = console.Colour(w)
	return o
}

const (
	green  = "32"
	red    = "31"
	yellow = "33"
	bold   = "1"
)

func (o *output) paint(colour, text string) string {
	if !o.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// working shows what is being done, until the next line comes. Only on a terminal.
func (o *output) working(what string) {
	if o.terminal {
		o.wipe()
		fmt.Fprintf(o.Writer, "  …   %s", what)
		o.busy = true
	}
}

func (o *output) wipe() {
	if o.busy {
		fmt.Fprint(o.Writer, "\r\x1b[K")
		o.busy = false
	}
}

// line prints text after a mark, broken between words.
func (o *output) line(mark, colour, text string) {
	o.wipe()
	first := true
	for _, line := range console.Wrap(text, o.columns-6, "") {
		left := "      "
		if first {
			left = "  " + o.paint(colour, mark) + strings.Repeat(" ", max(1, 4-len(mark)))
			first = false
		}
		fmt.Fprintln(o.Writer, strings.TrimRight(left+line, " "))
	}
}

func (o *output) say(format string, arguments ...any) {
	o.wipe()
	for _, line := range console.Wrap(fmt.Sprintf(format, arguments...), o.columns, "") {
		fmt.Fprintln(o.Writer, line)
	}
}

// reflow joins the lines of each paragraph, so that it can be broken anew for a screen. Code, which is
// indented, stays as it is, and so do the items of a list and headings.
func reflow(text string) string {
	var out strings.Builder
	open := false // a paragraph that goes on
	for line := range strings.SplitSeq(text, "\n") {
		text := strings.TrimSpace(line)
		code := strings.HasPrefix(line, "    ")
		own := text == "" || code || strings.HasPrefix(text, "#")
		item := strings.HasPrefix(line, "- ")
		switch {
		case open && !own && !item:
			out.WriteString(" " + text)
			continue
		case out.Len() > 0:
			out.WriteString("\n")
		}
		out.WriteString(strings.TrimRight(line, " "))
		open = !own
	}
	return out.String()
}
