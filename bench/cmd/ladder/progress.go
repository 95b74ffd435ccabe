package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/run"
)

// progress shows what is going on: one line that changes on a terminal, a line
// for each round elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
	round    int
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if f, ok := out.(*os.File); ok {
		p.terminal = isTerminal(f)
	}
	return p
}

const clearLine = "\r\033[K"

func (p *progress) show(now run.Progress) {
	left := "?"
	if now.Left > 0 {
		left = now.Left.Round(time.Second).String()
	}
	if p.terminal {
		fmt.Fprintf(p.out, "%sround %d of %d, %d/%d: %s, %s; %s left", clearLine, now.Round, now.Rounds, now.Done+1, now.Items, now.Item.Server.Name, now.Item.Workload.Name, left)
		return
	}
	if now.Round != p.round {
		p.round = now.Round
		fmt.Fprintf(p.out, "round %d of %d, %s left\n", now.Round, now.Rounds, left)
	}
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

// step shows what is going on now, on a terminal; elsewhere it would be a line for each second.
func (p *progress) step(text string) {
	if p.terminal {
		fmt.Fprintf(p.out, "%s%s", clearLine, text)
		return
	}
	if strings.HasPrefix(text, "building") {
		fmt.Fprintln(p.out, text)
	}
}
