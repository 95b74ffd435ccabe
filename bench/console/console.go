// Package console is for what people read on a terminal: lines that fit, numbers with separators,
// and the terminal itself. What is said, and in which tables, is others' to say.
package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// Width is how wide text for people is, in columns.
const Width = 80

// Wrap breaks text between words, into lines of at most so many columns; those that go on begin
// with hang, which is spaces. Line ends that are there stay, and a word that is too long is
// left whole.
func Wrap(text string, columns int, hang string) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		for runewidth.StringWidth(line) > columns {
			at := strings.LastIndexByte(runewidth.Truncate(line, columns+1, ""), ' ')
			if indent := len(line) - len(strings.TrimLeft(line, " ")); at <= indent {
				end := strings.IndexByte(line[indent:], ' ')
				if end < 0 {
					break
				}
				at = indent + end
			}
			lines = append(lines, strings.TrimRight(line[:at], " "))
			line = hang + line[at+1:]
		}
		lines = append(lines, line)
	}
	return lines
}

// Paragraph puts the words of text behind first, in lines of Width that go on with hang.
func Paragraph(first, hang, text string) string {
	text = first + strings.Join(strings.Fields(text), " ")
	return strings.TrimRight(strings.Join(Wrap(text, Width, hang), "\n"), " ")
}

// Thousands writes a whole number with separators: 51234 is "51,234".
func Thousands[N int | int64 | uint64 | float64](n N) string {
	digits := strconv.FormatFloat(float64(n), 'f', 0, 64)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Table writes rows in columns as wide as their widest cell: names on the left, in the first
// column, and figures on the right of the others.
func Table(out io.Writer, rows [][]string) {
	var widths []int
	for _, row := range rows {
		widths = append(widths, make([]int, max(0, len(row)-len(widths)))...)
		for i, cell := range row {
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			if i == 0 {
				line = runewidth.FillRight(cell, widths[0])
			} else {
				line += "  " + runewidth.FillLeft(cell, widths[i])
			}
		}
		fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
}

// IsTerminal says whether out is a terminal.
func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colour says whether out takes colours: a terminal that is not dumb, of somebody who has not set
// NO_COLOR.
func Colour(out io.Writer) bool {
	return IsTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Columns is how many columns a terminal has: Width for one that nobody has told, 0 for what is no
// terminal and so has no end.
func Columns(out io.Writer) int {
	if !IsTerminal(out) {
		return 0
	}
	columns, _, err := term.GetSize(int(out.(*os.File).Fd()))
	if err != nil || columns == 0 {
		return Width
	}
	return columns
}

// Choose asks for a number from 1 to most until one is typed; 0 is the end of the input. Its error is that of ctx.
func Choose(ctx context.Context, lines <-chan string, out io.Writer, question string, most int) (int, error) {
	for {
		fmt.Fprintf(out, "%s (1 to %d): ", question, most)
		select {
		case line, ok := <-lines:
			if !ok {
				fmt.Fprintln(out, "no guess")
				return 0, nil
			}
			if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && n >= 1 && n <= most {
				return n, nil
			}
			fmt.Fprintf(out, "%q is no number from 1 to %d.\n", strings.TrimSpace(line), most)
		case <-ctx.Done():
			fmt.Fprintln(out)
			return 0, ctx.Err()
		}
	}
}

// Lines gives what is typed, line by line; the channel is closed at the end of in, and no more comes once ctx is done.
// A read cannot be interrupted: one that is under way then is left behind, with its goroutine.
func Lines(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}
