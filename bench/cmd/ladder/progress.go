package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/console"
	"github.com/qps-ladder/qps-ladder/bench/run"
)

// progress shows what is going on: one line that changes on a terminal, a line
// for each round elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
	width    func() int // columns of the terminal, 0 when unknown
	round    int
	last     string // that step showed, without what changes within it
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	// A dumb terminal shows the codes that clear a line.
	p.terminal = console.IsTerminal(out) && os.Getenv("TERM") != "dumb"
	p.width = func() int { return console.Columns(out) }
	return p
}

const clearLine = "\r\033[K"

func (p *progress) show(now run.Progress) {
	left := "?"
	if now.Left > 0 {
		left = now.Left.Round(time.Second).String()
	}
	if p.terminal {
		p.change(fmt.Sprintf("round %d of %d, %s left; %d/%d: %s, %s", now.Round, now.Rounds, left, now.Done+1, now.Items, now.Item.Server.Name, now.Item.Workload.Name))
		return
	}
	if now.Round != p.round {
		p.round = now.Round
		fmt.Fprintf(p.out, "round %d of %d, %s left\n", now.Round, now.Rounds, left)
	}
}

// change puts text in the place of the line that changes. What does not fit is
// cut: a line that wraps could not be cleared.
func (p *progress) change(text string) {
	if width := p.width(); width > 0 {
		if runes := []rune(text); len(runes) >= width {
			text = string(runes[:max(0, width-2)]) + "…"
		}
	}
	fmt.Fprint(p.out, clearLine+text)
}

// clear takes the changing line away, before something else is printed.
func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, clearLine)
	}
}

func (p *progress) say(format string, args ...any) {
	p.clear()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// note is a line for people that may be long.
func (p *progress) note(text string) { p.say("%s", console.Paragraph("· ", "  ", text)) }

// step shows what is going on now, on a terminal; elsewhere it would be a line for each second. ""
// ends it.
func (p *progress) step(text string) {
	if text == "" {
		p.clear()
		return
	}
	if p.terminal {
		p.change(text)
		return
	}
	if what, _, _ := strings.Cut(text, ":"); what != p.last {
		p.last = what
		fmt.Fprintln(p.out, what)
	}
}

// plan says beforehand how long it will take.
func (p *progress) plan(b *run.Bench) {
	rounds, all := b.Plan()
	p.say("%s", console.Paragraph("· ", "  ", b.Where()))
	fewer := ""
	if n := b.Fewer(); n > 0 && n < rounds {
		fewer = fmt.Sprintf(" (%d where steps are large)", n)
	}
	p.say("%s%s, fixed now, of %s: %s when nothing else runs; Ctrl-C reports early", count(rounds, "round"), fewer, count(len(b.Items), "measurement"), around(all))
}

// around writes a duration as people say it.
func around(d time.Duration) string {
	if d = d.Round(time.Second); d < 2*time.Minute {
		return "about " + count(max(1, int(d.Seconds())), "second")
	}
	return fmt.Sprintf("about %.0f minutes", d.Minutes())
}

// count is so many of what the word names.
func count(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}
